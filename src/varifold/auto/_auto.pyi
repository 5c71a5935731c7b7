from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model
from varifold.auto._experts import ExpertPool

class AutoModel(ExpertPool):
    def __init__(
        self,
        experts: Sequence[tuple[str, Model, bool, bool, int, float, float, float]],
        share: float = 0.01,
        eta: float = 0.5,
        drift: float = 1e-5,
        floor: float = 1e-3,
        trust: float = 4.0,
        bias_prior: float = 0.05,
        temperature_prior: float = 0.1,
        threshold: float = 0.5,
        guard: float = 1.0,
    ) -> None: ...
    def expert_weights(self) -> dict[str, float]: ...
    def weight_history(self) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def stack_weights(self) -> dict[str, float]: ...
    def recent(self) -> dict[str, float]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def fill_stack(self, arrays: dict[str, NDArray[Any]]) -> None: ...
    def fill_history(self, arrays: dict[str, NDArray[Any]]) -> None: ...

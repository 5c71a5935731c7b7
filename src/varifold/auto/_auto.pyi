from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model
from varifold.auto._experts import ExpertPool

class AutoModel(ExpertPool):
    def __init__(
        self,
        experts: Sequence[tuple[str, Model, int, int, int, float, float, float]],
        share: float = 0.01,
        eta: float = 0.5,
        drift: float = 1e-5,
        floor: float = 1e-3,
        trust: float = 4.0,
        bias_prior: float = 0.05,
        temperature_prior: float = 0.1,
        threshold: float = 0.5,
        guard: float = 1.5,
        guard_full: float = 50.0,
        last_prior: float = 0.1,
        watches: bool = True,
        first_pause: int = 200,
        most_cells: int = 65_536,
    ) -> None: ...
    def expert_weights(self) -> dict[str, float]: ...
    def weight_history(self) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def recent(self) -> dict[str, float]: ...
    def alarm_records(self) -> list[dict[str, Any]]: ...
    def change_records(self) -> dict[str, list[dict[str, Any]]]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def fill_stack(self, arrays: dict[str, NDArray[Any]]) -> None: ...
    def dump_alarms(self) -> dict[str, NDArray[Any]]: ...
    def fill_alarms(self, arrays: dict[str, NDArray[Any]]) -> None: ...

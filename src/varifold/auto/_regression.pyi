from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from varifold._engine.regression_model import RegressionModel

class AutoRegression(RegressionModel):
    names: list[str]
    def __init__(
        self,
        experts: Sequence[tuple[str, RegressionModel, bool]],
        absolute: bool = False,
        share: float = 0.01,
        eta: float = 3.0,
        trust: float = 4.0,
        doubt: float = 1.0,
    ) -> None: ...
    def expert_weights(self) -> dict[str, float]: ...
    def stack_weights(self) -> dict[str, float]: ...
    def weight_history(self) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def typical_error(self) -> float: ...
    def fill_history(self, arrays: dict[str, NDArray[Any]]) -> None: ...

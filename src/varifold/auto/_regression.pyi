from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from varifold._engine.regression_model import RegressionModel
from varifold.auto._mixture import RegressionMixture

class AutoRegression(RegressionMixture):
    earlier: bool
    complete: bool
    def __init__(
        self, make: Callable[[], Sequence[tuple[str, RegressionModel, bool, int]]], absolute: bool = False
    ) -> None: ...
    def error_means(self) -> tuple[float, float, float, int]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

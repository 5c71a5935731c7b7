from typing import Any

from numpy.typing import NDArray

from varifold._engine.regression_model import RegressionModel
from varifold.forest._window_trees import WindowTrees

class RegressionTrees(WindowTrees):
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...

class WindowForestRegression(RegressionModel):
    forest: RegressionTrees
    def __init__(
        self,
        trees: int,
        window: int,
        columns: float,
        cuts: int,
        min_leaf: int,
        smoothing: float,
        seed: int,
        numbers: int = 0,
    ) -> None: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

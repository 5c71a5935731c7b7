from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model

class Target:
    weight: float
    mean: float
    squares: float
    deviation: float
    def dump(self) -> NDArray[Any]: ...
    def fill(self, arrays: dict[str, NDArray[Any]]) -> None: ...

class RegressionModel(Model):
    target: Target
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...

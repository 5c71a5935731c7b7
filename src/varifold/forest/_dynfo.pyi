from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model

class DynFoModel(Model):
    most: int
    alpha: float
    beta: float
    delta: float
    epsilon: float
    gamma: float
    low: float
    middle: float
    draws: int
    n: int
    predicted: int
    def __init__(
        self,
        stumps: int,
        window: int,
        alpha: float,
        beta: float,
        delta: float,
        epsilon: float,
        gamma: float,
        theta1: float,
        theta2: float,
        draws: int,
        seed: int,
    ) -> None: ...
    def stumps_by_key(self) -> list[tuple[int, float, float, list[list[float]]]]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

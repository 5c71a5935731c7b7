from typing import Any

from numpy.typing import NDArray

from varifold._engine.one_vs_rest import BinaryRule

class OCDSRule(BinaryRule):
    alpha: float
    beta1: float
    beta2: float
    gamma: float
    T: int
    max_dense: int
    def __init__(self, alpha: float, beta1: float, beta2: float, gamma: float, T: int, max_dense: int) -> None: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def notes(self) -> list[str]: ...
    def nbytes(self) -> int: ...

from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model

class NeighboursModel(Model):
    k: int
    window: int
    widest: int
    def __init__(self, k: int, window: int, widest: int = 512, single: bool = False) -> None: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

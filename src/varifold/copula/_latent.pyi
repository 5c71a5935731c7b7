from typing import Any

from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold.copula._scores import Scores

class Copula(Scores):
    batch: int
    c: float
    gamma_min: float
    def __init__(
        self,
        window: int = 200,
        batch: int = 20,
        levels: int = 14,
        sweeps: int = 2,
        c: float = 5.0,
        gamma_min: float = 0.05,
        max_dense: int = 512,
    ) -> None: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold._engine.one_vs_rest import BinaryRule

class AdditiveRule(BinaryRule):
    r: float
    max_binned: int
    def __init__(self, r: float, max_binned: int, memory: float = 0.0) -> None: ...
    def notes(self) -> list[str]: ...
    def merging(self) -> Literal["exact", "approximate"]: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...

def joined_sample(counts: NDArray[np.int64], samples: NDArray[np.float64]) -> NDArray[np.float64]: ...

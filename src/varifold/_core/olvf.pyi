from typing import Any

from numpy.typing import NDArray

from varifold._core.model import BinaryRule

class OLVFRule(BinaryRule):
    C: float
    C_bar: float
    lam: float
    B: float
    kkt: bool
    def __init__(self, C: float, C_bar: float, lam: float, B: float, kkt: bool) -> None: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

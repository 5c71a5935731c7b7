from typing import Any, Literal

from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold._engine.one_vs_rest import BinaryRule

class FTRLADPRule(BinaryRule):
    L1: float
    L2: float
    LP: float
    kappa: float
    decay: int
    per_coordinate: bool
    closed: bool
    def __init__(self, L1: float, L2: float, LP: float, decay: int, kappa: float, per_coordinate: bool) -> None: ...
    def merging(self) -> Literal["exact", "approximate"]: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...

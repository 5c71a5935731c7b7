from typing import Any, Literal

from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold.linear._truncated import TruncatedRule

class OLVFRule(TruncatedRule):
    C: float
    C_bar: float
    lam: float
    B: float
    kkt: bool
    def __init__(self, C: float, C_bar: float, lam: float, B: float, kkt: bool) -> None: ...
    def space_score(self, slots: list[int], c: int = ...) -> tuple[float, float]: ...
    def merging(self) -> Literal["exact", "approximate"]: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...

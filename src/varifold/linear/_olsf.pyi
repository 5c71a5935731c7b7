from typing import Any, Literal

from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold.linear._truncated import TruncatedRule

class OLSFRule(TruncatedRule):
    mode: int
    C: float
    lam: float
    B: float
    def __init__(self, mode: str, C: float, lam: float, B: float) -> None: ...
    def merging(self) -> Literal["exact", "approximate"]: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...

from typing import Any, Literal

from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold._engine.one_vs_rest import BinaryRule

class OGDRule(BinaryRule):
    c: float
    def __init__(self, c: float) -> None: ...
    def merging(self) -> Literal["exact", "approximate"]: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...

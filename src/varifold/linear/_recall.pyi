from typing import Any

from numpy.typing import NDArray

from varifold._engine.one_vs_rest import BinaryRule

class RecallRule(BinaryRule):
    r: float
    most: int
    binned: bool
    def __init__(self, r: float, binned: bool = False, memory: float = 0.0, most: int = 64) -> None: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...

from typing import Any

from numpy.typing import NDArray

from varifold._engine.one_vs_rest import BinaryRule

class TruncatedRule(BinaryRule):
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

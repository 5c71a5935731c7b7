from typing import Any

from numpy.typing import NDArray

from varifold._core.leaning import LeaningRule

class SparseRule(LeaningRule):
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

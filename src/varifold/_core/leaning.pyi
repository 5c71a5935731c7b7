from typing import Any

from numpy.typing import NDArray

from varifold._core.model import BinaryRule

class LeaningRule(BinaryRule):
    lean: bool
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...

from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model

class BinaryRule(Model):
    problems: int
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

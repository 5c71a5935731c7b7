from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model
from varifold._engine.space import Space

def check_units(arrays: dict[str, NDArray[Any]], capacity: int, stumps: int, words: int, space: Space) -> None: ...

class Units(Model):
    stumps: int
    pruned: int
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

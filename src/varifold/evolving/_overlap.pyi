from typing import Any

from numpy.typing import NDArray

class Overlap:
    inputs: int
    outputs: int
    rank: int
    rows: int
    most: int
    full: bool
    def __init__(self, most: int) -> None: ...
    def dump(self) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

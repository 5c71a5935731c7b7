from typing import Any

from numpy.typing import NDArray

class SwitchDetector:
    known_switch: int
    known_overlap: int
    settle: int
    patience: int
    overlapping: bool
    pairs: bool
    settled: int
    joined_at: int
    last_start: int
    switches: int
    def __init__(
        self, known_switch: int | None = None, known_overlap: int = 0, settle: int = 30, patience: int = 100
    ) -> None: ...
    def steps(self) -> list[int]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

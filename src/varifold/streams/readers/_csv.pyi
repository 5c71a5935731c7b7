from collections.abc import Callable, Iterable, Sequence
from typing import Any

from varifold._engine.vocabulary import Labels, Vocabulary

NUMERIC: int
CATEGORY: int
TEXT: int
TARGET: int
WEIGHT: int
EXTRA: int
DATE: int
IGNORED: int

class Delimited:
    line: int
    rows: int
    cells: int
    revised: set[str]
    extras: list[tuple[str | None, ...]]
    before_new: Callable[[], object] | None
    numeric_target: bool
    def __init__(
        self,
        vocabulary: Vocabulary,
        labels: Labels,
        sep: str,
        absent: Iterable[str],
        failed: Callable[[int, str | None, str], None],
        words: Callable[[str], dict[str, float]],
        quote: str = '"',
        decimal: str = ".",
        longest: int = ...,
        too_long: str = ...,
        unlabelled: bool = False,
    ) -> None: ...
    def set_columns(
        self,
        names: Sequence[str],
        roles: Sequence[int],
        dates: Callable[[str, str, str | None], dict[str, float | str]] | None = None,
        time: str | None = None,
        key: str | None = None,
    ) -> None: ...
    def records(self, data: bytes, most: int, final: bool) -> list[tuple[int, list[str], int]]: ...
    def feed(self, data: bytes, start: int, final: bool, most_rows: int, most_cells: int) -> int: ...
    def finish(self) -> tuple[Any, Any, Any, Any, Any, Any, list[tuple[str | None, ...]]]: ...

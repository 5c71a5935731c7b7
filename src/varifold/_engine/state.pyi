from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]

def checked_array(
    arrays: Arrays,
    name: str,
    kind: str,
    shape: tuple[int | None, ...],
    low: float | None = None,
    high: float | None = None,
) -> np.ndarray[Any, Any]: ...
def check_chains(first: Any, following: Any, belongs: dict[int, int]) -> None: ...

class State:
    slots: int
    classes: int
    problems: int
    def dump(self, size: int, classes: int, problems: int = 1) -> Arrays: ...
    def shape_of(self, i: int, size: int, classes: int, problems: int) -> tuple[int, ...]: ...
    def fill(self, arrays: Arrays, rows: int, capacity: int, classes: int, problems: int = 1) -> None: ...
    def nbytes(self) -> int: ...

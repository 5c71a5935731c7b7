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

class Extent: ...

def fixed(
    entries: int, *, width: int | None = None, first: float = 0.0, low: float | None = None, high: float | None = None
) -> Extent: ...
def per_slot(
    *, width: int | None = None, most: int = 0, first: float = 0.0, low: float | None = None, high: float | None = None
) -> Extent: ...
def per_class(
    *, width: int | None = None, first: float = 0.0, low: float | None = None, high: float | None = None
) -> Extent: ...
def per_problem(
    *, width: int | None = None, first: float = 0.0, low: float | None = None, high: float | None = None
) -> Extent: ...
def per_slot_and_class(
    *, width: int | None = None, first: float = 0.0, low: float | None = None, high: float | None = None
) -> Extent: ...
def per_slot_and_problem(
    *, width: int | None = None, first: float = 0.0, low: float | None = None, high: float | None = None
) -> Extent: ...

class State:
    slots: int
    classes: int
    problems: int
    def dump(self, size: int, classes: int, problems: int = 1) -> Arrays: ...
    def shape_of(self, i: int, size: int, classes: int, problems: int) -> tuple[int, ...]: ...
    def fill(self, arrays: Arrays, rows: int, capacity: int, classes: int, problems: int = 1) -> None: ...
    def nbytes(self) -> int: ...

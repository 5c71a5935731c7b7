from typing import Any

from numpy.typing import NDArray

from varifold.naive_bayes._class_table import PresenceTable

class FAEModel(PresenceTable):
    best: int
    maturity: int
    patience: int
    change: float
    growth: int
    hard: bool
    answered: int
    def __init__(
        self,
        prior: float,
        best: int,
        maturity: int,
        patience: int,
        change: float,
        growth: int,
        span: int,
        most: int,
        hard: bool,
    ) -> None: ...
    def role(self, slot: int) -> str: ...
    def portraits(self) -> list[tuple[int, float, int, float, list[int]]]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

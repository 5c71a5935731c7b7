from typing import Any, Literal

from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold.naive_bayes._class_table import PresenceTable

class NB3Model(PresenceTable):
    M: float
    def __init__(self, prior: float, M: float) -> None: ...
    def merging(self) -> Literal["exact", "approximate"]: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...

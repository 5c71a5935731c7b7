from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model
from varifold.evolving._feature_map import FeatureMap

class RulePair(Model):
    map: FeatureMap
    old: int
    two: bool
    def __init__(self) -> None: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

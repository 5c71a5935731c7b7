from typing import Any, Literal

from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold._engine.model import Model

class FrequencyModel(Model):
    def merging(self) -> Literal["exact", "approximate"]: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...

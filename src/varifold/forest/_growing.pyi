from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model

class Growing(Model):
    columns: float
    cuts: int
    min_leaf: int
    begun: int
    def dump_growth(self) -> dict[str, NDArray[Any]]: ...
    def check_pending(self) -> None: ...
    def fill_growth(self, arrays: dict[str, NDArray[Any]]) -> None: ...

from typing import Any

from numpy.typing import NDArray

from varifold._core.model import Model

class ClassTable(Model):
    prior: float
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

class GaussianNBModel(ClassTable):
    def __init__(self, prior: float) -> None: ...

class NB3Model(ClassTable):
    M: float
    def __init__(self, prior: float, M: float) -> None: ...

from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model

class ClassTable(Model):
    prior: float
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...

class PresenceTable(ClassTable): ...

from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model

class PresenceModel(Model):
    max_columns: int
    def __init__(self, max_columns: int = 2048) -> None: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def notes(self) -> list[str]: ...

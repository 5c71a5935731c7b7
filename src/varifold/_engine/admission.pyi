from typing import Any

from varifold._engine.intake import Intake
from varifold._engine.names import Name

class Admission(Intake):
    def rename(self, names: dict[Name, Name], partial: bool = False) -> int: ...
    def shrink(self) -> None: ...

def pending_order(entry: tuple[Name, Any, Any, float]) -> tuple[bool, Name]: ...

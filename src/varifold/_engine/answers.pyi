from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from varifold._engine.core import Core
from varifold._engine.decision import Decision
from varifold._engine.names import Name

class Answers(Core):
    labels: list[Any]
    def answer_by(self, decision: Decision) -> None: ...
    def class_counts(self) -> dict[Any, float]: ...
    def dump(self) -> tuple[list[Name | None], list[Any], dict[str, NDArray[Any]]]: ...
    def fill(self, names: Sequence[Name | None], labels: Sequence[Any], arrays: dict[str, NDArray[Any]]) -> None: ...

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from varifold._engine.block import Block
from varifold._engine.core import Core
from varifold._engine.names import Name

class UnlabelledEngine(Core):
    def learn_one(self, x: Mapping[Any, Any], w: float = 1.0) -> None: ...
    def learn_many(self, block: Block) -> None: ...
    def dump(self) -> tuple[list[Name | None], list[Any], dict[str, NDArray[Any]]]: ...
    def fill(self, names: Sequence[Name | None], labels: Sequence[Any], arrays: dict[str, NDArray[Any]]) -> None: ...

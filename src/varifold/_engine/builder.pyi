from collections.abc import Iterable, Mapping
from typing import Any

from varifold._engine.block import Block
from varifold._engine.vocabulary import Labels, Vocabulary

class Builder:
    def __init__(self, vocabulary: Vocabulary) -> None: ...
    def add(self, x: Mapping[Any, Any]) -> None: ...
    def finish(
        self, y: Iterable[Any] | None = None, w: Iterable[float] | None = None, labels: Labels | None = None
    ) -> Block: ...

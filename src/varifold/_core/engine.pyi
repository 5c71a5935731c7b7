from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._core.block import Block, Vocabulary
from varifold._core.model import Model
from varifold._core.names import Name
from varifold._core.scaler import Scaler
from varifold._core.space import Space

class Binding:
    def __init__(self, vocabulary: Vocabulary) -> None: ...

class Engine:
    space: Space
    scaler: Scaler
    model: Model
    step: int
    labels: list[Any]
    intercept: bool
    def __init__(
        self,
        model: Model,
        scale: str = "standard",
        clip: float = 3.0,
        intercept: bool = True,
        max_features: int | None = None,
        evict: str = "oldest",
    ) -> None: ...
    def learn_one(self, x: Mapping[Any, Any], y: Hashable, w: float = 1.0) -> None: ...
    def predict_one(self, x: Mapping[Any, Any]) -> Any: ...
    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]: ...
    def margins_one(self, x: Mapping[Any, Any]) -> dict[Any, float]: ...
    def explain_one(self, x: Mapping[Any, Any], c: int = -1) -> tuple[Any, dict[Name, float], float]: ...
    def run(
        self,
        block: Block,
        schedule: NDArray[np.int64] | None = None,
        learn: bool = True,
        predict: bool = True,
        probabilities: bool = True,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
    def class_counts(self) -> dict[Any, float]: ...
    def magnitude(self, slot: int) -> float: ...
    def dump(self) -> tuple[list[Name | None], list[Any], dict[str, NDArray[Any]]]: ...
    def fill(self, names: Sequence[Name | None], labels: Sequence[Any], arrays: dict[str, NDArray[Any]]) -> None: ...
    def nbytes(self) -> dict[str, int]: ...

def pending_order(entry: tuple[Name, Any, Any, float]) -> tuple[bool, Name]: ...

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.answers import Answers
from varifold._engine.block import Block
from varifold._engine.names import Name

class Engine(Answers):
    def learn_one(self, x: Mapping[Any, Any], y: Hashable, w: float = 1.0) -> None: ...
    def predict_one(self, x: Mapping[Any, Any]) -> Any: ...
    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]: ...
    def predict_json(self, data: bytes | bytearray | str, target: str | None = None) -> Any: ...
    def predict_proba_json(self, data: bytes | bytearray | str, target: str | None = None) -> dict[Any, float]: ...
    def learn_json(
        self,
        data: bytes | bytearray | str,
        y: Hashable = None,
        w: float = 1.0,
        target: str | None = None,
        predict: bool = False,
    ) -> Any: ...
    def answer_one(self, x: Mapping[Any, Any]) -> tuple[Any, dict[Any, float]]: ...
    def margins_one(self, x: Mapping[Any, Any]) -> dict[Any, float]: ...
    def explain_one(
        self, x: Mapping[Any, Any], c: int = -1
    ) -> tuple[Any, dict[Name, float], float, dict[Name, float]]: ...
    def labels_of(self, codes: NDArray[np.int32]) -> list[Any]: ...
    def run(
        self,
        block: Block,
        schedule: NDArray[np.int64] | None = None,
        learn: bool = True,
        predict: bool = True,
        probabilities: bool = True,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...

def checked_schedule(block: Block, schedule: NDArray[np.int64] | None, learn: bool) -> NDArray[np.int64]: ...

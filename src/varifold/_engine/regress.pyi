from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.block import Block
from varifold._engine.core import Core
from varifold._engine.names import Name
from varifold._engine.regression_model import Target

class RegressionEngine(Core):
    target: Target
    def check_target(self, y: Any) -> None: ...
    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None: ...
    def predict_one(self, x: Mapping[Any, Any]) -> float: ...
    def intervals_one(self, x: Mapping[Any, Any]) -> list[tuple[float, float]]: ...
    def explain_one(self, x: Mapping[Any, Any]) -> dict[Name, float]: ...
    def run(
        self,
        block: Block,
        schedule: NDArray[np.int64] | None = None,
        learn: bool = True,
        predict: bool = True,
        intervals: bool = False,
    ) -> Any: ...
    def dump(self) -> tuple[list[Name | None], list[Any], dict[str, NDArray[Any]]]: ...
    def fill(self, names: Sequence[Name | None], labels: Sequence[Any], arrays: dict[str, NDArray[Any]]) -> None: ...

def checked_schedule(block: Block, schedule: NDArray[np.int64] | None, learn: bool) -> NDArray[np.int64]: ...

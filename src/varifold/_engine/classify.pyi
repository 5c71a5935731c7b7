from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.block import Block
from varifold._engine.instance_doors import InstanceDoors

class Engine(InstanceDoors):
    def labels_of(self, codes: NDArray[np.int32]) -> list[Any]: ...
    def run(
        self,
        block: Block,
        schedule: NDArray[np.int64] | None = None,
        learn: bool = True,
        predict: bool = True,
        probabilities: bool = True,
        sets: bool = False,
    ) -> Any: ...

def checked_schedule(block: Block, schedule: NDArray[np.int64] | None, learn: bool) -> NDArray[np.int64]: ...

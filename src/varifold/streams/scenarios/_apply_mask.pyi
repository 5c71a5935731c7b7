import numpy as np
import numpy.typing as npt

from varifold._engine.block import Block
from varifold.streams.scenarios._masks import Mask
from varifold.streams.scenarios.columns import Columns

class Row:
    def __init__(self, longest: int, width: int, shift: int) -> None: ...

def masked(
    block: Block,
    mask: Mask,
    columns: Columns,
    order: npt.NDArray[np.int64] | None = None,
    start: int = 0,
) -> Block: ...
def occurring(block: Block, size: int) -> npt.NDArray[np.uint8]: ...

import numpy as np
import numpy.typing as npt

from varifold._engine.block import Block
from varifold.streams.scenarios._masks import Mask

class Row:
    def __init__(self, longest: int, width: int, position: npt.NDArray[np.int32]) -> None: ...

def masked(
    block: Block,
    mask: Mask,
    position: npt.NDArray[np.int32],
    width: int,
    order: npt.NDArray[np.int64] | None = None,
    start: int = 0,
) -> Block: ...
def occurring(block: Block, size: int) -> npt.NDArray[np.uint8]: ...

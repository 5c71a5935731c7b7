from typing import Any

import numpy as np
import numpy.typing as npt

_Ids = npt.NDArray[np.int32]
_Pointers = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.uint8]

def occurring(indices: _Ids, size: int) -> _Mask: ...
def bernoulli(
    indptr: _Pointers,
    indices: _Ids,
    position: _Ids,
    removal: npt.NDArray[np.float64],
    group: _Ids,
    seed: int,
    start: int = 0,
    least: int = 0,
) -> _Mask: ...
def exact(
    indptr: _Pointers, indices: _Ids, position: _Ids, width: int, hidden: int, seed: int, start: int = 0
) -> _Mask: ...
def pairs(indptr: _Pointers, indices: _Ids, position: _Ids, width: int, seed: int, start: int = 0) -> _Mask: ...
def phased(indptr: _Pointers, indices: _Ids, position: _Ids, phase: _Ids, alive: npt.NDArray[Any]) -> _Mask: ...
def spans(
    indptr: _Pointers,
    indices: _Ids,
    position: _Ids,
    birth: npt.NDArray[np.int64],
    death: npt.NDArray[np.int64],
    shown: npt.NDArray[np.float64],
    seed: int,
    start: int = 0,
) -> _Mask: ...

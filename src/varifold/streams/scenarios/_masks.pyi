from typing import Any

import numpy as np
import numpy.typing as npt

class Mask: ...

class Events:
    def __init__(self, row: npt.NDArray[np.int64], rows: int) -> None: ...

class Bernoulli(Mask):
    def __init__(
        self,
        shown: npt.NDArray[np.float64],
        group: npt.NDArray[np.int32],
        seed: int,
        least: int = 0,
        repeated: bool = True,
    ) -> None: ...

class Exact(Mask):
    def __init__(self, width: int, hidden: int, rows: int, seed: int, repeated: bool) -> None: ...

class Pairs(Mask):
    def __init__(self, width: int, seed: int) -> None: ...

class Phased(Mask):
    def __init__(self, alive: npt.NDArray[Any], phase: npt.NDArray[Any]) -> None: ...

class Spans(Mask):
    def __init__(
        self,
        birth: npt.NDArray[np.int64],
        death: npt.NDArray[np.int64],
        shown: npt.NDArray[np.float64],
        start: int,
        rows: int,
        seed: int,
    ) -> None: ...

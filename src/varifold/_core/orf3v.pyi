from typing import Any

import numpy as np

from varifold._core.units import Units

Floats = np.ndarray[Any, np.dtype[np.float64]]

class ORF3VModel(Units):
    candidates: int
    grace: int
    r: int
    r_start: int
    alpha: float
    compression: float
    smoothing: float
    seed: int
    paper_vote: bool
    quantiles: bool
    random_out: bool
    tempered: bool
    def __init__(
        self,
        stumps: int,
        candidates: int,
        grace: int,
        r: int,
        r_start: int,
        alpha: float,
        window: int,
        delta: float,
        prune: str,
        replace: str,
        thresholds: str,
        compression: float,
        smoothing: float,
        vote: str,
        tempered: bool,
        seed: int,
    ) -> None: ...
    def unit_weights(self) -> dict[int, float]: ...
    def portrait(
        self, slot: int
    ) -> tuple[Floats, list[tuple[Floats, Floats, np.ndarray[Any, np.dtype[np.bool_]]]]] | None: ...

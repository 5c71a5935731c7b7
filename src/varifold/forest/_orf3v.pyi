from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold.forest._stumps import Stumps

class ORF3VModel(Stumps):
    alpha: float
    learns_temperature: bool
    paired: bool
    def __init__(
        self,
        stumps: int,
        candidates: int,
        grace: int,
        r: int,
        growth: float,
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
        pairs: int = 0,
    ) -> None: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...
    def notes(self) -> list[str]: ...
    def check_slot(self, slot: int) -> None: ...
    def role(self, slot: int) -> str: ...
    def feature_weights(self) -> dict[int, float]: ...
    def feature_information(self) -> dict[int, float]: ...
    def pair_information(self) -> dict[tuple[int, int], float]: ...
    def feature_distribution(
        self, slot: int
    ) -> (
        tuple[NDArray[np.float64], list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]]] | None
    ): ...

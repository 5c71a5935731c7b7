import numpy as np
from numpy.typing import NDArray

from varifold._core.stumps import Stumps

class ORF3VModel(Stumps):
    alpha: float
    tempered: bool
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
    ) -> None: ...
    def notes(self) -> list[str]: ...
    def role(self, slot: int) -> str: ...
    def unit_weights(self) -> dict[int, float]: ...
    def unit_information(self) -> dict[int, float]: ...
    def portrait(
        self, slot: int
    ) -> (
        tuple[NDArray[np.float64], list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]]] | None
    ): ...

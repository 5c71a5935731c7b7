from typing import Any

from numpy.typing import NDArray

from varifold._engine.one_vs_rest import BinaryRule
from varifold.evolving._overlap import Overlap
from varifold.evolving._rule_pair import RulePair
from varifold.evolving._switch_detector import SwitchDetector

PARTS: dict[str, int]

class EvolvingModel(RulePair):
    detector: SwitchDetector
    overlap: Overlap
    def __init__(
        self,
        first: BinaryRule,
        second: BinaryRule,
        parts: str,
        *,
        detector: SwitchDetector,
        logistic: bool = False,
        transfer: bool = False,
        centred: bool = False,
        spread: bool = False,
        ridge: float = 0.0,
        bound: float = 0.0,
        horizon: float | None = None,
        max_dense: int = 512,
        seed: int = 0,
    ) -> None: ...
    def role(self, slot: int) -> str: ...
    def switches(self) -> list[int]: ...
    def mix(self) -> tuple[float, float] | None: ...
    def notes(self) -> list[str]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

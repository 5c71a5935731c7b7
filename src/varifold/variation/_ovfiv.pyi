from typing import Any

from numpy.typing import NDArray

from varifold._engine.model import Model
from varifold.variation._variation import VariationLearner

class OVFIVModel(Model):
    base: Model
    variation: VariationLearner
    only_variation: bool
    mix_scores: bool
    @property
    def presence(self) -> bool: ...
    def __init__(
        self,
        base: Model,
        rate: str,
        eta: float,
        L1: float,
        alpha: float,
        beta: float,
        L2: float,
        encode: str,
        bias: bool = ...,
        only_variation: bool = ...,
        mix_scores: bool = ...,
    ) -> None: ...
    def weights(self) -> tuple[float, float]: ...
    def nonzero(self) -> int: ...
    def calls_python(self) -> bool: ...
    def pending_error(self) -> BaseException | None: ...
    def notes(self) -> list[str]: ...
    def role(self, slot: int) -> str: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

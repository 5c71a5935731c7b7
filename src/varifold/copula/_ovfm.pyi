from typing import Any, Literal

from numpy.typing import NDArray

from varifold._engine.merging import Part
from varifold._engine.model import Model
from varifold._engine.one_vs_rest import BinaryRule
from varifold.copula._latent import Copula

class OVFMModel(Model):
    copula: Copula
    raw: BinaryRule
    latent: BinaryRule
    presence: BinaryRule | None
    latent_only: bool
    def __init__(
        self,
        copula: Copula,
        raw: BinaryRule,
        latent: BinaryRule,
        parts: int = 1,
        latent_only: bool = False,
        radius: float = 0.0,
        rate: str = "anytime",
        eta: float = 0.0,
        presence: BinaryRule | None = None,
        odds: float = 1.0,
        keep: float = 1.0,
    ) -> None: ...
    def rules(self) -> list[BinaryRule]: ...
    def mix_weights(self) -> NDArray[Any]: ...
    def role(self, slot: int) -> str: ...
    def calls_python(self) -> bool: ...
    def pending_error(self) -> BaseException | None: ...
    def notes(self) -> list[str]: ...
    def merging(self) -> Literal["approximate"] | None: ...
    def merge(self, parts: list[Part]) -> dict[str, NDArray[Any]]: ...
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from varifold._engine.names import Name
from varifold._engine.vocabulary import Labels, Vocabulary

class Block:
    vocabulary: Vocabulary
    labels: Labels
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]
    codes: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    targets: NDArray[np.float64] | None
    def __init__(
        self,
        vocabulary: Vocabulary,
        indptr: ArrayLike,
        indices: ArrayLike,
        values: ArrayLike,
        codes: ArrayLike | None = None,
        labels: Labels | None = None,
        weights: ArrayLike | None = None,
        targets: Iterable[Any] | None = None,
    ) -> None: ...
    @staticmethod
    def from_dicts(
        rows: Iterable[Mapping[Any, Any]],
        y: Iterable[Any] | None = None,
        w: Iterable[float] | None = None,
        vocabulary: Vocabulary | None = None,
        labels: Labels | None = None,
    ) -> Block: ...
    @property
    def n(self) -> int: ...
    @property
    def y(self) -> list[Any]: ...
    @property
    def labelled(self) -> NDArray[np.bool_]: ...
    def with_values(self, values: ArrayLike) -> Block: ...
    def with_targets(self, targets: Iterable[Any]) -> Block: ...
    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice) -> Self: ...
    def row(self, i: int, indicators: bool = False) -> dict[Name, float | str]: ...
    def rows(self, indicators: bool = False) -> Iterator[dict[Name, float | str]]: ...
    def take(self, rows: ArrayLike | Sequence[int]) -> Self: ...
    def keep(self, mask: ArrayLike) -> Self: ...

def adopt(
    vocabulary: Vocabulary,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64],
    codes: NDArray[np.int32],
    labels: Labels,
    weights: NDArray[np.float64] | None,
) -> Block: ...
def own_copy(name: str, given: ArrayLike, dtype: DTypeLike) -> NDArray[Any]: ...
def concatenate(blocks: Iterable[Block]) -> Block: ...
def checked_weights(given: Iterable[float], n: int) -> NDArray[np.float64]: ...
def checked_targets(given: Iterable[Any], n: int) -> NDArray[np.float64]: ...
def target_error(value: Any, where: str) -> Exception: ...

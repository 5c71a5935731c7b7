from typing import Any

from numpy.typing import NDArray

from varifold.copula._active_set import ActiveSet
from varifold.copula._marginals import Marginals

class Scores(ActiveSet):
    marginals: Marginals
    sweeps: int
    n: int
    def correlation(self) -> tuple[list[int], NDArray[Any]]: ...

from typing import Any

from numpy.typing import NDArray

from varifold._core.marginals import Marginals
from varifold._core.nodes import Nodes

class Scores(Nodes):
    marginals: Marginals
    sweeps: int
    n: int
    def correlation(self) -> tuple[list[int], NDArray[Any]]: ...

from typing import Any

from numpy.typing import NDArray

from varifold.forest._growing import Growing

class WindowTrees(Growing):
    trees: int
    smoothing: float
    grown: int
    most: int
    length: int
    def __init__(
        self,
        trees: int,
        window: int,
        columns: float,
        cuts: int,
        min_leaf: int,
        smoothing: float,
        seed: int,
        numbers: int = 0,
        numeric: bool = False,
        narrow: float = 0.0,
    ) -> None: ...
    def dump_trees(self) -> dict[str, NDArray[Any]]: ...
    def fill_trees(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...
    def nbytes(self) -> int: ...

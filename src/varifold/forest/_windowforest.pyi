from typing import Any

from numpy.typing import NDArray

from varifold.forest._window_trees import WindowTrees

class WindowForestModel(WindowTrees):
    def dump(self, size: int) -> dict[str, NDArray[Any]]: ...
    def fill(self, arrays: dict[str, NDArray[Any]], capacity: int) -> None: ...

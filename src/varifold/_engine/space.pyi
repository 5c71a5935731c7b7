import numpy as np
from numpy.typing import NDArray

from varifold._engine.names import NameTable

class Space(NameTable):
    evictions: int
    def seen_table(self) -> NDArray[np.int64]: ...
    def restore_seen(self, table: NDArray[np.int64]) -> None: ...
    def nbytes(self) -> dict[str, int]: ...

from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.vocabulary import Vocabulary

def assemble(
    n: int, columns: list[tuple[Any, Any]], vocabulary: Vocabulary
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...

import numpy as np
import numpy.typing as npt

def tabulate(
    scores: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], ascending: int = 0
) -> npt.NDArray[np.float64]: ...

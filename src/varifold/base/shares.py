"""Which of several learners gets an instance: a hash of its number, which no period of the stream coincides with."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", int, NDArray[np.uint64])
_64_BITS = 0xFFFF_FFFF_FFFF_FFFF


def share_of(number: Number, among: int) -> Number:
    """The learner, 0 to `among` - 1, that the instance of this number goes to; one number or an array of them."""
    z: Any = (number + 0x9E3779B97F4A7C15) & _64_BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64_BITS
    found: Number = (z ^ (z >> 31)) % among
    return found

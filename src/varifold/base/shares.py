"""Assign instances to learners by a hash of their number, so that no period of the stream aligns with the split."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", int, NDArray[np.uint64])
_64_BITS = 0xFFFF_FFFF_FFFF_FFFF


def share_of(number: Number, among: int) -> Number:
    """Return the learner, 0 to `among` - 1, of the instance with this number; accepts a number or an array."""
    z: Any = (number + 0x9E3779B97F4A7C15) & _64_BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64_BITS
    share: Number = (z ^ (z >> 31)) % among
    return share

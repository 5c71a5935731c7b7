"""Missing values in rows and frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import Labels, encode_labels

__all__ = ["is_missing", "with_known_labels"]


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        # pandas' NA and arrays have no truth value; NA is recognised by its type, since pandas may not be installed
        return type(value).__name__ == "NAType"


def with_known_labels(block: Block, targets: Sequence[Any], labels: Labels) -> Block:
    """Add labels to a block; instances whose label is missing (None, NaN or NA) get none."""
    known = [i for i, y in enumerate(targets) if not is_missing(y)]
    codes = np.full(len(block), -1, dtype=np.int32)
    codes[known] = encode_labels([targets[i] for i in known], labels, len(known))
    return Block(block.vocabulary, block.indptr, block.indices, block.values, codes, labels, block.weights)

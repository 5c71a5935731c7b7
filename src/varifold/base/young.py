"""Files of young learners: the instances that were learned, from which all of the state follows.

After few instances a learner of many parts holds several times as many numbers as it has seen. If it keeps the
instances themselves, a file needs nothing else: loading learns them again, which leaves the same state to the bit.
Whoever writes such a file loads it first and compares; a state that does not follow from the instances alone (features
were given up or renamed) is written as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from varifold._engine.block import Block
from varifold._engine.state import checked_array
from varifold._engine.vocabulary import Labels, Vocabulary
from varifold.base.files import Arrays, unpack_names

MOST_INSTANCES = 200
"""Learned again when a file is loaded: some ten milliseconds."""
MOST_VALUES = 6_000
"""Of all instances together: 48 KB."""
NAMES = ("names.kind", "names.offsets", "names.bytes", "space.kind", "space.column", "space.free")
_WHAT = ("instances.sizes", "instances.slots", "instances.values", "instances.weights")
_NUMERIC, _INDICATOR = 1, 4
"""Bits of a name's kind: of a feature that carries numbers, and of a string value of a column."""
_LABELS, _NUMBERS = "instances.labels", "instances.targets"
State = tuple[list[Any], list[Any], Arrays]
"""What an engine's dump() gives: names, labels, arrays."""


def instances_of(arrays: Arrays, window: str) -> Arrays | None:
    """The arrays of a young learner's file, from a state in which the window of this name holds all instances.

    None where it cannot hold all that was learned, or more than is worth learning again.
    """
    ends, keys, values = (arrays[f"{window}.{part}"] for part in ("ends", "keys", "values"))
    rows = len(ends) - 1
    if not rows or rows != arrays["step"][0] or rows > MOST_INSTANCES or len(keys) > MOST_VALUES:
        return None
    if arrays["space.evictions"][0]:
        return None
    levels = keys % 2 == 1  # a string: its value is the slot of the level
    found = {
        "instances.sizes": np.diff(ends).astype(np.int32),
        "instances.slots": np.where(levels, values, keys // 2).astype(np.int32),
        "instances.values": np.where(levels, 1.0, values),
        "instances.weights": arrays[f"{window}.w"],
    }
    answers = arrays[f"{window}.y"]
    found[_NUMBERS if answers.dtype.kind == "f" else _LABELS] = answers
    return {**found, **{name: arrays[name] for name in NAMES if name in arrays}}


def relearn(engine: Any, labels: list[Any], arrays: Arrays) -> None:
    """Let a new engine learn the instances of a file; ValueError and its like when the data does not fit."""
    names = unpack_names(arrays)
    vocabulary = Vocabulary()
    vocabulary.fill(names, *(arrays[f"space.{part}"] for part in ("kind", "column", "free")))
    engine.run(_block(vocabulary, Labels(labels), arrays), predict=False)
    held, *space = engine.space.dump()
    if held != names or (labels and engine.labels_of(np.arange(len(labels), dtype=np.int32)) != labels):
        raise ValueError("names or labels that its instances do not have")
    for part, like in zip(("kind", "column", "free"), space, strict=True):
        given = arrays[f"space.{part}"]
        if given.dtype != like.dtype or not np.array_equal(given, like):
            raise ValueError(f"space.{part} is not that of its instances")


def _block(vocabulary: Vocabulary, labels: Labels, arrays: Arrays) -> Block:
    """The instances, checked."""
    answers = _LABELS if len(labels) else _NUMBERS
    if arrays.keys() != {*NAMES, *_WHAT, answers}:
        raise ValueError(f"arrays that do not belong to it: {sorted(arrays.keys() ^ {*NAMES, *_WHAT, answers})}")
    sizes = checked_array(arrays, "instances.sizes", "i", (None,), 0, MOST_VALUES)
    rows, values = len(sizes), int(sizes.sum())
    if not 0 < rows <= MOST_INSTANCES or values > MOST_VALUES:
        raise ValueError(f"{rows} instances of {values} values")
    slots = checked_array(arrays, "instances.slots", "i", (values,), 1, len(arrays["space.kind"]) - 1)
    numbers = checked_array(arrays, "instances.values", "f", (values,))
    kinds = arrays["space.kind"][slots]
    if len(arrays["space.free"]) or not (kinds & (_NUMERIC | _INDICATOR)).all():
        raise ValueError("instances have values of features that are not there")
    if (numbers[kinds & _INDICATOR != 0] != 1.0).any():
        raise ValueError("instances have strings other than as 1")
    weights = checked_array(arrays, "instances.weights", "f", (rows,))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    if not weights.min() > 0.0:
        raise ValueError("instances of no weight")
    if len(labels):
        codes = checked_array(arrays, answers, "i", (rows,), 0, len(labels) - 1)
        return Block(vocabulary, indptr, slots, numbers, codes, labels, weights)
    targets = checked_array(arrays, answers, "f", (rows,), -1e150, 1e150)
    return Block(vocabulary, indptr, slots, numbers, weights=weights, targets=targets)


def same_state(one: State, other: State) -> bool:
    """Whether two engines gave the same, to the bit."""
    first, second = one[2], other[2]
    return (
        one[:2] == other[:2]
        and first.keys() == second.keys()
        and all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in ((first[k], second[k]) for k in first))
    )

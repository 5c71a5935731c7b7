"""A learner that has learned a little, to be saved, and changes to its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from varifold.base import files


def taught(model: Any, steps: int = 60) -> Any:
    """The model after `steps` instances of numbers, a number as name, and a string."""
    for t in range(steps):
        model.learn_one({"pressure": t % 7, 3: 1.5 * (t % 2), "valve": "open" if t % 3 else "shut"}, bool(t % 2))
    return model


def rewritten(path: Path, change: Any) -> None:
    """The file with its header and arrays changed and a right checksum."""
    header, arrays = files.read(path)
    change(header, arrays)
    files.write(path, files.encode(header, arrays))

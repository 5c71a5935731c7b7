"""Check output files before any work is done."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from varifold.errors import ParameterError


def check_target(path: str | None, inputs: Iterable[str] = ()) -> None:
    """Raise an error for a path that cannot be written to, or that is one of the files to read.

    It cannot be written to if it is a folder or a device, or if its folder is missing or not writable.
    """
    if path is None:
        return
    place = Path(path).absolute()
    if not place.parent.is_dir():
        raise ParameterError(f"the folder of {path} does not exist")
    if place.exists() and not place.is_file():
        raise ParameterError(f"{path} is a folder or a device, not a file to write to")
    if place.exists() and any(os.path.exists(name) and place.samefile(name) for name in inputs):
        raise ParameterError(f"{path} is a file to read; writing to it would destroy it, so choose another file")
    if not os.access(place.parent, os.W_OK):
        raise ParameterError(f"nothing can be written to the folder of {path}: permission denied")


def check_picture(path: str | None) -> None:
    """Check the path of a picture, whose suffix must be one that matplotlib can write."""
    if path is None:
        return
    from varifold.report.style import check_name

    check_target(path)
    check_name(path)

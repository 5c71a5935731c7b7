"""Check output files before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from varifold.errors import ParameterError


def check_target(path: str | None) -> None:
    """Raise an error for a path that is a folder or a device, or whose folder is missing or not writable."""
    if path is None:
        return
    place = Path(path).absolute()
    if not place.parent.is_dir():
        raise ParameterError(f"the folder of {path} does not exist")
    if place.exists() and not place.is_file():
        raise ParameterError(f"{path} is a folder or a device, not a file to write to")
    if not os.access(place.parent, os.W_OK):
        raise ParameterError(f"nothing can be written to the folder of {path}: permission denied")


def check_picture(path: str | None) -> None:
    """Check the path of a picture, whose suffix must be one that matplotlib can write."""
    if path is None:
        return
    from varifold.report.style import check_name

    check_target(path)
    check_name(path)

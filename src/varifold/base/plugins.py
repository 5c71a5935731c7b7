"""Load objects from other packages and the user's own files, by entry point or by ``package.module:name``."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

from varifold.base.nearest import nearest
from varifold.errors import EntryPointError, UnknownNameError

__all__ = ["entry_points_of", "from_entry_point", "from_path", "imported"]


@cache
def entry_points_of(group: str) -> dict[str, tuple[str, str]]:
    """Map name to (``package.module:attribute``, package) for the entry points of a group; the first of a name wins."""
    from importlib.metadata import entry_points  # takes milliseconds: only when needed

    places: dict[str, tuple[str, str]] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        package = point.dist.name if point.dist is not None else "an unknown package"
        places.setdefault(point.name, (point.value, package))
    return places


def from_entry_point(group: str, name: str) -> Any:
    """Import the object of an entry point; errors name the package that it came from."""
    where, package = entry_points_of(group)[name]
    return imported(where, repr(name), package)


def imported(where: str, what: str, package: str) -> Any:
    """Import the object at ``package.module:name`` that an entry point of a package names."""
    module, _, attribute = where.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for part in attribute.split("."):
            target = getattr(target, part)
    except Exception as error:
        raise EntryPointError(
            f"{what} ({where}) of {package} cannot be imported: {type(error).__name__}: {error}; repair or uninstall "
            f"{package}"
        ) from error
    return target


def from_path(path: str, what: str, hint: str = "") -> Any:
    """Import the object at ``package.module:name``, also from modules in the current folder.

    `hint` is appended to the error if there is no such module: the path may be a misspelled name.
    """
    module, _, attribute = path.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        target: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UnknownNameError(f"no module named {error.name!r} for the {what} {path!r}{hint}") from error
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise UnknownNameError(f"{module} has no {part!r} for the {what} {path!r}{nearest(part, dir(target))}")
        target = getattr(target, part)
    return target

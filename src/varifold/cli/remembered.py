"""Reading options in model files: saved with the model, applied again when it is used."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from varifold.streams.reading import ReadStream

_NOTED = ("target", "target_type", "id", "time", "weight", "absent", "omitted", "dates", "date_order")
_MOST_TYPES = 2_000
"""Most columns whose types are saved; of a wider set only those that are not numeric."""


def noted(args: argparse.Namespace, stream: ReadStream) -> dict[str, Any]:
    """Return what a model file saves of a run's options, and what was detected: types, notations, an index.

    Numeric columns that had other texts as well are `mixed`.
    """
    found = {name: getattr(args, name) for name in _NOTED if getattr(args, name) is not None}
    types = {name: column.type for name, column in stream.columns.items() if isinstance(name, str)}
    if len(types) > _MOST_TYPES:
        types = {name: kind for name, kind in types.items() if kind != "numeric"}
    found |= {"types": types, "notations": {name: tuple(each) for name, each in stream.notations.items()}}
    if mixed := [name for name, kind in types.items() if kind == "numeric" and stream.columns[name].revised]:
        found["mixed"] = mixed
    if stream.ignored:
        found["ignore"] = stream.ignored
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def columns_of(files: Sequence[str]) -> list[set[str]] | None:
    """Return the columns of each file, from its first rows; None if one of them is standard input."""
    if "-" in files:
        return None
    from varifold.streams.reading import column_names

    return [column_names(file) for file in files]


def apply_saved_options(
    args: argparse.Namespace,
    reading: Mapping[str, Any],
    names: Sequence[set[str]] | None,
    roles: Sequence[str] = ("target", "id", "time", "weight"),
) -> None:
    """Set options that were not given to those saved in the model, as far as the files have such columns (`names`).

    Columns of other roles than `roles` are left out.
    """
    for name, value in reading.items():
        if name in ("absent", "omitted", "target_type", "date_order", "notations"):
            _fill(args, name, tuple(value) if isinstance(value, list) else value)
        elif name in roles and names is not None and all(value in n for n in names):
            _fill(args, name, value)
    if names is None:
        return
    present = set().union(*names)
    used = {getattr(args, role) for role in ("target", "id", "time", "weight")}
    known = {str(reading[role]) for role in ("target", "id", "time", "weight") if reading.get(role) is not None}
    objects = {name[:at] for name in present for at, character in enumerate(name) if character == "."}
    left_out = [n for n in [*reading.get("ignore", ()), *sorted(known)] if n in (present | objects) - used]
    if left_out:
        _fill(args, "ignore", tuple(dict.fromkeys(left_out)))
    _fill(args, "dates", {n: parts for n, parts in reading.get("dates", {}).items() if n in present} or None)
    _fill(args, "types", {n: kind for n, kind in reading.get("types", {}).items() if n in present - used} or None)


def _fill(args: argparse.Namespace, name: str, value: Any) -> None:
    if getattr(args, name) is None:
        setattr(args, name, value)

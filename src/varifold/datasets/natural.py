"""Natural streams: prepared files whose features come and go by themselves, in their order, with their times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.data.assemble import assemble
from varifold._engine.data.block import Block, concatenate
from varifold._engine.names.vocabulary import Vocabulary
from varifold.datasets import build
from varifold.datasets.registry import Entry
from varifold.errors import DataError

__all__ = ["natural"]

Rows = tuple[Block, list[Any], list[str] | None]
"""Instances, their labels, and their times if the file has any."""


def natural(entry: Entry, path: Path) -> tuple[Block, list[str] | None]:
    """Read the prepared file of an entry; return a block with labels or targets, and the times of its rows."""
    makers: dict[str, Callable[[Entry, Path], Rows]] = {"rows": _rows, "stays": _stays, "hours ahead": _hours_ahead}
    block, y, times = makers[entry.unit](entry, path)
    if entry.task == "regression":
        return block.with_targets(np.array(y, dtype=np.float64)), times
    return build.labelled(entry, block, y), times


def _read(entry: Entry, path: Path, **options: Any) -> tuple[Block, list[Any], list[Any], list[Any]]:
    """Read the file; return its rows with their labels (None where absent), times and ids."""
    from varifold.streams import read  # imports data sets

    types = dict.fromkeys(entry.category, "category")
    given = {"time": entry.time or None, "id": entry.id or None, "ignore": entry.ignore, "types": types, **options}
    stream = read(path, unlabelled="keep", **given)
    batches = list(stream.batches())
    if not batches:
        raise DataError(f"{path} of data set {entry.name!r} has no rows")
    block = concatenate([batch.block for batch in batches])
    labels = [*block.labels.values, None]
    times = [time for batch in batches for time in batch.times or ()]
    ids = [each for batch in batches for each in batch.ids or ()]
    return block, [labels[code] for code in block.codes.tolist()], times, ids


def _rows(entry: Entry, path: Path) -> Rows:
    """Make one instance of each row that has a label."""
    block, y, times, _ = _read(entry, path, target=entry.target, target_type="class")
    kept = np.array([i for i, label in enumerate(y) if label is not None])
    return block.take(kept), [y[i] for i in kept], [times[i] for i in kept] if times else None


def _stays(entry: Entry, path: Path) -> Rows:
    """Make one instance of all rows with the same id: last, lowest and highest value of each measurement."""
    block, y, _, ids = _read(entry, path, target=entry.target, target_type="class", types={})
    first = np.flatnonzero([i == 0 or ids[i] != ids[i - 1] for i in range(len(ids))])
    stay = np.cumsum([0, *(ids[i] != ids[i - 1] for i in range(1, len(ids)))])
    of_cell = stay[np.repeat(np.arange(len(block)), np.diff(block.indptr))]
    vocabulary = Vocabulary()
    columns: list[tuple[Any, Any]] = []
    for i in np.unique(block.indices).tolist():
        name = block.vocabulary.name_of(i)
        at, values = of_cell[block.indices == i], block.values[block.indices == i]
        if name in entry.category:
            codes = np.zeros(len(first), dtype=np.int32)
            levels = {v: vocabulary.add_level(name, f"{v:g}") for v in np.unique(values).tolist()}
            codes[at] = [levels[v] for v in values.tolist()]
            columns.append((codes, None))
            continue
        for kind in ("last",) if name in entry.fixed else ("last", "lowest", "highest"):
            made = vocabulary.add(name if kind == "last" else f"{name}:{kind}")
            columns.append((made, _of_stays(kind, at, values, len(first))))
    return Block(vocabulary, *assemble(len(first), columns, vocabulary)), [y[i] for i in first], None


def _of_stays(kind: str, stay: NDArray[Any], values: NDArray[Any], stays: int) -> NDArray[np.float64]:
    """Return the last, lowest or highest value of each stay; NaN without any."""
    out = np.full(stays, np.nan)
    if kind == "last":
        out[stay] = values  # of several, the last is kept
    elif kind == "lowest":
        np.fmin.at(out, stay, values)
    else:
        np.fmax.at(out, stay, values)
    return out


def _hours_ahead(entry: Entry, path: Path) -> Rows:
    """Predict a column one hour ahead: from all columns now, the hour and weekday to come, and earlier values of it.

    The value of the same hour a day and a week before is known, too. Hours without the value to predict are left out.
    """
    block, _, times, _ = _read(entry, path, target=None)
    hours = [datetime.fromisoformat(time) for time in times]
    at = {hour: i for i, hour in enumerate(hours)}
    vocabulary = block.vocabulary
    target = vocabulary.add(entry.target)
    of_cell = np.repeat(np.arange(len(block)), np.diff(block.indptr))
    series = np.full(len(block) + 1, np.nan)  # the last entry is for hours that the file does not have
    series[of_cell[block.indices == target]] = block.values[block.indices == target]

    def value(i: int, later: int) -> float:
        return float(series[at.get(hours[i] + timedelta(hours=later), -1)])

    kept = [i for i in range(len(hours)) if value(i, 1) == value(i, 1)]
    part = block.take(np.array(kept))
    rows = part.rows()
    made = []
    for i, x in zip(kept, rows, strict=True):
        to_come = hours[i] + timedelta(hours=1)
        x |= {"hour": float(to_come.hour), "weekday": to_come.strftime("%a")}
        x |= {f"{entry.target}:day before": value(i, -23), f"{entry.target}:week before": value(i, -167)}
        made.append({name: v for name, v in x.items() if v == v})
    return Block.from_dicts(made), [value(i, 1) for i in kept], [times[i] for i in kept]

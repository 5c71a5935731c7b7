"""Numbers printed in the papers, shipped with the package."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from varifold.errors import DataError

__all__ = ["METRICS", "Published", "read_published"]

METRICS = {
    "CER": "cer",
    "errors": "cer",
    "accuracy": "accuracy",
    "F-measure": "f1",
    "run time ms": "seconds",
    "balanced accuracy %": "balanced_accuracy",
}
"""Attribute of a result by the printed name of the metric."""
COLUMNS = ("setting", "dataset", "method", "metric", "mean", "std", "n", "notes")
"""Columns of a file of printed numbers."""


@dataclass(frozen=True)
class Published:
    """One printed cell: error counts and percents as rates, milliseconds as seconds; no mean if it is illegible."""

    setting: str
    data: str
    method: str
    metric: str
    mean: float | None
    std: float | None
    rows: int | None
    note: str = ""
    repeats: int = 1
    """Runs behind the printed mean, according to its paper."""


def read_published(name: str, folder: Path | None = None) -> list[Published]:
    """Return the printed cells of a table that can be compared (not average ranks and parameters)."""
    place = resources.files("varifold.bench").joinpath("published") if folder is None else folder
    try:
        text = place.joinpath(name).read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"its printed numbers, published = {name!r}, cannot be read: {error.strerror}") from error
    rows = list(csv.DictReader(text.splitlines()))
    missing = [column for column in COLUMNS if rows and column not in rows[0]]
    if missing:
        raise DataError(f"{name} has no column {missing[0]!r}; it needs {', '.join(COLUMNS)}")
    cells = [_cell(row) for row in rows if row["metric"] in METRICS]
    if not cells and not any(row["metric"].startswith("parameter") for row in rows):
        raise DataError(f"published/{name} has no cell with a known metric ({', '.join(METRICS)})")
    return cells


def _cell(row: dict[str, str]) -> Published:
    rows = int(row["n"]) if row["n"] else None
    factor = 1.0
    if row["metric"] == "errors":
        factor = 1.0 / int(row["n"])
    elif row["metric"] == "run time ms":
        factor = 1e-3
    elif row["metric"].endswith("%"):
        factor = 1e-2
    return Published(
        setting=row["setting"],
        data=row["dataset"],
        method=row["method"],
        metric=METRICS[row["metric"]],
        mean=float(row["mean"]) * factor if row["mean"] else None,
        std=float(row["std"]) * factor if row["std"] else None,
        rows=rows,
        note=row["notes"],
    )

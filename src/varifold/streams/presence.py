"""`presence`: compute when each column is present, for the plot of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold._engine.data.block import Block
from varifold.streams.scenarios.columns import Columns

__all__ = ["Presence", "percent", "presence"]


@dataclass(frozen=True)
class Presence:
    """Share of rows in which each column is present, per stretch of the stream (of equal length).

    `shares` is columns x stretches, columns in the order in which they first occur; `starts` are the first rows of the
    stretches; `absent` is the share of absent cells per stretch; `balance` is labels x stretches, the share of each
    label; `counts` is the number of rows per label; `empty` counts rows without any column. `targets` are lowest, mean
    and highest of numbers to predict, None where labels are predicted.
    """

    rows: int
    names: list[str | int]
    starts: np.ndarray[Any, Any]
    shares: np.ndarray[Any, Any]
    absent: np.ndarray[Any, Any]
    balance: np.ndarray[Any, Any]
    labels: list[Any]
    counts: list[int]
    empty: int
    targets: dict[str, float] | None = None

    @property
    def absent_share(self) -> float:
        """Return the share of absent cells in the whole stream."""
        widths = np.diff(np.append(self.starts, self.rows))
        return float(np.average(self.absent, weights=widths)) if self.rows else 0.0


def presence(block: Block, stretches: int = 200) -> Presence:
    """Compute the presence of each column in at most `stretches` parts of equal length."""
    columns = Columns(block)
    n, d = len(block), columns.width
    parts = max(1, min(stretches, n))
    stretch = np.arange(n) * parts // max(n, 1)
    rows = np.maximum(np.bincount(stretch, minlength=parts), 1)
    # a column counts once per row, however many of its indicators are stored
    seen = np.unique(columns.row_of_cell * max(d, 1) + columns.of_cell)
    cell_row, cell_column = seen // max(d, 1), seen % max(d, 1)
    counts = np.bincount(cell_column * parts + stretch[cell_row], minlength=d * parts).reshape(d, parts)
    shares = counts / rows
    labelled = block.codes >= 0
    kinds = len(block.labels)
    balance = np.bincount(
        block.codes[labelled] * parts + stretch[labelled], minlength=kinds * parts
    ).reshape(kinds, parts) / rows  # fmt: skip
    return Presence(
        n,
        columns.names,
        np.searchsorted(stretch, np.arange(parts)),
        shares,
        1.0 - shares.mean(axis=0) if d else np.zeros(parts),
        balance,
        block.labels.values,
        np.bincount(block.codes[labelled], minlength=kinds).tolist(),
        int(np.count_nonzero(np.diff(block.indptr) == 0)),
        _range(block.targets),
    )


def _range(targets: np.ndarray[Any, Any] | None) -> dict[str, float] | None:
    """Return lowest, mean and highest of the targets that are not missing."""
    if targets is None or np.isnan(targets).all():
        return None
    return {
        "lowest": float(np.nanmin(targets)),
        "mean": float(np.nanmean(targets)),
        "highest": float(np.nanmax(targets)),
    }


def percent(share: float) -> str:
    """Format a share in whole percent, with more digits where that would round to 0% or 100%."""
    digits = 0
    while digits < 4 and 0 < share < 1 and f"{share:.{digits}%}" in (f"{0:.{digits}%}", f"{1:.{digits}%}"):
        digits += 1
    return f"{share:.{digits}%}"

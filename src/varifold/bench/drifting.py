"""Generated streams whose classes change over time, as data sets by path: ``varifold.bench.drifting:blobs``."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["blobs", "clusters", "hyperplane"]

ROWS, COLUMNS, EVERY = 20_000, 8, 500
Array = np.ndarray[Any, Any]
Rows = tuple[list[dict[str, float]], list[str]]


def _rows(draw: np.random.Generator, values: Any, labels: Any) -> Rows:
    """Return instances in which each value is present with probability .7."""
    there: Any = draw.random(values.shape) < 0.7
    rows = [
        {f"f{j}": float(row[j]) for j in range(COLUMNS) if seen[j]} for row, seen in zip(values, there, strict=True)
    ]
    return rows, [str(label) for label in labels.tolist()]


def hyperplane() -> Rows:
    """Generate eight numbers; the plane between two classes is another one after every 500 rows."""
    draw = np.random.default_rng(1)
    values = draw.normal(size=(ROWS, COLUMNS))
    planes = draw.normal(size=(ROWS // EVERY, COLUMNS))[np.arange(ROWS) // EVERY]
    return _rows(draw, values, ((values * planes).sum(axis=1) + 0.3 * draw.normal(size=ROWS) > 0).astype(int))


def blobs() -> Rows:
    """Generate three classes that move together, one standard deviation in 1,000 rows, back and forth."""
    draw = np.random.default_rng(2)
    labels = draw.integers(0, 3, ROWS)
    place = np.abs((np.arange(ROWS) / 1000 + 2.0) % 4.0 - 2.0)
    centres = 1.2 * draw.normal(size=(3, COLUMNS))
    return _rows(draw, draw.normal(size=(ROWS, COLUMNS)) + centres[labels] + place[:, None], labels)


def clusters() -> Rows:
    """Generate twelve clusters of three classes, which stay."""
    draw = np.random.default_rng(3)
    centre = draw.integers(0, 12, ROWS)
    values = 2.0 * draw.normal(size=(12, COLUMNS))[centre] + 0.5 * draw.normal(size=(ROWS, COLUMNS))
    return _rows(draw, values, draw.integers(0, 3, 12)[centre])

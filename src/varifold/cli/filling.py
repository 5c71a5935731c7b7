"""Treatments of absent readings for the demonstration: leave them out, or fill them in as a fixed table needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varifold.cli.sensors import Plant, Values

_FIXED = 0.05
"""Share of the stream that determines the columns of a fixed table."""


@dataclass(frozen=True)
class Treated:
    """Stream under one treatment: readings (NaN: left out), column names, and the number of filled-in values."""

    name: str
    readings: Values
    columns: list[str]
    made_up: int


def ways(made: Plant) -> list[Treated]:
    """Return the stream as it is, and filled in."""
    readings = made.readings
    at_start = np.flatnonzero(~np.isnan(readings[: int(_FIXED * len(readings))]).all(axis=0))
    means = mean_filled(readings)
    filled = [
        ("zeros filled in", zero_filled(readings), np.arange(readings.shape[1])),
        ("means filled in, fixed columns", means, at_start),
        ("means filled in", means, np.arange(readings.shape[1])),
        ("last values carried forward", carried(readings), np.arange(readings.shape[1])),
    ]
    return [Treated("absent stays absent", readings, made.names, 0)] + [
        Treated(
            name,
            values[:, columns],
            [made.names[j] for j in columns.tolist()],
            int(np.isnan(readings[:, columns]).sum() - np.isnan(values[:, columns]).sum()),
        )
        for name, values, columns in filled
    ]


def _counts(readings: Values) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Count the readings of each sensor so far."""
    return (~np.isnan(readings)).cumsum(axis=0)


def zero_filled(readings: Values) -> Values:
    """Fill in zero for every absent sensor that was seen before."""
    return np.where(np.isnan(readings) & (_counts(readings) > 0), 0.0, readings)


def mean_filled(readings: Values) -> Values:
    """Fill in the mean of its readings so far for every absent sensor that was seen before."""
    count = _counts(readings)
    mean = np.nancumsum(readings, axis=0) / np.maximum(count, 1)
    return np.where(np.isnan(readings) & (count > 0), mean, readings)


def carried(readings: Values) -> Values:
    """Fill in its last reading for every absent sensor that was seen before."""
    rows = np.arange(len(readings))[:, None]
    last = np.maximum.accumulate(np.where(np.isnan(readings), 0, rows), axis=0)
    return np.take_along_axis(readings, last, axis=0)

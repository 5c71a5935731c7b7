"""A generated crowd-sensing stream, in place of ORF3V's, which is not public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold.base import Block, Labels, Vocabulary, to_block
from varifold.bench.sources import FileData
from varifold.errors import UnknownNameError

__all__ = ["crowd", "made"]

CASES, DAYS, CITIES, ROWS = 8, 790, 28, 12_000
_SENSORS = ("noise", "eco2", "etvoc", "light", "pm", "temperature", "humidity", "battery")
_CROWDED = np.array([1.0, 0.8, 0.6, 0.3, 0.5, 0.0, 0.0, 0.0])
"""Weight of each kind of sensor as a measure of how crowded a place is."""
_TWO_LEVELS = (3, 5)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Readings:
    """Rows in time order: the readings of one city's sensors (NaN: silent), and how strict each rule was that day."""

    names: list[str]
    values: Array
    severity: Array
    """Rows x cases; 0 is no rule."""


def crowd(rows: int = ROWS) -> Readings:
    """Generate readings of sensors in some cities over 790 days with more and less restricted public life.

    As the paper describes its stream: every row is one city at one time, sensors join over the years and fall silent
    for days or for good, and the label is how strict a government's rules were (eight kinds of rules, cases 3 and 5
    with two levels, the others with four). Crowds follow the hour, the weekday and the rules; some sensors follow the
    crowds. Sizes are smaller (12,000 x 224 here, 152,798 x 954 there), and the levels of error are not comparable.
    """
    draw = np.random.default_rng([0, 954])
    day = np.sort(draw.uniform(0, DAYS, rows))
    city = draw.integers(CITIES, size=rows)
    severity = np.stack([_severity(draw, day, case) for case in range(1, CASES + 1)], axis=1)
    closed = (severity / np.maximum(severity.max(axis=0), 1)).mean(axis=1)
    busy = 1.2 + np.sin(2 * np.pi * day) - 0.4 * (day.astype(int) % 7 >= 5) - 2.0 * closed
    busy += draw.normal(0, 0.3, rows) + draw.normal(0, 0.4, CITIES)[city]
    values = np.full((rows, CITIES * len(_SENSORS)), np.nan)
    season = np.cos(2 * np.pi * day / 365)
    for kind, gain in enumerate(_CROWDED):
        column = city * len(_SENSORS) + kind
        scale, offset = draw.uniform(0.5, 3, CITIES), draw.normal(0, 2, CITIES)
        shown = offset[city] + scale[city] * (gain * busy + 0.5 * (1 - gain) * season + draw.normal(0, 0.5, rows))
        there = _alive(draw, day, city)
        values[np.flatnonzero(there), column[there]] = shown[there]
    names = [f"city{c + 1}.{sensor}" for c in range(CITIES) for sensor in _SENSORS]
    return Readings(names, values, severity)


def _severity(draw: np.random.Generator, day: Array, case: int) -> Array:
    """Generate a level that lasts for weeks: nothing for two months, strict at first, then up and down."""
    levels = 2 if case in _TWO_LEVELS else 4
    changes = np.concatenate([[0, draw.uniform(60, 75)], np.sort(draw.uniform(100, DAYS, 9))])
    level = np.concatenate([[0, levels - 1], draw.integers(0, levels, 9)])
    return np.asarray(level[np.searchsorted(changes, day, side="right") - 1])


def _alive(draw: np.random.Generator, day: Array, city: Array) -> Array:
    """Let sensors start late, fall silent for days or for good, and lose single readings."""
    birth = np.where(draw.random(CITIES) < 0.4, 0, draw.uniform(0, 0.7 * DAYS, CITIES))
    death = birth + draw.exponential(DAYS, CITIES)
    there = (day >= birth[city]) & (day < death[city]) & (draw.random(len(day)) < 0.9)
    for _ in range(4):
        start = draw.uniform(0, DAYS, CITIES)
        stop = start + draw.exponential(15, CITIES)
        there &= ~((day >= start[city]) & (day < stop[city]))
    return np.asarray(there)


def made(name: str) -> FileData:
    """Make ``made:crowd:CASE:binary`` (some rule or none) or ``made:crowd:CASE:levels``."""
    parts = name.split(":")
    if len(parts) != 4 or parts[1] != "crowd" or parts[2] not in map(str, range(1, CASES + 1)):
        raise UnknownNameError(f"no generated data set is called {name!r}; it is made:crowd:1 to 8:binary or levels")
    readings = crowd()
    level = readings.severity[:, int(parts[2]) - 1]
    y = (level > 0).astype(int) if parts[3] == "binary" else level
    block: Block = to_block(
        readings.values,
        y.tolist(),
        names=readings.names,
        vocabulary=Vocabulary(),
        labels=Labels(sorted(set(y.tolist()))),
    )
    return FileData(name, block)

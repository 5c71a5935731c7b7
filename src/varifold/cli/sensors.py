"""A generated stream for the demonstration: a cooling plant whose sensors fail in groups, drop out, retire and join.

Three hidden drivers (heat, load, wear) move slowly. Every sensor measures one or two of them with its own offset, gain
and noise. The plant trips when a mix of the drivers is high; that is the label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Group:
    """Sensors of one kind: number, typical reading, its spread, and its weights of (heat, load, wear)."""

    name: str
    sensors: int
    level: float
    spread: float
    sees: tuple[float, float, float]
    noise: float
    since: float = 0.0
    until: float = 1.0
    """Shares of the stream at which they are installed and removed."""
    out: tuple[tuple[float, float], ...] = ()
    """Shares of the stream between which the whole group is silent."""


GROUPS = (
    Group("temperature", 6, 72.0, 6.0, (1.0, 0.2, 0.0), 0.7, until=0.70, out=((0.16, 0.27),)),
    Group("pressure", 5, 410.0, 22.0, (0.1, 1.0, 0.0), 0.7, out=((0.37, 0.46),)),
    Group("vibration", 5, 3.2, 0.5, (0.0, 0.3, 1.0), 0.8, out=((0.22, 0.27), (0.80, 0.91))),
    Group("flow", 4, 130.0, 9.0, (-0.4, 0.8, 0.0), 0.9, out=((0.53, 0.59),)),
    Group("acoustic", 5, 48.0, 4.0, (0.2, 0.0, 1.0), 0.6, since=0.46),
    Group("infrared", 5, 305.0, 8.0, (1.0, 0.0, 0.1), 0.6, since=0.62),
)
NODES = 10
"""Battery-driven nodes, each present for a part of the stream."""


@dataclass(frozen=True)
class Plant:
    """A stream: readings (NaN: absent) of named sensors, labels, and the outages of groups."""

    names: list[str]
    groups: list[str]
    readings: Values
    labels: list[str]

    def rows(self) -> list[dict[str, float]]:
        """Return the instances, with the readings that are present."""
        return [{name: v for name, v in zip(self.names, row, strict=True) if v == v} for row in self.readings.tolist()]

    def outages(self) -> list[tuple[str, int, int]]:
        """Return (group, first, end) of every outage of a whole group."""
        n = len(self.labels)
        return [(g.name, int(a * n), int(b * n)) for g in GROUPS for a, b in g.out]


def plant(n: int = 8000, seed: int = 7) -> Plant:
    """Generate n readings of all sensors with their labels, the two in five of the highest score being trips."""
    rng = np.random.default_rng(seed)
    drivers = np.stack([_slow(rng, n, hold) for hold in (0.97, 0.9, 0.985)], axis=1)
    score = drivers @ np.array([1.0, 0.8, 1.1]) + rng.normal(0.0, 0.25, n)
    labels = np.where(score > np.quantile(score, 0.6), "trip", "ok").tolist()
    names, groups, columns = [], [], []
    for group in GROUPS:
        for k in range(group.sensors):
            names.append(f"{group.name}-{k + 1}")
            groups.append(group.name)
            columns.append(_sensor(rng, drivers, group))
    for k in range(NODES):
        names.append(f"node-{k + 1:02d}")
        groups.append("nodes")
        columns.append(_node(rng, drivers, k))
    return Plant(names, groups, np.stack(columns, axis=1), labels)


def _slow(rng: np.random.Generator, n: int, hold: float) -> Values:
    """Generate a hidden driver: a mean-reverting random walk of unit deviation."""
    steps = rng.normal(0.0, np.sqrt(1.0 - hold * hold), n)
    values = np.empty(n)
    now = rng.normal()
    for i in range(n):
        now = hold * now + steps[i]
        values[i] = now
    return values


def _sensor(rng: np.random.Generator, drivers: Values, group: Group) -> Values:
    n = len(drivers)
    gain = rng.uniform(0.7, 1.3)
    seen = drivers @ np.array(group.sees) * gain + rng.normal(0.0, group.noise, n)
    reading = group.level * rng.uniform(0.9, 1.1) + group.spread * seen
    absent = rng.random(n) < rng.uniform(0.03, 0.15)
    absent[: int(group.since * n)] = True
    absent[int(group.until * n) :] = True
    for a, b in group.out:
        absent[int(a * n) : int(b * n)] = True
    return np.where(absent, np.nan, reading)


def _node(rng: np.random.Generator, drivers: Values, k: int) -> Values:
    n = len(drivers)
    seen = drivers @ rng.normal(0.0, 0.6, 3) + rng.normal(0.0, 0.8, n)
    reading = 20.0 + 3.0 * seen
    start = int(n * k / NODES * 0.92)
    absent = np.ones(n, dtype=bool)
    absent[start : start + int(n * rng.uniform(0.16, 0.3))] = False
    absent |= rng.random(n) < 0.25
    return np.where(absent, np.nan, reading)

"""State of one column in a monitor: when it was seen, the distribution of its values, how often they repeat."""

from __future__ import annotations

import math
import zlib
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from varifold.base.estimator import Name
from varifold.monitor.drift import WARM_UP, Alarm, Distribution, Floats

__all__ = ["REGULAR", "Column", "Status", "patience"]

Status = Literal["present", "new", "silent", "gone"]
REGULAR = 20
"""Occurrences from which a column counts as regular: its birth and its silence are events."""
_RARE = 1e-6
_FACTOR = 3
_MOST_CATEGORIES = 64
_SAMPLE = 256
_INTERMITTENT = 5
"""Outages after which the longest of them counts as usual."""
_RESTLESS = 3
"""Alarms in quick succession after which a column's values count as wandering: only jumps still raise events."""


def patience(longest: int, share: float, floor: int) -> float:
    """Return how long a run may last before it is unusual, given the longest so far and the share of steps it takes.

    Under independent steps a run of that length has a chance of one in a million; three times the longest run so far
    covers runs that come in bursts.
    """
    chance = math.log(_RARE) / math.log(min(max(share, 1e-9), 0.9999))
    return max(float(floor), _FACTOR * longest, chance)


class Column:
    """State of one column."""

    def __init__(self, name: Name, first: int, threshold: float) -> None:
        self.name = name
        self.first = self.last = first
        self.count = 0
        self.latest = 0  # occurrences in the latest check that had any
        self.bins: dict[int, int] = {}  # stretch of the stream -> occurrences
        self.longest_gap = 0
        self.silent_since: int | None = None
        self.silent_total = 0
        self.outages = 0
        self.outage = 0
        self.born = False
        self.matched = False
        self.categories: dict[str, int] = {}
        self.numbers = 0
        self.sample: list[float] = []
        self.codes: list[float] = []
        self.run = self.longest_run = 1
        self.repeats = 0
        self.last_number = math.nan
        self.stuck = False
        self.alarms: list[int] = []
        self.range: list[float] = []  # lowest and highest of the quantiles of numbers before all alarms
        self.pending: Floats | None = None  # quantiles before the latest alarm, until the new ones are known
        offset = zlib.crc32(repr(name).encode()) / 2.0**32
        self.values = Distribution(threshold, offset)
        self.levels = Distribution(threshold, offset)

    # ------------------------------------------------------------------ presence

    @property
    def share(self) -> float:
        """Share of the instances that had this column, from its first to its last, announced silences left out."""
        return self.count / max(1, self.last - self.first + 1 - self.silent_total)

    def see(self, steps: list[int]) -> int | None:
        """Count occurrences; return the length of the silence that they end, if any."""
        ended = None
        gap = steps[0] - self.last - 1 if self.count else 0
        if self.silent_since is not None:
            ended = gap
            self.silent_total += gap
            self.outages += 1
            self.outage = max(self.outage, gap)
            self.silent_since = None
            if self.outages >= _INTERMITTENT:
                self.longest_gap = max(self.longest_gap, self.outage)
        else:
            self.longest_gap = max(self.longest_gap, gap)
        if len(steps) > 1:
            inner = max(b - a for a, b in pairwise(steps)) - 1
            self.longest_gap = max(self.longest_gap, inner)
        self.count += len(steps)
        self.latest = len(steps)
        self.last = steps[-1]
        return ended

    def falls_silent(self, now: int) -> bool:
        """Return, once per silence, whether the column is absent for longer than is usual for it."""
        if self.silent_since is not None or self.count < REGULAR:
            return False
        if now - self.last <= patience(self.longest_gap, 1.0 - self.share, REGULAR):
            return False
        self.silent_since = self.last + 1
        return True

    def status(self, now: int) -> Status:
        """Return whether the column is present, new, silent, or gone: silent for ten times as long as is unusual."""
        if self.silent_since is not None:
            long = 10.0 * patience(self.longest_gap, 1.0 - self.share, REGULAR)
            return "gone" if now - self.last > max(500.0, long) else "silent"
        if self.born and now - self.first < max(100, now // 20):
            return "new"
        return "present"

    # ------------------------------------------------------------------ values

    def add_numbers(self, steps: NDArray[np.int64], draws: Floats, values: Floats) -> Alarm | None:
        """Add numbers; return an alarm if their distribution changed."""
        self.numbers += len(values)
        self.sample = [*self.sample, *values.tolist()][-_SAMPLE:]
        self._count_repeats(values)
        return self.values.update(steps, draws, values)

    def add_strings(self, steps: NDArray[np.int64], draws: Floats, values: list[str]) -> Alarm | None:
        """Add strings; return an alarm if their shares changed, or if many are new."""
        for value in values:
            if value not in self.categories and len(self.categories) < _MOST_CATEGORIES:
                self.categories[value] = len(self.categories)
        codes = np.array([self.categories.get(value, _MOST_CATEGORIES) for value in values], dtype=float)
        self.codes = [*self.codes, *codes.tolist()][-_SAMPLE:]
        return self.levels.update(steps, draws, codes)

    def _count_repeats(self, values: Floats) -> None:
        previous = self.last_number
        if previous != values[0] and (values[1:] != values[:-1]).all():
            self.longest_run = max(self.longest_run, 0 if self.stuck else self.run)
            self.run, self.stuck, self.last_number = 1, False, float(values[-1])
            return
        for value in values.tolist():
            if value == previous:
                self.run += 1
                self.repeats += 1
            else:
                self.longest_run = max(self.longest_run, 0 if self.stuck else self.run)
                self.run, self.stuck = 1, False
            previous = value
        self.last_number = previous

    def gets_stuck(self) -> bool:
        """Return, once per run, whether the same number repeats for longer than is usual for the column."""
        if self.stuck or self.numbers < WARM_UP or self.run < REGULAR:
            return False
        before = self.numbers - self.run
        share = (self.repeats - self.run + 1) / max(1, before)
        if before < WARM_UP // 2 or share > 0.5 or self.run <= patience(self.longest_run, share, REGULAR):
            return False
        self.stuck = True
        return True

    def reports(self, alarm: Alarm, number: bool) -> bool:
        """Record an alarm; return whether to report it: of values that never settle only jumps out of all numbers."""
        self.alarms = [*self.alarms, self.numbers + self.count][-_RESTLESS:]
        if not number:
            return not self.wanders
        self.range = [min([*self.range, *alarm.before]), max([*self.range, *alarm.before])]
        low, high = self.range
        margin = 3.0 * (high - low)
        last = alarm.after[-16:]
        outside = bool(last.min() > high + margin or last.max() < low - margin)
        return not self.wanders or (alarm.direction == "out of range" and outside)

    @property
    def wanders(self) -> bool:
        """Whether the latest alarms followed each other so quickly that the values have no usual distribution."""
        return len(self.alarms) == _RESTLESS and self.alarms[-1] - self.alarms[0] < 20 * WARM_UP * _RESTLESS

    def category_change(self, alarm: Alarm) -> str:
        """Describe a change of strings by the one whose share changed most."""
        names = {code: name for name, code in self.categories.items()}
        codes, counts = np.unique(alarm.after, return_counts=True)
        after = dict(zip(codes.tolist(), (counts / len(alarm.after)).tolist(), strict=True))
        code = max({**alarm.shares, **after}, key=lambda c: abs(after.get(c, 0.0) - alarm.shares.get(c, 0.0)))
        name = repr(names[int(code)][:40]) if int(code) in names else "others"
        return f"{name} {alarm.shares.get(code, 0.0):.0%}, recently {after.get(code, 0.0):.0%}"

    def category_shares(self) -> dict[str, float]:
        """Return the share of each category among the latest strings."""
        names = {code: name for name, code in self.categories.items()}
        codes, counts = np.unique(np.array(self.codes), return_counts=True)
        return {
            names.get(int(c), "(other)"): float(k) / max(1, len(self.codes)) for c, k in zip(codes, counts, strict=True)
        }

    def dump(self) -> dict[str, Any]:
        """Return everything as JSON."""
        state = {key: value for key, value in vars(self).items() if key not in ("values", "levels", "pending")}
        state["last_number"] = None if math.isnan(self.last_number) else self.last_number
        state["pending"] = None if self.pending is None else self.pending.tolist()
        state["bins"] = list(self.bins.items())
        return {**state, "values": self.values.dump(), "levels": self.levels.dump()}

    @classmethod
    def restored(cls, saved: dict[str, Any], threshold: float) -> Column:
        """Make a column from what `dump` returned."""
        column = cls(saved["name"], saved["first"], threshold)
        column.values.fill(saved["values"])
        column.levels.fill(saved["levels"])
        pending = None if saved["pending"] is None else np.array(saved["pending"])
        number = math.nan if saved["last_number"] is None else saved["last_number"]
        plain = {
            key: value for key, value in saved.items() if key not in ("values", "levels", "pending", "last_number")
        }
        vars(column).update(plain, pending=pending, last_number=number, bins=dict(map(tuple, saved["bins"])))
        return column

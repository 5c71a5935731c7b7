"""`Monitor`: follow the features of a stream without labels and report what happens to them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold.base.blocks import to_block
from varifold.base.estimator import Name
from varifold.base.params import Constraint, Integer, Real, validate
from varifold.base.plural import plural
from varifold.errors import DataError, FeatureNameError, FeatureValueError
from varifold.monitor.column import REGULAR, Column, Status
from varifold.monitor.drift import LEVELS, WARM_UP, Alarm, Floats, uniform
from varifold.monitor.events import Event, EventLog
from varifold.monitor.renames import ENOUGH, Rename, match
from varifold.monitor.units import unit_change

__all__ = ["Feature", "Monitor"]

_START = 100
"""Instances after which a feature that is new counts as born."""
_BINS = 96
"""Most stretches of the presence map; when all are full, each covers twice as many instances."""
_ROWS = 512
"""Rows kept for the correlations of renames: as many recent ones, and as many drawn from all earlier ones."""
_MOST_BITS = 2000
"""Largest size of an int as a name, as of learners: Python writes no text of much larger ones."""
_LIMITS: dict[str, Constraint] = {
    "every": Integer(1),
    "max_features": Integer(1),
    "false_alarm": Real(0, 0.01, open_low=True),
}


@dataclass(frozen=True)
class Feature:
    """Summary of a feature in a monitor; steps are counted from 1.

    `share` is the share of instances that usually have it, `recent` that among the last hundred or so. `wanders` marks
    values that never settle, whose drift is not reported.
    """

    name: Name
    status: Status
    first: int
    last: int
    count: int
    share: float
    recent: float
    drifts: int
    wanders: bool


class Monitor:
    """Follow the features of a stream without labels: which appear, fall silent, return, drift, get stuck, are renamed.

    Every feature is judged by its own past. It is *silent* when it is absent for longer than is usual for it, and its
    values *drift* according to a test on their ranks; absent values take no part in that test. Events that begin
    together are one event, so an outage of forty sensors is one line. When a feature falls silent and another one is
    born that has the same distribution and the same correlations, `renames` suggests it; ``learner.rename`` applies it.
    The suggestion is withdrawn if both occur in one instance later: then the old one has only been silent.

    Parameters
    ----------
    every
        Number of instances after which features are checked, >= 1.
    false_alarm
        Expected share of values of an unchanged, exchangeable feature at which drift is reported, in (0, 0.01].
    max_features
        Most features followed at once, >= 1; the one that was not seen for longest is dropped first.

    Notes
    -----
    *Cost.* About half a microsecond per value and two per instance; at most about 10 kB per feature.

    *Drift.* Conformal p-values against all earlier values, and a CUSUM of bets on them (`varifold.monitor.drift`). For
    values that depend on their predecessors only some are tested, so that a daily cycle is no drift; a change of season
    is one.

    Examples
    --------
    >>> import random
    >>> from varifold.monitor import Monitor
    >>> monitor, rng = Monitor(), random.Random(3)
    >>> for step in range(2000):
    ...     x = {"load": rng.random(), "temp": rng.gauss(20, 4)}
    ...     if step >= 1000:
    ...         x["temp_f"] = 1.8 * x.pop("temp") + 32
    ...     monitor.learn_one(x)
    >>> for event in monitor.events:
    ...     print(event)
    1,001 birth: temp_f
    1,001 silence: temp
    1,001 rename: temp_f (was temp, degrees Celsius to Fahrenheit)

    """

    def __init__(self, every: int = 50, false_alarm: float = 1e-6, max_features: int = 1000) -> None:
        validate("Monitor", _LIMITS, {"every": every, "max_features": max_features, "false_alarm": false_alarm})
        self.every = every
        self.false_alarm = false_alarm
        self.max_features = max_features
        self.step = 0
        self._columns: dict[Name, Column] = {}
        self._log = EventLog()
        self._renames: list[Rename] = []
        self._buffer: list[dict[Name, float | str]] = []
        self._recent: deque[dict[Name, float | str]] = deque(maxlen=_ROWS)
        self._earlier: list[dict[Name, float | str]] = []
        self._presence: dict[Name, float] = {}
        self._stretch = every

    # ------------------------------------------------------------------ input

    def learn_one(self, x: Mapping[Name, Any]) -> None:
        """Follow one instance. A rejected instance changes nothing."""
        self._buffer.append(_checked(x, self.step + 1))
        self.step += 1
        if len(self._buffer) >= self.every:
            self.check()

    def learn_many(self, X: Any) -> None:
        """Follow many instances: a block, dicts, a data frame, a sparse matrix or an array."""
        for row in to_block(X).rows():
            self.learn_one(row)

    # ------------------------------------------------------------------ output

    @property
    def events(self) -> list[Event]:
        """Events so far, in the order in which they were noticed; the latest thousand."""
        return list(self._log)

    @property
    def renames(self) -> list[Rename]:
        """Suggested renames that nothing refuted, oldest first; `learner.rename({r.old: r.new})` applies one."""
        return list(self._renames)

    @property
    def features(self) -> dict[Name, Feature]:
        """Every followed feature, in the order in which they first appeared, as of the last check."""
        now = self.step - len(self._buffer)
        return {
            c.name: Feature(
                c.name, c.status(now), c.first, c.last, c.count, round(c.share, 4),
                round(self._presence.get(c.name, 0.0), 4), len(c.alarms), c.wanders,
            )
            for c in sorted(self._columns.values(), key=lambda c: (c.first, repr(c.name)))
        }  # fmt: skip

    def presence(self) -> tuple[list[Name], NDArray[np.int64], Floats]:
        """Return names, the first step of each stretch of the stream, and the share of each stretch that had a feature.

        At most 96 stretches of equal length; the last one may be shorter.
        """
        now = self.step - len(self._buffer)
        starts = np.arange(1, max(now, 1) + 1, self._stretch)
        sizes = np.diff(np.append(starts, now + 1))
        names = list(self.features)
        shares = np.zeros((len(names), len(starts)))
        for line, name in zip(shares, names, strict=True):
            for place, count in self._columns[name].bins.items():
                line[place] = count / sizes[place]
        return names, starts, shares

    def report(self) -> dict[str, Any]:
        """Return instances, features, events and suggested renames as JSON."""
        return {
            "instances": self.step,
            "features": [asdict(feature) for feature in self.features.values()],
            "events": self._log.dump(),
            "renames": [asdict(rename) for rename in self._renames],
        }

    # ------------------------------------------------------------------ a check

    def check(self) -> None:
        """Check every feature now instead of after the next `every` instances; use it at the end of a stream."""
        if not self._buffer:
            return
        start = self.step - len(self._buffer)
        seen: dict[Name, tuple[list[int], list[float | str]]] = {}
        for i, row in enumerate(self._buffer, start + 1):
            for name, value in row.items():
                steps, values = seen.setdefault(name, ([], []))
                steps.append(i)
                values.append(value)
        draws = np.stack([uniform(np.arange(start + 1, self.step + 1), seed) for seed in (1, 2)])
        while self.step > _BINS * self._stretch:
            self._stretch *= 2
            for column in self._columns.values():
                column.bins = _halved(column.bins)
        for name in sorted(seen, key=repr):
            self._take_in(name, *seen[name], start, draws)
        self._withdraw_renames(seen, start)
        self._keep_rows(start)
        rate = min(1.0, len(self._buffer) / 100.0)
        for name in self._columns:
            share = len(seen[name][0]) / len(self._buffer) if name in seen else 0.0
            self._presence[name] = self._presence.get(name, share) + rate * (share - self._presence.get(name, share))
        self._buffer = []
        silent = [column for column in self._columns.values() if column.falls_silent(self.step)]
        for column in silent:
            self._add("silence", column.last + 1, column, within=max(self.every, 2.0 / column.share))
        if len(self._columns) > self.max_features:
            self._drop()
        self._look_for_renames(silent)

    def _take_in(self, name: Name, steps: list[int], values: list[float | str], start: int, draws: Floats) -> None:
        column = self._columns.get(name)
        if column is None:
            self._columns[name] = column = Column(name, steps[0], 1.0 / (self.false_alarm * self.every))
        for step in steps:
            place = (step - 1) // self._stretch
            column.bins[place] = column.bins.get(place, 0) + 1
        ended = column.see(steps)
        if ended is not None:
            self._add("return", steps[0], column, f"after {plural(ended, 'instance')}", within=self.every)
        if not column.born and column.count >= REGULAR and column.first > _START:
            column.born = True
            self._add("birth", column.first, column, within=max(self.every, 2.0 / column.share))
        at = np.array(steps)
        draws = draws[:, at - start - 1]
        strings = [isinstance(value, str) for value in values]
        if not any(strings):
            self._numbers(column, at, draws, np.array(values, dtype=float))
            return
        is_string = np.array(strings)
        texts = [value for value in values if isinstance(value, str)]
        self._drift(column, column.add_strings(at[is_string], draws[:, is_string], texts), number=False)
        if len(texts) < len(values):
            rest = np.array([value for value in values if not isinstance(value, str)], dtype=float)
            self._numbers(column, at[~is_string], draws[:, ~is_string], rest)

    def _numbers(self, column: Column, steps: NDArray[np.int64], draws: Floats, values: Floats) -> None:
        self._drift(column, column.add_numbers(steps, draws, values), number=True)
        if column.gets_stuck():
            self._add("stuck", column.last - column.run + 1, column, f"at {column.last_number:g}", within=self.every)

    def _drift(self, column: Column, alarm: Alarm | None, number: bool) -> None:
        if alarm is not None:
            reported = column.reports(alarm, number)
            column.pending = alarm.before if number and reported else None
            if reported:
                detail = _described(alarm) if number else column.category_change(alarm)
                self._add("drift", alarm.step, column, detail, within=2.0 * self.every)
        elif column.pending is not None and column.values.ready:
            unit = unit_change(column.pending, column.values.quantiles(), WARM_UP)
            column.pending = None
            if unit is not None:
                step = next(
                    (e.step for e in reversed(self.events) if e.kind == "drift" and column.name in e.features), 0
                )
                self._add("unit change", step, column, unit, within=2.0 * self.every)

    def _add(self, kind: Any, step: int, column: Column, detail: str = "", within: float = 0.0) -> None:
        self._log.add(kind, step, self.step, column.name, detail, within)

    def _keep_rows(self, start: int) -> None:
        """Keep the latest rows, and a sample of those that leave them."""
        leaving = np.arange(start + 1, self.step + 1) - _ROWS  # the step of the row that each new one displaces
        places = (uniform(np.maximum(leaving, 0), 3) * leaving).astype(int)
        for row, place in zip(self._buffer, places.tolist(), strict=True):
            if len(self._recent) == _ROWS:
                if len(self._earlier) < _ROWS:
                    self._earlier.append(self._recent[0])
                elif place < _ROWS:
                    self._earlier[place] = self._recent[0]
            self._recent.append(row)

    def _drop(self) -> None:
        """Forget the columns that were not seen for longest."""
        kept = sorted(self._columns.values(), key=lambda c: (c.last, c.count, repr(c.name)))[-self.max_features :]
        self._columns = {c.name: c for c in sorted(kept, key=lambda c: (c.first, repr(c.name)))}
        self._presence = {name: self._presence[name] for name in self._columns}

    def _look_for_renames(self, silent: list[Column]) -> None:
        """Compare columns when one falls silent, and when a born one has 50, 100, 200 or 400 values."""
        lost = [c for c in self._columns.values() if c.silent_since is not None and not c.matched]
        born = [c for c in self._columns.values() if c.born and c.silent_since is None and not c.matched]
        born = [c for c in born if c.count >= ENOUGH]
        due = [c for c in born if any(0 <= c.count - k * ENOUGH < c.latest for k in (1, 2, 4, 8))]
        if not lost or not born or not (due or silent):
            return
        for rename in match(lost, born, [*self._earlier, *self._recent]):
            old, new = self._columns[rename.old], self._columns[rename.new]
            old.matched = new.matched = True
            self._renames.append(rename)
            unit = "" if rename.unit is None else f", {rename.unit}"
            self._log.add("rename", new.first, self.step, new.name, f"was {old.name}{unit}", within=self.every)

    def _withdraw_renames(self, seen: Mapping[Name, Any], start: int) -> None:
        """Withdraw suggestions whose columns are both in one row of this check."""
        for rename in [r for r in self._renames if r.old in seen and r.new in seen]:
            step = next(
                (i for i, row in enumerate(self._buffer, start + 1) if row.keys() >= {rename.old, rename.new}), 0
            )
            if not step:
                continue
            self._renames.remove(rename)
            for name in (rename.old, rename.new):
                self._columns[name].matched = False
            for event in self._log:
                if event.kind == "rename" and rename.new in event.features:
                    event.detail[rename.new] = f"looked like {rename.old}, but both are in instance {step:,}"

    # ------------------------------------------------------------------ storage

    def dump(self) -> dict[str, Any]:
        """Return everything as JSON; names that are ints stay ints."""
        return {
            "params": {"every": self.every, "false_alarm": self.false_alarm, "max_features": self.max_features},
            "step": self.step,
            "stretch": self._stretch,
            "columns": [column.dump() for column in self._columns.values()],
            "events": self._log.dump(),
            "renames": [asdict(rename) for rename in self._renames],
            "rows": [[list(row.items()) for row in rows] for rows in (self._buffer, self._recent, self._earlier)],
            "presence": list(self._presence.items()),
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Monitor:
        """Make a monitor from what `dump` returned."""
        monitor = cls(**saved["params"])
        monitor.step, monitor._stretch = saved["step"], saved["stretch"]
        threshold = 1.0 / (monitor.false_alarm * monitor.every)
        columns = (Column.restored(column, threshold) for column in saved["columns"])
        monitor._columns = {column.name: column for column in columns}
        monitor._log.fill(saved["events"])
        monitor._renames = [Rename(**rename) for rename in saved["renames"]]
        buffer, recent, earlier = ([dict(map(tuple, row)) for row in rows] for rows in saved["rows"])
        monitor._buffer, monitor._earlier = buffer, earlier
        monitor._recent.extend(recent)
        monitor._presence = dict(map(tuple, saved["presence"]))
        return monitor


def _halved(bins: dict[int, int]) -> dict[int, int]:
    """Join each pair of neighbouring stretches."""
    joined: dict[int, int] = {}
    for place, count in bins.items():
        joined[place // 2] = joined.get(place // 2, 0) + count
    return joined


def _checked(x: Mapping[Name, Any], step: int) -> dict[Name, float | str]:
    """Return the present values of an instance as floats and strings."""
    if not isinstance(x, Mapping):
        raise DataError(f"an instance is a dict of features. Got a {type(x).__name__} instead at step {step:,}.")
    row: dict[Name, float | str] = {}
    for name, value in x.items():
        if type(name) is not str and (not isinstance(name, int) or isinstance(name, bool)):
            raise FeatureNameError(
                f"feature {name!r} is a {type(name).__name__} at step {step:,}; names are str or int"
            )
        if isinstance(name, int) and name.bit_length() > _MOST_BITS:
            raise FeatureNameError(f"a feature name at step {step:,} has {name.bit_length():,} bits; use a str")
        if value is None:
            continue
        if type(value) is str:
            row[name] = value
            continue
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            shown = "an int too large for a float" if isinstance(value, int) else repr(value)
            raise FeatureValueError(
                f'feature {name!r} is {shown} at step {step:,}; pass a number, a string, or None for "not observed"'
            ) from None
        if math.isinf(number):
            raise FeatureValueError(
                f'feature {name!r} is {number!r} at step {step:,}; drop the key or pass None for "not observed"'
            )
        if number == number:
            row[name] = number
    return row


def _described(alarm: Alarm) -> str:
    """Describe a change of numbers: by the median, or by the range of most values where the median is no evidence."""
    before, after = np.interp([0.1, 0.5, 0.9], LEVELS, alarm.before), np.quantile(alarm.after, [0.1, 0.5, 0.9])
    (low, middle, high), (new_low, new_middle, new_high) = ([f"{v:.4g}" for v in part] for part in (before, after))
    if alarm.direction in ("wider", "narrower") or middle == new_middle:
        return f"{alarm.direction}: most values {low} to {high}, recently {new_low} to {new_high}"
    return f"{alarm.direction}: median {middle}, recently {new_middle}"

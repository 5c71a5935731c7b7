"""Fill a table from the store: printed numbers, our numbers next to them, and what is missing."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from varifold.bench.cell import Cell, Outcome
from varifold.bench.published import Published
from varifold.bench.runner import missing_model
from varifold.bench.statistics import Floats, win_tie_loss
from varifold.bench.table import Data, Method, Setting, Slot, Table

__all__ = [
    "Filled",
    "Gap",
    "Mark",
    "Number",
    "Tally",
    "fill",
    "largest_gaps",
    "lower_is_better",
    "mark",
    "tally",
    "won",
]

KINDS = ("paper", "default", "auto", "best", "variants")
HIGHER = ("accuracy", "f1", "balanced_accuracy", "auroc", "auprc", "r2")


def lower_is_better(metric: str) -> bool:
    """Return whether less is better."""
    return metric not in HIGHER


@dataclass(frozen=True)
class Number:
    """One of our numbers: the repeats of one candidate, or why there is none."""

    gap: str = ""
    text: str = ""
    """Specification shown."""
    tried: int = 1
    """Number of candidates of which the best is shown; more than one means tuned on the stream."""
    cells: tuple[Cell, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    wanted: int = 0
    means: dict[str, float] = field(default_factory=dict, repr=False, compare=False)
    """Means computed so far, by metric: a page needs each a hundred times."""

    def values(self, metric: str) -> Floats:
        """Return the values of a metric, one per repeat."""
        return np.array([o.value(metric) for o in self.outcomes], dtype=np.float64)

    def mean(self, metric: str) -> float:
        """Return the mean over the repeats (of seconds the median); NaN without any."""
        if not self.outcomes:
            return math.nan
        if metric not in self.means:
            values = self.values(metric)
            self.means[metric] = float(np.median(values) if metric == "seconds" else values.mean())
        return self.means[metric]

    def rated(self, metric: str) -> float:
        """Return the mean such that less is better: that of accuracy has a minus sign."""
        return self.mean(metric) if lower_is_better(metric) else -self.mean(metric)

    def std(self, metric: str) -> float:
        """Return the sample standard deviation; NaN for a single repeat."""
        values = self.values(metric)
        return float(values.std(ddof=1)) if len(values) > 1 else math.nan

    def __bool__(self) -> bool:
        return bool(self.outcomes)


Place = tuple[str, str]
"""Setting and data set."""


@dataclass
class Filled:
    """A table, filled as far as the store has outcomes."""

    table: Table
    numbers: dict[tuple[str, str, str, str], Number] = field(default_factory=dict)
    """By setting, data set, method and column."""
    printed: dict[tuple[str, str, str, str], Published] = field(default_factory=dict)
    """By setting, data set, method and metric."""

    def number(self, setting: Setting, data: Data, method: str, column: str) -> Number:
        """Return one of our numbers."""
        return self.numbers.get((setting.name, data.name, method, column), Number(gap="not in this table"))

    def published(self, setting: Setting, data: Data, method: str, metric: str) -> Published | None:
        """Return the printed number, if there is one."""
        number = self.printed.get((setting.name, data.name, method, metric))
        return number if number is not None and number.mean is not None else None

    def value(self, setting: Setting, data: Data, method: str, kind: str, metric: str) -> float:
        """Return a mean: the printed one (kind ``printed``), or that of one of our columns; NaN if there is none."""
        if kind == "printed":
            printed = self.published(setting, data, method, metric)
            return math.nan if printed is None or printed.mean is None else printed.mean
        return self.number(setting, data, method, kind).mean(metric)

    def rows(
        self, setting: Setting, methods: Iterable[str], kinds: Iterable[str], metric: str
    ) -> dict[str, list[float]]:
        """Return the means of methods, each of one kind, by data set, where all of them have one."""
        entries = list(zip(methods, kinds, strict=True))
        rows = {d.name: [self.value(setting, d, m, k, metric) for m, k in entries] for d in self.data_in(setting)}
        return {name: row for name, row in rows.items() if not any(map(math.isnan, row))}

    def tests(
        self, setting: Setting, last: str, others: Iterable[str], column: str, metric: str
    ) -> tuple[int, int, int]:
        """Count the paired t-tests of `last` against each other method on each data set: won, lost, all."""
        sign = 1 if lower_is_better(metric) else -1
        pairs = []
        for data, other in itertools.product(self.data_in(setting), others):
            a, b = (self.number(setting, data, method, column) for method in (last, other))
            if len(a.outcomes) == len(b.outcomes) > 1:
                pairs.append((sign * a.values(metric), sign * b.values(metric)))
        won, _, lost = win_tie_loss([a for a, _ in pairs], [b for _, b in pairs])
        return won, lost, len(pairs)

    def doubt(self, cell: Published) -> str:
        """Return what contradicts a printed number; empty if nothing does."""
        return next((doubt.why for doubt in self.table.doubts if doubt.covers(cell)), "")

    def at(self, setting: Setting, data: Data) -> dict[tuple[str, str], Number]:
        """Return the numbers of a data set in a setting by method and column."""
        return {key[2:]: n for key, n in self.numbers.items() if key[:2] == (setting.name, data.name) and n}

    def majority(self, setting: Setting, data: Data, metric: str) -> float:
        """Return the score of always predicting the most frequent label, or the mean so far; NaN if unknown."""
        for number in self.at(setting, data).values():
            if metric == "mae":
                return float(np.mean([o.mean_mae for o in number.outcomes]))
            share = float(np.mean([o.majority_share for o in number.outcomes]))
            return {"cer": 1 - share, "accuracy": share}.get(metric, math.nan)
        return math.nan

    def best(self, setting: Setting, data: Data, metric: str) -> tuple[str, str, Number] | None:
        """Return method, column and value of our best number, without tuned ones and variants of a protocol."""
        numbers = [
            (n.rated(metric), method, column, n)
            for (method, column), n in self.at(setting, data).items()
            if n.tried == 1 and not math.isnan(n.mean(metric)) and self.table.variant(column) is None
        ]
        return min(numbers, key=lambda f: f[0])[1:] if numbers else None

    def data_in(self, setting: Setting) -> list[Data]:
        """Return the data sets of a setting."""
        return [data for s, data in self.table.places() if s == setting]

    def repeats(self) -> tuple[int, int]:
        """Return the fewest and most repeats of a number."""
        counts = [len(n.outcomes) for n in self.numbers.values() if n]
        return (min(counts), max(counts)) if counts else (0, 0)

    def done(self) -> tuple[int, int]:
        """Return how many numbers of the table exist so far, and how many it has in total."""
        return sum(bool(n) for n in self.numbers.values()), len(self.numbers)

    def gaps(self) -> Counter[str]:
        """Count the reasons why numbers are missing."""
        return Counter(n.gap for n in self.numbers.values() if not n)

    def methods(self, group: str, setting: Setting) -> list[Method]:
        """Return the methods of a group in a setting."""
        there = {key[2] for key in (*self.numbers, *self.printed) if key[0] == setting.name}
        return [m for m in self.table.in_group(group) if m.name in there]


def fill(
    table: Table, outcomes: dict[Cell, Outcome], failures: dict[Cell, str] | None = None, repeats: int | None = None
) -> Filled:
    """Fill a table with outcomes; of several candidates the one with the best mean is shown."""
    places = {(setting.name, data.name) for setting, data in table.places()}
    methods = {method.name for method in table.methods}
    there = [p for p in table.published if (p.setting, p.data) in places and p.method in methods]
    printed = {(p.setting, p.data, p.method, p.metric): p for p in there}
    filled = Filled(table, printed=printed)
    # many cells, few models; a table is code or named on the command line, a user's study comes from the store
    missing = cache(partial(missing_model, imports=not table.own))
    for slot in table.slots(repeats):
        key = (slot.setting.name, slot.data.name, slot.method, slot.column)
        filled.numbers[key] = _number(slot, outcomes, failures or {}, table.metrics[0], missing)
    return filled


def _number(
    slot: Slot,
    outcomes: dict[Cell, Outcome],
    failures: dict[Cell, str],
    metric: str,
    missing: Callable[[str], str],
) -> Number:
    if slot.gap:
        return Number(gap=slot.gap)
    found = []
    for text, cells in slot.cells.items():
        there = [cell for cell in cells if cell in outcomes]
        if there:
            found.append(Number("", text, len(slot.cells), tuple(there), tuple(outcomes[c] for c in there), len(cells)))
    if not found:
        return Number(gap=_reason(slot, failures, missing))
    most = max(len(n.outcomes) for n in found)
    complete = [n for n in found if len(n.outcomes) == most]
    if metric == "seconds":
        return complete[0]
    return min(complete, key=lambda n: n.rated(metric))


def _reason(slot: Slot, failures: dict[Cell, str], missing: Callable[[str], str]) -> str:
    """Return why a slot has no outcome: a cell failed, its model cannot be made, or it has not run yet."""
    for cells in slot.cells.values():
        for cell in cells:
            if cell in failures:
                return failures[cell]
            reason = missing(cell.model)
            if reason:
                return reason
    return "not run yet"


@dataclass(frozen=True)
class Mark:
    """Comparison of one of our numbers with the printed one."""

    sign: str
    """``+`` better, ``~`` equal within two standard errors, ``-`` worse."""
    change: float
    """Relative to the printed value, positive is better."""


ROUNDING = 0.0005
"""Print has three digits; a deviation printed as .000 is not informative."""


def mark(number: Number, printed: Published | None, metric: str) -> Mark | None:
    """Compare two means: they are equal if they differ by at most two standard errors and the rounding of print.

    None if there is nothing to compare, or no deviation is known: of one stream, where print has none.
    """
    mean = number.mean(metric)
    if printed is None or printed.mean is None or math.isnan(mean) or metric == "seconds":
        return None
    gain = printed.mean - mean if lower_is_better(metric) else mean - printed.mean
    error = standard_error(number, printed, metric)
    if math.isnan(error):
        return None
    near = abs(gain) <= 2.0 * error + ROUNDING
    return Mark("~" if near else "+" if gain > 0 else "-", gain / max(printed.mean, 1e-9))


def standard_error(number: Number, printed: Published, metric: str) -> float:
    """Return the standard error of the difference between our mean and the printed one.

    A deviation that is not printed, or printed as .000, is taken to be ours, and ours, if there is one repeat, the
    printed one; NaN without either.
    """
    ours = number.std(metric)
    theirs = math.nan if printed.std is None or printed.std < ROUNDING else printed.std
    ours, theirs = (theirs if math.isnan(ours) else ours), (ours if math.isnan(theirs) else theirs)
    return math.sqrt(ours**2 / len(number.outcomes) + theirs**2 / printed.repeats)


@dataclass
class Tally:
    """Counts of printed cells, and of our numbers compared with them: better, equal and worse."""

    printed: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """By column (paper, default, auto, best, variants): compared, better (+), equal (~), worse (-)."""


def tally(filled: Iterable[Filled]) -> Tally:
    """Count over tables: as in the paper, library defaults, the default learner, the best of ours.

    Variants of a protocol are counted apart; of several the better one counts.
    """
    total = Tally(counts={c: {"compared": 0, "+": 0, "~": 0, "-": 0} for c in KINDS})
    for one in filled:
        table = one.table
        if table.stand_in or table.relative_to:
            continue
        for (setting_name, data_name, method, metric), printed in one.printed.items():
            if printed.mean is None:
                continue
            total.printed += 1
            setting, data = _place(table, setting_name, data_name)
            numbers: dict[str, Any] = {
                "paper": one.number(setting, data, method, "paper"),
                "default": one.number(setting, data, method, "default"),
                "auto": one.number(setting, data, "auto", "default"),
            }
            best = one.best(setting, data, metric)
            if best is not None:
                numbers["best"] = best[2]
            by_name = next(m for m in table.methods if m.name == method)
            tried = [one.number(setting, data, method, c) for c in table.columns(setting, by_name) if table.counted(c)]
            if any(tried):
                numbers["variants"] = min((n for n in tried if n), key=lambda n: n.rated(metric))
            for column, number in numbers.items():
                verdict = mark(number, printed, metric) if number else None
                if verdict is not None:
                    total.counts[column]["compared"] += 1
                    total.counts[column][verdict.sign] += 1
    return total


@dataclass(frozen=True)
class Gap:
    """One of our as-paper numbers that is far from the printed one."""

    table: Table
    printed: Published
    ours: float
    size: float
    """How much worse it is, or better."""
    why: str


def largest_gaps(filled: Iterable[Filled], *, better: bool = False) -> list[Gap]:
    """Return the ten as-paper numbers furthest behind print, or with `better` furthest ahead of it."""
    gaps = []
    for one in filled:
        table = one.table
        if table.stand_in or table.relative_to or table.apart:
            continue
        for (setting, data, method, metric), printed in one.printed.items():
            number = one.number(*_place(table, setting, data), method, "paper")
            ours = number.mean(metric)
            if printed.mean is None or math.isnan(ours) or metric == "seconds":
                continue
            size = printed.mean - ours if lower_is_better(metric) == better else ours - printed.mean
            why = next((reason.why for reason in table.reasons if reason.covers(printed)), one.doubt(printed))
            gaps.append(Gap(table, printed, ours, size, why))
    return [gap for gap in sorted(gaps, key=lambda g: -g.size)[:10] if gap.size > 0]


def won(filled: Filled) -> tuple[dict[str, int], int]:
    """Count, for each of our learners, where it beats the best printed number; and return these places.

    "best single method" is the best of ours in each place, ensembles over all of them (auto) left out.
    """
    counts: dict[str, int] = {}
    places = 0
    metric = filled.table.metrics[0]
    sign = -1 if lower_is_better(metric) else 1
    for setting, data in filled.table.places():
        printed = [p.mean for p in filled.printed.values() if (p.setting, p.data) == (setting.name, data.name)]
        there = {name: n.mean(metric) for (name, _), n in filled.at(setting, data).items()}
        best = max((sign * value for value in printed if value is not None), default=math.nan)
        if math.isnan(best) or not there:
            continue
        places += 1
        single = [sign * value for name, value in there.items() if not name.startswith("auto")]
        beaten = {name for name, value in there.items() if sign * value > best}
        for name in (*beaten, *(["best single method"] if single and max(single) > best else [])):
            counts[name] = counts.get(name, 0) + 1
    return counts, places


def _place(table: Table, setting: str, data: str) -> tuple[Setting, Data]:
    return (
        next(s for s in table.settings if s.name == setting),
        next(d for d in table.data if d.name == data),
    )

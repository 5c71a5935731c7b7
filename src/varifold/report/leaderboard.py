"""Show a leaderboard: learners in rows, the best first, streams in columns; windows of a stream as spread; cost."""

from __future__ import annotations

import math

import numpy as np

from varifold.bench.cell import curve_ends
from varifold.bench.compare import Filled, Number, lower_is_better
from varifold.bench.statistics import Floats, Ranking, rank
from varifold.bench.table import Data, Setting
from varifold.report.grids import METRIC, Grid, Shown

__all__ = [
    "cost_grid",
    "entries",
    "joint_ranking",
    "leaderboard_grid",
    "leaderboard_grids",
    "means_grid",
    "stretches",
    "windows",
]

WINDOWS = 5
_CURVES = {"cer": "curve", "log_loss": "loss_curve", "mae": "curve", "rmse": "loss_curve"}
"""Metrics whose mean so far is stored, and where."""


def entries(filled: Filled) -> list[str]:
    """Return the names of all learners of a table."""
    return [*(method.name for method in filled.table.methods), *filled.table.also]


def _number(filled: Filled, setting: Setting, data: Data, name: str) -> Number:
    return filled.number(setting, data, name, "default")


def stretches(number: Number, metric: str) -> tuple[Floats, Floats]:
    """Return where each stretch of the stored curve ends, in instances, and the mean of the metric within it.

    NaN where a stretch has none, and for metrics that have no curve.
    """
    outcome = number.outcomes[0]
    ends = np.array(curve_ends(outcome.instances), dtype=np.float64)
    if metric not in _CURVES:
        return ends, np.full(len(ends), np.nan)
    so_far = np.frombuffer(getattr(outcome, _CURVES[metric]), dtype="<f4")[: len(ends)].astype(np.float64)
    so_far = so_far**2 if metric == "rmse" else so_far
    known = ~np.isnan(so_far)
    sums = np.where(known, so_far, 0.0) * ends
    within = np.diff(sums, prepend=0.0) / np.diff(ends, prepend=0.0)
    within = np.where(known, np.maximum(within, 0.0), np.nan)
    return ends, np.sqrt(within) if metric == "rmse" else within


def windows(number: Number, metric: str) -> Floats:
    """Return the mean of a metric in each of some windows of the stream, of nearly the same length."""
    ends, within = stretches(number, metric)
    squares = within**2 if metric == "rmse" else within
    widths = np.diff(ends, prepend=0.0)
    parts = np.array_split(np.arange(len(ends)), WINDOWS)
    means = [float(np.average(squares[p], weights=widths[p])) if len(p) else math.nan for p in parts]
    return np.sqrt(means) if metric == "rmse" else np.array(means)


def joint_ranking(tables: list[Filled]) -> Ranking | None:
    """Rank the learners that several tables have in common, by the first metric of each, over all of their streams.

    Learners without a number on some stream are left out; None if fewer than two learners or streams are left.
    """
    names = [name for name in entries(tables[0]) if all(name in entries(one) for one in tables)]
    streams = [(one, setting, data) for one in tables for setting, data in one.table.places()]
    rows = {name: [_number(*stream, name).rated(stream[0].table.metrics[0]) for stream in streams] for name in names}
    complete = [name for name in names if not any(math.isnan(v) for v in rows[name])]
    if len(complete) < 2 or len(streams) < 2:
        return None
    return rank(complete, np.array([rows[name] for name in complete]).T)


def shown(value: float) -> str:
    """Format a number: three decimals below 10, else three or more digits; a diverged learner in powers of ten."""
    if math.isnan(value):
        return "–"
    if value >= 1e5:
        return f"{value:.0e}".replace("e+0", "e")
    return f"{value:,.1f}" if value >= 10 else f"{value:.3f}".removeprefix("0")


def leaderboard_grid(filled: Filled, metric: str, setting: Setting | None = None) -> Grid:
    """Make a grid of one metric in a setting (by default the first), learners by their average rank.

    The spread is the deviation over the repeats or, of a single run, that over five windows of the stream.
    """
    setting = setting or filled.table.settings[0]
    names, data = entries(filled), filled.table.data
    rated = np.array([[_number(filled, setting, each, name).rated(metric) for each in data] for name in names])
    best, order = _best(rated), sorted(range(len(names)), key=lambda i: _order(rated, i))
    rows = []
    for i in order:
        cells = []
        for j, each in enumerate(data):
            number = _number(filled, setting, each, names[i])
            deviation = _deviation(number, metric) if number else math.nan
            text = "" if math.isnan(deviation) else f"±{shown(deviation)}"
            cell = _cell(number.mean(metric), text, rated[i, j] == best[j], number.text)
            cells.append(cell if number else Shown("–", tone="gap", tip=number.gap))
        rows.append((names[i], cells))
    title = METRIC[metric] if len(filled.table.settings) == 1 else f"{setting.title}: {METRIC[metric]}"
    return Grid([(title, len(data))], [each.name for each in data], rows)


def _best(rated: Floats) -> list[float]:
    """Return the least of each column; NaN if it has none."""
    return [float(np.nanmin(column)) if np.isfinite(column).any() else math.nan for column in rated.T]


def _cell(value: float, spread: str, best: bool, tip: str = "") -> Shown:
    """Make the cell of a number, marked if it is the best of its column."""
    return Shown(shown(value), spread, "▸" if best else "", "better" if best else "", tip=tip)


def _deviation(number: Number, metric: str) -> float:
    """Return the deviation over repeats, or over windows of the stream; NaN if there is none."""
    parts = number.values(metric) if len(number.outcomes) > 1 else windows(number, metric)
    return math.nan if np.isnan(parts).any() else float(np.std(parts, ddof=1))


def means_grid(filled: Filled, metric: str) -> Grid:
    """Make a grid of the mean over the data sets in each setting, and the CPU time; the best mean first.

    A learner without a number for some data set has no mean. With a `Table.baseline`, the second number is the mean
    relative difference from that learner, over the data sets that both have, with its standard error.
    """
    settings, data, names = filled.table.settings, filled.table.data, entries(filled)
    numbers = [[[_number(filled, s, each, name) for each in data] for s in settings] for name in names]
    means = np.array([[np.mean([n.mean(metric) for n in row]) for row in own] for own in numbers])
    rated = means if lower_is_better(metric) else -means
    best = _best(rated)
    rows = []
    for i in sorted(range(len(names)), key=lambda i: _order(rated, i)):
        changes = [_change(filled, setting, names[i], metric) for setting in settings]
        cells = [_cell(*cell) for cell in zip(means[i].tolist(), changes, rated[i] == best, strict=True)]
        rows.append((names[i], [*cells, Shown(_mean_cost([n for row in numbers[i] for n in row]))]))
    title = f"{METRIC[metric]}, mean over {len(data)} data sets"
    return Grid([(title, len(settings)), ("CPU", 1)], [*(s.title for s in settings), "per instance"], rows)


def _mean_cost(numbers: list[Number]) -> str:
    outcomes = [o for number in numbers for o in number.outcomes]
    spent, instances = sum(o.cpu for o in outcomes), sum(o.instances for o in outcomes)
    return f"{1e6 * spent / instances:,.0f} µs" if instances else "–"


def _order(rated: Floats, i: int) -> tuple[int, float]:
    """Return the key of a learner in the order: few gaps first, then by its mean rank where it has numbers."""
    there = ~np.isnan(rated[i])
    ranks = [1 + int((rated[:, j] < rated[i, j]).sum()) for j in np.flatnonzero(there).tolist()]
    return (0 if len(ranks) * 2 > len(there) else 1, float(np.mean(ranks)) if ranks else math.inf)


def _change(filled: Filled, setting: Setting, name: str, metric: str) -> str:
    """Return the mean relative difference from the baseline in percent; empty if there is none."""
    if filled.table.baseline in ("", name):
        return ""
    pairs = np.array(
        [
            [_number(filled, setting, d, n).mean(metric) for n in (name, filled.table.baseline)]
            for d in filled.table.data
        ]
    )
    pairs = pairs[~np.isnan(pairs).any(axis=1)]
    if len(pairs) < 2:
        return ""
    change = 100.0 * (pairs[:, 0] / pairs[:, 1] - 1.0)
    few = "" if len(pairs) == len(filled.table.data) else f" on {len(pairs)} sets"
    return f"{change.mean():+.1f} % ±{np.std(change, ddof=1) / math.sqrt(len(change)):.1f}{few}"


def leaderboard_grids(filled: Filled) -> list[Grid]:
    """Make the grids of a leaderboard: means if there are several settings, each metric in each setting, and cost."""
    table = filled.table
    means = [means_grid(filled, metric) for metric in table.metrics] if len(table.settings) > 1 else []
    grids = [leaderboard_grid(filled, metric, setting) for metric in table.metrics for setting in table.settings]
    return [*means, *grids, cost_grid(filled)]


def cost_grid(filled: Filled) -> Grid:
    """Make a grid of CPU microseconds per instance and megabytes of each learner, in the first setting."""
    names, data = entries(filled), filled.table.data
    first = filled.table.settings[0]
    rows = [(name, [_cost(_number(filled, first, each, name)) for each in data]) for name in names]
    return Grid([("CPU time per instance, memory at the end", len(data))], [each.name for each in data], rows)


def _cost(number: Number) -> Shown:
    if not number:
        return Shown("–", tone="gap", tip=number.gap)
    outcome = number.outcomes[0]
    memory = "" if math.isnan(outcome.memory) else f", {outcome.memory / 1e6:,.0f} MB"
    return Shown(f"{1e6 * outcome.cpu / max(1, outcome.instances):,.0f} µs{memory}")

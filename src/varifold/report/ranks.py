"""Compare methods over data sets for a report: ranks with the critical difference, wins and losses."""

from __future__ import annotations

import math

import numpy as np

from varifold.bench.cell import curve_ends
from varifold.bench.compare import Filled, Number, lower_is_better
from varifold.bench.statistics import Ranking, paired_t, rank, stretch_t, win_tie_loss
from varifold.bench.table import Method, Setting
from varifold.report.grids import COLUMN, Grid, Shown, column_title

__all__ = ["entries", "group_sentences", "ranking", "study_sentences", "win_grid"]


def entries(filled: Filled, setting: Setting, group: str) -> list[tuple[str, str, str]]:
    """Return (label, method, column) of all our entries in a group."""
    table = filled.table
    found = [
        (m.name if table.own else f"{m.name}, {COLUMN[c]}", m.name, c)
        for m in filled.methods(group, setting)
        for c in table.columns(setting, m)
        if table.variant(c) is None
    ]
    return found + [(name, name, "default") for name in table.also]


def _numbers(filled: Filled, setting: Setting, group: str) -> tuple[list[str], list[list[Number]]]:
    """Return labels and numbers by data set of the entries that have all data sets that any entry has."""
    named = entries(filled, setting, group)
    rows = [[filled.number(setting, data, m, c) for _, m, c in named] for data in filled.data_in(setting)]
    rows = [row for row in rows if any(row)]
    full = [j for j in range(len(named)) if rows and all(row[j] for row in rows)]
    return [named[j][0] for j in full], [[row[j] for j in full] for row in rows]


def ranking(filled: Filled, setting: Setting, group: str, metric: str) -> Ranking | None:
    """Rank all our entries over the data sets of a setting; None for fewer than two of either."""
    labels, rows = _numbers(filled, setting, group)
    if len(labels) < 2 or len(rows) < 2:
        return None
    scores = np.array([[n.rated(metric) for n in row] for row in rows])
    return None if np.isnan(scores).any() else rank(labels, scores)


def group_sentences(filled: Filled, setting: Setting, group: str, metric: str) -> list[str]:
    """Compare the methods of a group: among the printed numbers, and within each of our columns.

    With three methods or more by Friedman's test and Nemenyi's p-values of the last method against the others; in our
    columns also by the number of paired t-tests that the last method wins.
    """
    table, methods = filled.table, filled.methods(group, setting)
    if table.own or len(methods) < 2:
        return []
    names = [m.name for m in methods]
    ours = [m for m in methods if table.columns(setting, m)]
    common = [c for c in table.columns(setting, ours[0]) if _in_all(filled, setting, ours, c)] if ours else []
    found = {"printed": _friedman(filled, setting, names, "printed", metric)}
    for column in common:
        names = [m.name for m in ours]
        parts = [_friedman(filled, setting, names, column, metric), _tests_won(filled, setting, names, column, metric)]
        found[column_title(table, column)] = " ".join(part for part in parts if part)
    return [f"{title}: {text}" for title, text in found.items() if text]


def _friedman(filled: Filled, setting: Setting, names: list[str], kind: str, metric: str) -> str:
    """Describe Friedman's test, average ranks and Nemenyi's p-values of the last method; empty for fewer than three."""
    rows = filled.rows(setting, names, [kind] * len(names), metric)
    if len(names) < 3 or len(rows) < 2:
        return ""
    sign = 1 if lower_is_better(metric) else -1
    ranked = rank(names, sign * np.array(list(rows.values())))
    ranks = ", ".join(f"{name} {r:.2f}" for name, r in zip(ranked.names, ranked.ranks, strict=True))
    *others, last = names
    nemenyi = ", ".join(f"{name} {ranked.nemenyi(last, name):.2g}" for name in others)
    return f"{sentence(ranked)} Average ranks: {ranks}. Nemenyi p of {last} against {nemenyi}."


def _tests_won(filled: Filled, setting: Setting, names: list[str], column: str, metric: str) -> str:
    *others, last = names
    won, lost, tests = filled.tests(setting, last, others, column, metric)
    return f"{last} is significantly better in {won} of {tests} paired t-tests and worse in {lost}." if tests else ""


def study_sentences(filled: Filled, setting: Setting) -> list[str]:
    """Test the best learner of a study against each other one, on its single data set.

    With several streams by a paired t-test over them; with one by a paired t-test over its stretches.
    """
    data, metric = filled.table.data[0], filled.table.metrics[0]
    numbers = {m.name: filled.number(setting, data, m.name, "default") for m in filled.table.methods}
    numbers = {name: number for name, number in numbers.items() if number and not math.isnan(number.mean(metric))}
    if len(numbers) < 2:
        return []
    best = min(numbers, key=lambda name: numbers[name].mean(metric))
    repeats = {len(number.outcomes) for number in numbers.values()}
    if len(repeats) > 1:
        return []
    single = repeats == {1}
    p = {name: _p(numbers[best], other, metric, single) for name, other in numbers.items() if name != best}
    listed = ", ".join(f"{name} {'undefined' if math.isnan(v) else f'{v:.2g}'}" for name, v in p.items())
    over = "the stretches of the stream" if single else f"{repeats.pop()} streams"
    return [f"{best} against the others, p of a paired t-test over {over}: {listed}."]


def _p(first: Number, second: Number, metric: str, single: bool) -> float:
    if not single:
        return paired_t(first.values(metric), second.values(metric))
    ends = np.array(curve_ends(first.outcomes[0].instances), dtype=np.float64)
    a, b = (np.frombuffer(n.outcomes[0].curve, dtype="<f4").astype(np.float64) for n in (first, second))
    return stretch_t(a[: len(ends)], b[: len(ends)], ends)


def _in_all(filled: Filled, setting: Setting, methods: list[Method], column: str) -> bool:
    return all(column in filled.table.columns(setting, m) for m in methods)


def win_grid(filled: Filled, setting: Setting, group: str, metric: str) -> Grid | None:
    """Count wins, ties and losses of each entry against each other one, by paired t-tests on the same streams."""
    labels, rows = _numbers(filled, setting, group)
    sign = 1 if lower_is_better(metric) else -1
    values = [[sign * n.values(metric) for n in row] for row in rows]
    if len(labels) < 2 or not rows or any(len(v) < 2 or len(v) != len(row[0]) for row in values for v in row):
        return None
    grid = []
    for i, label in enumerate(labels):
        cells = []
        for j in range(len(labels)):
            if i == j:
                cells.append(Shown("", tone="quiet"))
                continue
            won, tied, lost = win_tie_loss([row[i] for row in values], [row[j] for row in values])
            tone = "better" if won > lost else "worse" if lost > won else ""
            cells.append(Shown(f"{won}/{tied}/{lost}", tone=tone))
        grid.append((label, cells))
    return Grid([("wins / ties / losses against", len(labels))], labels, grid)


def sentence(found: Ranking) -> str:
    """Describe Friedman's test in words."""
    if math.isnan(found.p):
        return (
            f"{len(found.names)} entries over {found.sets} data sets; Friedman's test needs three entries that differ."
        )
    verdict = "they differ" if found.p < 0.05 else "no difference shown"
    return (
        f"{len(found.names)} entries over {found.sets} data sets: Friedman χ² = {found.chi2:.2f}, "
        f"p = {found.p:.3g} ({verdict} at 5 %), Nemenyi critical difference {found.difference:.2f}."
    )

"""Compare methods over data sets for a report: ranks with the critical difference, wins and losses."""

from __future__ import annotations

import math

import numpy as np

from varifold.bench.compare import Filled, Number, lower_is_better
from varifold.bench.statistics import Ranking, rank, win_tie_loss
from varifold.bench.table import Method, Setting
from varifold.report.grids import COLUMN, Grid, Shown, column_title, value_of

__all__ = ["entries", "group_sentences", "ranking", "win_grid"]


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
    sign = 1 if lower_is_better(metric) else -1
    scores = np.array([[sign * n.mean(metric) for n in row] for row in rows])
    return None if np.isnan(scores).any() else rank(labels, scores)


def group_sentences(filled: Filled, setting: Setting, group: str, metric: str) -> list[str]:
    """Run Friedman's test over the methods of a group: among the printed numbers, and within each of our columns."""
    methods = filled.methods(group, setting)
    if filled.table.own or len(methods) < 3:
        return []
    sign = 1 if lower_is_better(metric) else -1
    ours = [m for m in methods if filled.table.columns(setting, m)]
    common = [c for c in filled.table.columns(setting, ours[0]) if _in_all(filled, setting, ours, c)] if ours else []
    found = []
    for kind in ("printed", *common):
        among = methods if kind == "printed" else ours
        rows = [[value_of(filled, setting, d, m.name, kind, metric) for m in among] for d in filled.data_in(setting)]
        rows = [row for row in rows if not any(math.isnan(v) for v in row)]
        if len(rows) < 2:
            continue
        ranked = rank([m.name for m in among], sign * np.array(rows))
        title = kind if kind == "printed" else column_title(filled.table, kind)
        ranks = ", ".join(f"{name} {r:.2f}" for name, r in zip(ranked.names, ranked.ranks, strict=True))
        found.append(f"{title}: {sentence(ranked)} Average ranks: {ranks}.")
    return found


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

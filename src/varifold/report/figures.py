"""Draw the error over time for every data set of a setting, as in the papers' figures."""

from __future__ import annotations

from html import escape

import numpy as np

from varifold.bench.cell import curve_ends
from varifold.bench.compare import Filled, Number
from varifold.bench.statistics import Floats
from varifold.bench.table import Setting
from varifold.report.grids import COLUMN
from varifold.report.svg import Line, colour, error_chart

__all__ = ["charts", "curve", "legend"]


def curve(number: Number, field: str = "curve") -> tuple[Floats, Floats, Floats]:
    """Return instances, mean error so far (or another stored curve) and its deviation over the repeats.

    Points at which a repeat has no value are left out; all of them if a repeat has no such curve.
    """
    at = np.array(curve_ends(number.outcomes[0].instances), dtype=np.float64)
    stored = [np.frombuffer(getattr(o, field), dtype="<f4")[: len(at)] for o in number.outcomes]
    if any(len(run) < len(at) for run in stored):
        return np.zeros(0), np.zeros(0), np.zeros(0)
    runs = np.array(stored, dtype=np.float64)
    keep = ~np.isnan(runs).any(axis=0)
    runs, at = runs[:, keep], at[keep]
    spread = runs.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(len(at))
    return at, runs.mean(axis=0), spread


def _entries(filled: Filled, setting: Setting, group: str) -> list[tuple[str, str, str, str, bool]]:
    """Yield (label, method, column, colour, dashed): one colour per method, as-paper dashed."""
    found: list[tuple[str, str, str, str, bool]] = []
    methods = filled.methods(group, setting)
    for i, method in enumerate(methods):
        there = filled.table.columns(setting, method)
        for column in [c for c in ("default", "paper") if c in there]:  # variants would clutter it
            label = method.name if filled.table.own else f"{method.name}, {COLUMN[column]}"
            found.append((label, method.name, column, colour(i), column == "paper"))
    for i, name in enumerate(filled.table.also):
        found.append((name, name, "default", colour(len(methods) + i), False))
    return found


def charts(filled: Filled, setting: Setting, group: str, width: int = 264, height: int = 170) -> list[str]:
    """Make one drawing for each data set with numbers."""
    drawn = []
    for data in filled.data_in(setting):
        lines = []
        for label, method, column, ink, dashed in _entries(filled, setting, group):
            number = filled.number(setting, data, method, column)
            if number:
                lines.append(Line(label, *curve(number), ink, dashed))
        if lines:
            usual = filled.majority(setting, data, "mae" if filled.table.metrics[0] == "mae" else "cer")
            name = filled.table.title if filled.table.own else data.name
            drawn.append(error_chart(name, lines, usual, width, height))
    return drawn


def legend(filled: Filled, setting: Setting, group: str) -> str:
    """Make the legend of the lines that are drawn."""
    items = []
    for label, method, column, ink, dashed in _entries(filled, setting, group):
        if not any(filled.number(setting, data, method, column) for data in filled.data_in(setting)):
            continue
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        line = f'<svg viewBox="0 0 22 8"><path d="M0 4H22" stroke="{ink}" stroke-width="2"{dash}/></svg>'
        items.append(f"<li>{line}{escape(label)}</li>")
    dots = (
        '<svg viewBox="0 0 22 8"><path d="M0 4H22" stroke="#767676" stroke-width="1.5" stroke-dasharray="1 3"/></svg>'
    )
    usual = "mean so far" if filled.table.metrics[0] == "mae" else "majority class"
    return f'<ul class="lines">{"".join(items)}<li>{dots}{usual}</li></ul>'

"""Run learners on a table's streams and draw panels of curves, for all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from varifold.bench.cell import Cell
from varifold.bench.sources import stream_of
from varifold.bench.statistics import Floats
from varifold.bench.table import Data, Setting, Table
from varifold.bench.work import spec_of
from varifold.evaluate import Result, prequential
from varifold.report.style import GREY, LINES, headline, label_ends, pyplot, quiet, thousands

__all__ = ["Lines", "cells_of", "curve_panels", "mean_curve", "run_cell"]

POINTS = 120
OUTLIER = 3.0
"""A line that ends above this multiple of the panel's median end is cut off."""
Lines = Mapping[str, tuple[Floats, Floats]]
"""Instances and values by name of a line."""


def cells_of(table: Table, setting: Setting, data: Data, method: str, column: str, repeats: int) -> list[Cell]:
    """Return the cells of one number of a table; with several candidates, those of the first."""
    for slot in table.slots(repeats):
        if (slot.setting, slot.data, slot.method, slot.column) == (setting, data, method, column):
            return list(next(iter(slot.cells.values())))
    raise LookupError(f"{method} ({column}) has no cell on {data.name} in {table.name}")


def run_cell(cell: Cell) -> Result:
    """Run a cell with a finer curve than the store keeps."""
    stream = stream_of(cell)
    found: Result = prequential(spec_of(cell)(), stream.prepared, curve_points=POINTS)
    return found


def mean_curve(results: Sequence[Result], field: str) -> tuple[Floats, Floats]:
    """Return the instances, and the mean over repeats of a field of the curves, where all have a value."""
    points = min(len(r.curve.at) for r in results)
    values = np.array([getattr(r.curve, field)[:points] for r in results], dtype=np.float64)
    there = ~np.isnan(values).any(axis=0)
    return results[0].curve.at[:points][there].astype(np.float64), values.mean(axis=0)[there]


def curve_panels(panels: Mapping[str, Lines], ylabel: str, title: str, *, zero: bool = False) -> Any:
    """Draw a figure with a panel for each data set and one colour for each line name; `zero` adds a line at 0."""
    plt = pyplot()
    rows = -(-len(panels) // 2)
    figure, axes = plt.subplots(rows, 2, figsize=(11.2, 2.9 * rows), squeeze=False)
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours = {name: LINES[i % len(LINES)] for i, name in enumerate(names)}
    for ax, (panel, lines) in zip(axes.flat, panels.items(), strict=False):
        _panel(ax, panel, lines, colours)
        ax.set_ylabel(ylabel)
        if zero:
            ax.axhline(0.0, color=GREY, linewidth=0.6)
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    headline(figure, title, x=0.01, y=1.0, va="top")
    figure.tight_layout(w_pad=6, rect=(0, 0, 1, 1 - 0.1 / figure.get_figheight()))
    return figure


def _panel(ax: Any, title: str, lines: Lines, colours: Mapping[str, str]) -> None:
    quiet(ax)
    shown = {name: line for name, line in lines.items() if len(line[0])}
    settled = [values[len(values) // 10 :] for _, values in shown.values()]
    ends_at = np.array([values[-1] for values in settled])
    # a line far above the others would flatten them: it leaves the panel, and its label has the value
    usual = [v for v, end in zip(settled, ends_at, strict=True) if end <= OUTLIER * max(np.median(ends_at), 1e-9)]
    low, high = min(v.min() for v in settled), max(v.max() for v in usual or settled)
    margin = 0.12 * max(high - low, 1e-3)
    ax.set_ylim(low - margin, high + margin)
    for name, (at, values) in shown.items():
        ax.plot(at, values, color=colours[name], linewidth=1.6)
    last = max(float(at[-1]) for at, _ in shown.values())
    ends = [_end(float(values[-1]), name, colours[name], high + margin) for name, (_, values) in shown.items()]
    label_ends(ax, ends, last, 0.085 * (high - low + 2 * margin))
    ax.set_title(title, fontsize=10, color=GREY)
    ax.set_xlabel("instances")
    thousands(ax)
    ax.locator_params(axis="x", nbins=6)


def _end(value: float, name: str, colour: str, top: float) -> tuple[float, str, str]:
    """Return the height, text and colour of the label of a line; that of a line above the panel has its value."""
    return (value, name, colour) if value <= top else (top, f"{name} ↑ {value:.2f}", colour)

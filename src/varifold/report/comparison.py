"""Draw several learners on one stream: recent errors, and the error and loss so far."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from varifold.bench.compare import Filled, Number
from varifold.bench.statistics import Floats
from varifold.errors import DataError
from varifold.report.curves import instances_below
from varifold.report.figures import curve
from varifold.report.style import GREY, LINES, label_ends, pyplot, quiet, set_title, write

__all__ = ["loss_curve", "plot_comparison", "recent"]

_RECENT = 3
"""Points of a stored curve over which a recent error is averaged."""


def plot_comparison(filled: Filled, path: str | os.PathLike[str]) -> None:
    """Draw the error of the last instances, the error so far, and the log loss so far if learners have one.

    The error of regressors is the mean absolute one, their loss the root of the mean squared error.
    """
    setting, data = filled.table.settings[0], filled.table.data[0]
    found = {m.name: filled.number(setting, data, m.name, "default") for m in filled.table.methods}
    numbers = {name: number for name, number in found.items() if number}
    if not numbers:
        raise DataError(f"nothing of {filled.table.name} has been run, so that there is nothing to draw")
    numeric = filled.table.metrics[0] == "mae"
    error, loss = ("absolute error", "RMSE") if numeric else ("error", "log loss")
    width = recent_width(next(iter(numbers.values())))
    panels = [(f"{error}, last {width:,}", recent), (f"{error} so far", error_curve), (f"{loss} so far", loss_curve)]
    drawn = [(title, {k: make(n) for k, n in numbers.items()}) for title, make in panels]
    drawn = [(title, {k: c for k, c in curves.items() if len(c[0])}) for title, curves in drawn]
    drawn = [(title, curves) for title, curves in drawn if curves]
    figure, axes = pyplot().subplots(len(drawn), 1, figsize=(9, 3.1 * len(drawn)), sharex=True, squeeze=False)
    colours = {name: LINES[i % len(LINES)] for i, name in enumerate(numbers)}
    for (title, curves), ax in zip(drawn, axes[:, 0], strict=True):
        _panel(ax, title, curves, colours)
    majority = filled.majority(setting, data, "mae" if numeric else "cer")
    for ax in axes[:2, 0]:
        ax.axhline(majority, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
        place = {"xytext": (0, 3), "textcoords": "offset points", "color": GREY, "fontsize": 9}
        usual = f"mean of the targets {majority:.4g}" if numeric else f"majority class {majority:.3f}"
        ax.annotate(usual, (0, majority), **place)
    set_title(axes[0, 0], f"{filled.table.title}: {filled.table.caption}", 12)
    instances_below(axes[-1, 0], max(float(at[-1]) for _, curves in drawn for at, _ in curves.values()))
    write(figure, path)


def _panel(ax: Any, title: str, curves: dict[str, tuple[Floats, Floats]], colours: dict[str, str]) -> None:
    quiet(ax)
    for name, (at, values) in curves.items():
        ax.plot(at, values, color=colours[name], linewidth=1.7)
    top = 1.12 * max(float(np.max(values[len(values) // 20 :])) for _, values in curves.values())
    ax.set_ylim(0, max(top, 0.02))
    ax.set_ylabel(title)
    ends = [(float(values[-1]), f"{name} {_digits(values[-1])}", colours[name]) for name, (_, values) in curves.items()]
    label_ends(ax, ends, max(float(at[-1]) for at, _ in curves.values()), 0.09 * ax.get_ylim()[1])


def _digits(value: float) -> str:
    """Format a number with three decimals, or four digits if it is large."""
    return f"{value:.3f}" if value < 10 else f"{value:.4g}"


def error_curve(number: Number) -> tuple[Floats, Floats]:
    """Return instances and the mean error so far."""
    return curve(number)[:2]


def loss_curve(number: Number) -> tuple[Floats, Floats]:
    """Return instances and the mean log loss so far; empty for a learner without probabilities."""
    return curve(number, "loss_curve")[:2]


def recent_width(number: Number) -> int:
    """Return the number of instances of a recent error."""
    at, _ = error_curve(number)
    width = min(_RECENT, max(1, len(at) // 4))
    return int(at[width] - at[0]) if len(at) > width else int(at[-1])


def recent(number: Number) -> tuple[Floats, Floats]:
    """Return instances and the error among the last ones, over a few points of the stored curve."""
    at, so_far = error_curve(number)
    first = number.outcomes[0].instances - number.outcomes[0].scored
    wrong = so_far * (at - first)
    width = min(_RECENT, max(1, len(at) // 4))
    if len(at) <= width:
        return at, so_far
    highest = 1.0 if np.isnan(number.outcomes[0].mae) else np.inf
    return at[width:], np.clip((wrong[width:] - wrong[:-width]) / (at[width:] - at[:-width]), 0.0, highest)

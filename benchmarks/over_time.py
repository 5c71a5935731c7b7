"""Draw learners over the calendar of a stream, above the births and deaths of its columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from varifold.bench.compare import Filled
from varifold.bench.sources import stream_of
from varifold.bench.statistics import Floats
from varifold.bench.table import Data
from varifold.errors import DataError
from varifold.report.grids import METRIC
from varifold.report.leaderboard import stretches
from varifold.report.presence import time_marks
from varifold.report.style import (
    BLUE,
    GREEN,
    LINES,
    ORANGE,
    SKY,
    label_ends,
    pyplot,
    quiet,
    set_title,
    thousands,
    trailing,
    write,
)
from varifold.streams.presence import presence

__all__ = ["births_and_deaths", "plot_over_time"]

_RECENT = 6
"""Stretches of the stored curve, of 60, over which a line is averaged."""
_PARTS = 120


def births_and_deaths(shares: Floats) -> tuple[Floats, Floats]:
    """Count, per stretch, the columns that occur for the first time after it began, and those that never return.

    The first stretch has no births and the last no deaths: what is there at either end was there before or may stay.
    """
    there = shares > 0
    first, last = there.argmax(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    parts = there.shape[1]
    births = np.bincount(first[there.any(axis=1)], minlength=parts).astype(np.float64)
    deaths = np.bincount(last[there.any(axis=1)], minlength=parts).astype(np.float64)
    births[0] = deaths[-1] = 0.0
    return births, deaths


def plot_over_time(
    filled: Filled,
    data: Data,
    names: Sequence[str] | Mapping[str, str],
    path: str | os.PathLike[str],
    title: str = "",
    times: Sequence[str] | None = None,
) -> None:
    """Draw the first metric of some learners over the stream, each a mean of its last tenth, above its columns.

    `names` may map learners to the names to show. `times` are ISO dates of the rows, which mark the years (or months).
    """
    metric = filled.table.metrics[0]
    numbers = {name: filled.number(filled.table.settings[0], data, name, "default") for name in names}
    numbers = {name: number for name, number in numbers.items() if number}
    if not numbers:
        raise DataError(f"none of {', '.join(names)} has been run on {data.name}, so that there is nothing to draw")
    block = stream_of(next(iter(numbers.values())).cells[0]).prepared.block
    figure, (top, below) = pyplot().subplots(
        2, 1, figsize=(11, 6.2), sharex=True, height_ratios=[3, 1.5], gridspec_kw={"hspace": 0.1}
    )
    titles = names if isinstance(names, Mapping) else dict.fromkeys(names)
    curves = {titles[name] or name: stretches(number, metric) for name, number in numbers.items()}
    _lines(top, curves, METRIC[metric])
    _columns(below, presence(block, _PARTS))
    marks = time_marks((times or ())[: len(block)])
    if marks:
        below.set_xticks([at for at, _ in marks], [name for _, name in marks])
    else:
        below.set_xlabel("instances")
        thousands(below)
    below.set_xlim(0, len(block))
    set_title(top, title, 14)
    write(figure, path)


def _lines(ax: Any, curves: dict[str, tuple[Floats, Floats]], metric: str) -> None:
    quiet(ax)
    ends: list[tuple[float, str, str]] = []
    recent = {
        name: (at[_RECENT - 1 :], trailing(within, _RECENT)[_RECENT - 1 :]) for name, (at, within) in curves.items()
    }
    for colour, (name, (at, values)) in zip(LINES, recent.items(), strict=False):
        ax.plot(at, values, color=colour, linewidth=2.4 if not ends else 1.7)
        ends.append((float(values[-1]), name, colour))
    low = min(float(np.nanmin(values)) for _, values in recent.values())
    high = max(float(np.nanmax(values)) for _, values in recent.values())
    first = next(iter(recent.values()))[1]
    high = min(
        high, low + 4.0 * (float(np.nanmax(first)) - low + 0.05 * abs(low))
    )  # a diverged learner leaves the axes
    margin = 0.08 * (high - low)
    ax.set_ylim(low - margin, high + margin)
    ax.set_ylabel(f"{metric}, last tenth")
    ends = [(min(max(y, low), high), text, colour) for y, text, colour in ends]
    label_ends(ax, ends, float(max(at[-1] for at, _ in recent.values())), 0.075 * (high - low))


def _columns(ax: Any, found: Any) -> None:
    quiet(ax)
    edges = np.append(found.starts, found.rows)
    alive = (found.shares > 0).sum(axis=0)
    ax.stairs(alive, edges, color=SKY, alpha=0.35, fill=True)
    births, deaths = births_and_deaths(found.shares)
    middle = (edges[:-1] + edges[1:]) / 2
    tall = max(1.0, float(alive.max(initial=1)))
    for counts, colour, level in ((births, GREEN, 1.12), (deaths, ORANGE, 1.3)):
        there = counts > 0
        sizes = 14 + 10 * np.minimum(counts[there], 20)
        marker = "^" if colour == GREEN else "v"
        ax.scatter(
            middle[there], np.full(there.sum(), level * tall), s=sizes, marker=marker, color=colour, linewidths=0
        )
    ax.set_ylim(0, 1.45 * tall)
    ax.set_ylabel("columns")
    ax.yaxis.get_major_locator().set_params(integer=True)
    ends = [
        (float(alive[-1]) / 2, f"{alive[-1]:,} alive", BLUE),
        (1.12 * tall, f"{births.sum():.0f} born", GREEN),
        (1.3 * tall, f"{deaths.sum():.0f} gone", ORANGE),
    ]
    label_ends(ax, ends, float(found.rows), 0.2 * tall)

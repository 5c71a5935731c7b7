"""Draw the error around a switch of the feature space: new model, old model on recovered features, mixture."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from varifold.report.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, label_ends, pyplot, quiet, write

COLOURS = (BLUE, ORANGE, GREEN, PURPLE)


class Switch(NamedTuple):
    """Content of one panel."""

    title: str
    wrong: Mapping[str, Any]
    """Name of a method -> its mistakes, runs x instances; the first is drawn strongest."""
    at: int
    """Instances before the switch."""
    overlap: int
    """Number of those with old and new features."""


def around(wrong: Any, at: int, width: int) -> Any:
    """Return the share of mistakes in the last `width` instances, averaged over runs; no window crosses the switch."""
    mean = np.asarray(wrong, dtype=np.float64).mean(axis=0)
    sums = np.concatenate([[0.0], np.cumsum(mean)])
    end = np.arange(1, len(mean) + 1)
    start = np.maximum(end - width, np.where(end > at, at, 0))
    return (sums[end] - sums[start]) / (end - start)


def plot_switches(panels: Sequence[Switch], path: str | os.PathLike[str], width: int = 50) -> None:
    """Draw one panel per data set, with methods labelled at their lines and the overlap shaded."""
    plt = pyplot()
    figure, axes = plt.subplots(len(panels), 1, figsize=(9, 3.5 * len(panels)), squeeze=False)
    for ax, panel in zip(axes[:, 0], panels, strict=True):
        _panel(ax, panel, width)
    axes[-1, 0].set_xlabel("instances since the switch; at the lines: wrong predictions in all of them")
    figure.subplots_adjust(hspace=0.32)
    write(figure, path)


def _panel(ax: Any, panel: Switch, width: int) -> None:
    quiet(ax)
    lines = {name: around(wrong, panel.at, width) for name, wrong in panel.wrong.items()}
    n = min(len(line) for line in lines.values())
    x = np.arange(1, n + 1) - panel.at
    first, settled = max(0, panel.at - (n - panel.at) // 3), 10
    shown = [*range(first, panel.at), *range(panel.at + settled, n)]
    top = 1.12 * max(float(line[shown].max()) for line in lines.values())
    ends = []
    for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
        main = name == next(iter(lines))
        style = {"color": colour, "linewidth": 2.6 if main else 1.6, "zorder": 4 if main else 3}
        ax.plot(x[first : panel.at], line[first : panel.at], **style)
        ax.plot(x[panel.at + settled :], line[panel.at + settled : n], **style)
        overall = float(np.mean(np.asarray(panel.wrong[name])[:, panel.at :]))
        ends.append((float(line[n - 1]), f"{name}  {100 * overall:.1f} %", colour))
    ax.axvspan(-panel.overlap, 0, color="#F3F1EC", linewidth=0, zorder=0)
    ax.axvline(0, color=GREY, linewidth=1)
    ax.text(4, 0.02 * top, "old features gone", color=GREY, fontsize=9, style="italic", va="bottom")
    ax.set_xlim(x[first], x[-1])
    ax.set_ylim(0, top)
    ax.yaxis.set_major_formatter(lambda v, _: f"{100 * v:.0f} %")
    ax.set_ylabel(f"wrong predictions,\nlast {width} instances", color=INK)
    ax.set_title(panel.title, fontsize=12, fontweight="bold")
    label_ends(ax, ends, float(x[-1]), 0.085 * top)

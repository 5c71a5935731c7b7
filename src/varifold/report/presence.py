"""Draw a stream: which features are present when, the share of absent cells, the balance of labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from varifold.report.style import BLUE, GREY, INK, LINES, ORANGE, label_ends, pyplot, quiet, set_title, thousands, write
from varifold.streams.presence import Presence, percent

_MOST_NAMES = 40
_MOST_LINES = 1000


def plot_presence(
    found: Presence, path: str | os.PathLike[str], title: str = "", times: Sequence[str] | None = None
) -> None:
    """Draw a map of columns over time above the share of absent cells and, of classes, of each label.

    `times`, ISO dates of the rows in their order, mark the years (or months) on the axis.
    """
    plt = pyplot()
    height = min(5.4, max(2.2, 0.2 * len(found.names)))
    heights = [height, 0.9, *([1.1] if found.labels else [])]
    figure, axes = plt.subplots(
        len(heights), 1, figsize=(12, sum(heights) + 0.6), sharex=True, height_ratios=heights,
        gridspec_kw={"hspace": 0.16},
    )  # fmt: skip
    edges = np.append(found.starts, found.rows)
    _map(figure, axes[0], found, edges)
    _absent(axes[1], found, edges)
    if found.labels:
        _labels(axes[2], found, edges)
    set_title(axes[0], title, 15)
    bottom = axes[-1]
    marks = time_marks(times or ())
    if marks:
        bottom.set_xticks([at for at, _ in marks], [name for _, name in marks])
        bottom.grid(axis="x", color="#E4E4E4", linewidth=0.8)
    else:
        bottom.set_xlabel("instances")
        thousands(bottom)
    bottom.set_xlim(0, max(1, found.rows))
    write(figure, path)


def time_marks(times: Sequence[str]) -> list[tuple[int, str]]:
    """Return the first row and the name of years, or months if there are few years, at most about a dozen."""
    for digits in (4, 7):
        names = [str(time)[:digits] for time in times]
        marks = [(i, name) for i, name in enumerate(names) if i and name != names[i - 1]]
        if len(marks) > 2:
            step = -(-len(marks) // 13)
            return _apart(marks[::step], len(names) * digits / 95)  # labels are as wide as they have digits
    return []


def _apart(marks: list[tuple[int, str]], gap: float) -> list[tuple[int, str]]:
    """Leave out marks that would overlap the one before, where a stream starts with few rows a month."""
    kept = marks[:1]
    for mark in marks[1:]:
        if mark[0] - kept[-1][0] >= gap:
            kept.append(mark)
    return kept


def _map(figure: Any, ax: Any, found: Presence, edges: Any) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shares, count = found.shares, len(found.names)
    if count > _MOST_LINES:
        # neighbours share a line of the picture
        group = np.arange(count) * _MOST_LINES // count
        shares = np.add.reduceat(shares, np.searchsorted(group, np.arange(_MOST_LINES))) / np.bincount(group)[:, None]
    colours = LinearSegmentedColormap.from_list("presence", ["#F4F4F1", "#9CC9E3", BLUE, "#08306B"])
    high = float(shares.max(initial=0.0))
    sparse = high <= 0.2
    # a few frequent columns must not leave the many rare ones pale
    scale = max(float(np.quantile(shares[shares > 0], 0.9)), 1e-9) if sparse and high > 0 else 1.0
    lines = np.linspace(0, count, len(shares) + 1)
    mesh = ax.pcolormesh(edges, lines, shares, cmap=colours, vmin=0, vmax=scale, rasterized=True)
    ax.invert_yaxis()
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    if count <= _MOST_NAMES:
        ax.set_yticks(np.arange(count) + 0.5, [_short(str(name)) for name in found.names], fontsize=8, color=INK)
    else:
        ax.set_ylabel(f"{count:,} columns, by first occurrence")
    more = "max" if scale < high else "neither"
    bar = figure.colorbar(mesh, cax=ax.inset_axes((1.015, 0, 0.014, 1)), extend=more, extendfrac=0.03)
    bar.outline.set_visible(False)
    bar.set_label("share of rows that have it", color=GREY, fontsize=8)
    bar.ax.tick_params(length=0, labelsize=8)


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"


def _absent(ax: Any, found: Presence, edges: Any) -> None:
    quiet(ax)
    ax.stairs(found.absent, edges, color=ORANGE, linewidth=1.5)
    ax.stairs(found.absent, edges, color=ORANGE, alpha=0.15, fill=True)
    ax.set_ylim(0, 1)
    ax.set_ylabel("absent")
    label_ends(ax, [(float(found.absent[-1]), f"{percent(found.absent_share)} in all", ORANGE)], found.rows, 0.1)


def _labels(ax: Any, found: Presence, edges: Any) -> None:
    quiet(ax)
    totals = found.balance @ np.diff(edges) / max(1, found.rows)
    shown = np.argsort(-totals, kind="stable")[: len(LINES)]
    lines = [LINES[k] for k in (0, 2, 3, 4, 5, 1)]
    stretches = len(edges) - 1
    window = min(stretches, max(1, stretches // 20, 40 * stretches // max(1, found.rows)))
    weight = np.convolve(np.ones(stretches), np.ones(window), mode="same")
    ends = []
    for colour, k in zip(lines, shown, strict=False):
        smooth = np.convolve(found.balance[k], np.ones(window), mode="same") / weight
        ax.plot((edges[:-1] + edges[1:]) / 2, smooth, color=colour, linewidth=1.5)
        ends.append((float(smooth[-1]), f"{_short(str(found.labels[k]))} {totals[k]:.0%}", colour))
    ax.set_ylim(0, 1)
    ax.set_ylabel("labels")
    label_ends(ax, ends, found.rows, 0.17)

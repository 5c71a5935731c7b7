"""Draw the demonstration: the error of each treatment above a map of the sensors over time."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from varifold.evaluate import Curve
from varifold.evaluate.metrics import Floats
from varifold.report.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    label_ends,
    label_right,
    pyplot,
    quiet,
    thousands,
    trailing,
    write,
)

_WAYS = (BLUE, ORANGE, RED, PURPLE, GREEN)
_PEERS = ("#222222", "#6E6E6E", "#A9A9A9")
_GROUPS = ("#22384F", "#2F5773", "#3D7890", "#4F979B", "#5FA98A", "#7FB26F", "#8D8D8D")
"""Dark to light, different from the lines' colours."""
_SMOOTH = 12


class Readings(Protocol):
    """Sensors over time, NaN where absent, with the group of each."""

    @property
    def groups(self) -> list[str]:
        """Return the group of each column."""

    @property
    def readings(self) -> Floats:
        """Return instances x sensors."""

    def outages(self) -> list[tuple[str, int, int]]:
        """Return (group, first, end) of every silence of a whole group."""


def plot_demo(made: Readings, curves: list[tuple[str, Curve]], ours: int, path: str | os.PathLike[str]) -> None:
    """Draw and write the picture; the first `ours` curves are our learner's, the others those of other libraries."""
    plt = pyplot()
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(10.5, 9.2), sharex=True, height_ratios=[1.3, 1.05], gridspec_kw={"hspace": 0.09}
    )
    n = len(made.readings)
    for _, lo, hi in made.outages():
        top.axvspan(lo, hi, color="#F3F1EC", linewidth=0, zorder=0)
    _errors(top, curves, ours, n)
    _presence(bottom, made, n)
    bottom.set_xlim(0, n)
    bottom.set_xlabel("instances", color=INK)
    thousands(bottom)
    figure.text(
        0.125, 0.955, "Sensors fail, retire and are replaced: the error stays down", fontsize=15, fontweight="bold"
    )
    figure.text(
        0.125,
        0.917,
        "Error of one learner under five treatments of absent values; dashed: river's learners on the same stream;\n"
        "shaded: a group of sensors is silent; at the right: error over the whole stream",
        fontsize=10.5,
        color=GREY,
    )
    write(figure, path)


def _errors(ax: Any, curves: list[tuple[str, Curve]], ours: int, n: int) -> None:
    quiet(ax)
    styles = [(c, 2.8 if c == BLUE else 1.6, "-") for c in _WAYS[:ours]] + [(c, 1.3, "--") for c in _PEERS]
    ends, highest = [], 0.0
    for (name, curve), (colour, width, dashes) in zip(curves, styles, strict=True):
        smooth = trailing(curve.window_cer, _SMOOTH)
        ax.plot(curve.at, smooth, color=colour, linewidth=width, linestyle=dashes, zorder=4 if colour == BLUE else 3)
        ends.append((float(curve.cer[-1]), f"{100 * curve.cer[-1]:.1f} %  {name}", colour))
        highest = max(highest, float(np.nanmax(smooth[_SMOOTH:])))
    top = 1.05 * highest
    ax.set_ylim(0, top)
    ax.set_ylabel("share of wrong predictions,\nlast 480 instances")
    ax.yaxis.set_major_formatter(lambda v, _: f"{100 * v:.0f} %")
    label_ends(ax, ends, n, 0.075 * top)


def _remarks(ax: Any, there: Any, y: float) -> None:
    """Label the absence of a whole group: not yet, for a while, or no longer."""
    n = len(there)
    changes = np.flatnonzero(np.diff(np.concatenate([[1], there.astype(int), [1]])))
    for lo, hi in zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True):
        if hi - lo < n // 50:
            continue
        x, text, side = (lo + hi) / 2, "silent", "center"
        if lo == 0:
            x, text, side = hi - n // 100, "added", "right"
        elif hi == n:
            x, text, side = lo + n // 100, "taken away", "left"
        ax.text(x, y, text, ha=side, va="center", fontsize=9, style="italic", color=GREY)


def _presence(ax: Any, made: Readings, n: int) -> None:
    """Draw one line per sensor, the darker the more often it is present."""
    from matplotlib.colors import to_rgb

    bins = 250
    edges = np.linspace(0, n, bins + 1).astype(int)
    there = ~np.isnan(made.readings)
    share = np.add.reduceat(there, edges[:-1], axis=0) / np.diff(edges)[:, None]
    groups = list(dict.fromkeys(made.groups))
    picture, places, y = [], [], 0.0
    for group, colour in zip(groups, _GROUPS, strict=True):
        rows = [j for j, g in enumerate(made.groups) if g == group]
        tint = share[:, rows].T[:, :, None]
        picture.append(1.0 - tint * (1.0 - np.array(to_rgb(colour))) * 0.92)
        picture.append(np.ones((1, bins, 3)))
        if group != groups[-1]:
            _remarks(ax, there[:, rows].any(axis=1), y + len(rows) / 2)
        places.append((y + len(rows) / 2, group, colour))
        y += len(rows) + 1
    ax.imshow(np.concatenate(picture), aspect="auto", extent=(0, n, y, 0), interpolation="nearest")
    for place, group, colour in places:
        label_right(ax, group, n, place, colour)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.set_yticks([])
    ax.tick_params(length=0)
    ax.set_ylabel("sensors present")

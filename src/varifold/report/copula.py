"""Draw the copula: the latent correlation as a heat map, and how well it is recovered."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from varifold.report.style import BLUE, GREY, ORANGE, natural, pyplot, quiet, set_title, write

MOST_NAMES = 60
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def plot_correlation(names: Sequence[str | int], matrix: Any, path: str | os.PathLike[str], title: str = "") -> None:
    """Draw latent correlations of features in natural order, blue negative, red positive; without names beyond 60."""
    plt = pyplot()
    place = {name: i for i, name in enumerate(names)}
    names = natural(names)
    order = [place[name] for name in names]
    matrix = np.asarray(matrix)[np.ix_(order, order)]
    size = min(12.0, 3.0 + 0.22 * len(names))
    figure, ax = plt.subplots(figsize=(size + 1, size))
    image = ax.imshow(np.asarray(matrix), cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    ax.tick_params(length=0)
    shown = list(map(str, names)) if len(names) <= MOST_NAMES else []
    ax.set_xticks(range(len(shown)), shown, rotation=90, fontsize=7)
    ax.set_yticks(range(len(shown)), shown, fontsize=7)
    for side in ax.spines.values():
        side.set_visible(False)
    bar = figure.colorbar(image, ax=ax, shrink=0.7)
    bar.outline.set_visible(False)
    bar.set_label("latent correlation")
    set_title(ax, title or f"Latent correlations of {len(names):,} features", 12)
    write(figure, path)


def plot_recovery(points: Sequence[int], errors: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw the distance to the known correlation over instances (name -> runs x points), with the slope of theory."""
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(7, 4))
    quiet(ax)
    for (name, runs), colour in zip(errors.items(), (BLUE, ORANGE), strict=False):
        mean = np.asarray(runs).mean(axis=0)
        ax.loglog(points, mean, color=colour, linewidth=2.4, marker="o")
        ax.annotate(name, (points[-1], mean[-1]), xytext=(8, 0), textcoords="offset points", color=colour, va="center")
        line = mean[0] * np.sqrt(points[0] / np.asarray(points))
        ax.loglog(points, line, color=GREY, linestyle="--", linewidth=1.0)
    ax.minorticks_off()
    ax.set_xticks(list(points), [f"{n:,}" for n in points])
    low, high = ax.get_ylim()
    shown = [tick for tick in TICKS if low <= tick <= high]
    ax.set_yticks(shown, [f"{tick:g}" for tick in shown])
    ax.set_xlabel("instances, half of the values absent (dashed: one over the square root)")
    ax.set_ylabel("relative Frobenius error")
    write(figure, path)

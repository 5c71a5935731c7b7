"""Draw the latent correlation of a copula as a heat map."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from varifold.report.style import natural, pyplot, set_title, write

MOST_NAMES = 60


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

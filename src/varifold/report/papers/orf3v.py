"""ORF3V, Fig. 1: class-wise distributions of a feature in t-digests; Fig. 2: weights next to a tree's importances."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from varifold.base import Block
from varifold.base.plural import plural
from varifold.datasets import load
from varifold.errors import MissingExtraError
from varifold.forest import ORF3V
from varifold.report.papers import Figure
from varifold.report.style import GREY, LINES, headline, pyplot, quiet, thousands, write
from varifold.streams import prepare

__all__ = ["FIGURES"]

FEATURE = "worst_area"
RATIOS = (0.0, 0.25, 0.5, 0.75)


def draw_digests(path: str, repeats: int) -> None:
    """Draw the empirical distribution by label as a line and the digest's centroids as marks, after 50 and all rows."""
    block = prepare(load("wdbc"), "none", seed=0).block
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), sharey=True)
    labels = block.labels.values
    for ax, rows in zip(axes, (50, len(block)), strict=True):
        part = block[:rows]
        model = ORF3V()
        model.learn_many(part)
        values = np.array([x[FEATURE] for x in part.rows()])
        quiet(ax)
        for label, colour in zip(labels, LINES, strict=False):
            own = np.sort(values[part.codes == labels.index(label)])
            ax.step(own, np.arange(1, len(own) + 1) / len(own), where="post", color=colour, linewidth=1.2)
            centres, weights, _ = model.feature_distribution(FEATURE).digests[label]
            middle = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
            ax.plot(centres, middle, "x", color=colour, markersize=6)
            ax.annotate(
                f"label {label}", (own[-1], 1.0), xytext=(4, 2), textcoords="offset points", color=colour, fontsize=9
            )
        ax.set_title(f"after {rows:,} instances", fontsize=10, color=GREY)
        ax.set_xlabel(FEATURE.replace("_", " "))
        thousands(ax)
        ax.locator_params(axis="x", nbins=6)
    axes[0].set_ylabel("share of values up to here")
    headline(figure, "ORF3V: distributions by label (lines) and their t-digests (crosses), wdbc", y=1.02)
    write(figure, path)


def _additive(seed: int) -> tuple[Any, Any]:
    """Generate a label that is the sign of a noisy sum of functions of single features, with decreasing influence."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (4000, 8))
    score = 2.0 * np.sin(3 * X[:, 0]) + 1.5 * X[:, 1] ** 3 + np.abs(X[:, 2]) - 0.5 + 0.5 * X[:, 3]
    return X, score + rng.normal(0, 0.2, len(X)) > 0


def _tree(X: Any, y: Any, seed: int) -> Any:
    try:
        tree = importlib.import_module("sklearn.tree")
    except ImportError as error:
        raise MissingExtraError("this figure needs scikit-learn; install it with: pip install scikit-learn") from error
    return tree.DecisionTreeClassifier(max_depth=6, random_state=seed).fit(X, y).feature_importances_


def draw_weights(path: str, repeats: int) -> None:
    """Draw the importances of a decision tree, and the weights of eq. 8 on the same rows with values removed."""
    found: dict[str, list[Any]] = {"decision tree": []}
    for seed in range(repeats):
        X, y = _additive(seed)
        found["decision tree"].append(_tree(X, y, seed))
        rows = [{f"x{j}": float(v) for j, v in enumerate(row)} for row in X]
        block = prepare(Block.from_dicts(rows, [bool(v) for v in y]), "none", seed=seed).block
        for ratio in RATIOS:
            thinned = prepare(block, f"vfs:{ratio}", seed=seed, shuffle=False).block
            model = ORF3V.as_in_paper(alpha=0.01)
            model.learn_many(thinned)
            weights = model.weights()
            found.setdefault(f"weights, {ratio:.0%} removed", []).append([weights[f"x{j}"] for j in range(X.shape[1])])
    plt = pyplot()
    figure, axes = plt.subplots(1, len(found), figsize=(2.7 * len(found), 3.4), sharey=True)
    for ax, (title, runs), colour in zip(axes, found.items(), (GREY, *LINES), strict=False):
        quiet(ax)
        means = np.mean(runs, axis=0)
        places = np.arange(len(means))
        base = 0.0 if title == "decision tree" else 1.0
        ax.barh(places, means - base, left=base, color=colour, height=0.65)
        ax.set_yticks(places, [f"x{j}" for j in places])
        ax.set_title(title, fontsize=9, color=GREY)
        ax.set_xlabel("importance" if title == "decision tree" else "weight")
    axes[0].invert_yaxis()
    limits = np.array([ax.get_xlim() for ax in axes[1:]])  # the panels of the weights share their scale
    for ax in axes[1:]:
        ax.set_xlim(limits.min(), limits.max())
    title = f"ORF3V: a tree's importances and the weights of eq. 8, {plural(repeats, 'stream')}"
    headline(figure, title, x=0.06, y=1.03)
    write(figure, path)


FIGURES = [
    Figure("1", "t-digests and empirical distributions", draw_digests),
    Figure("2", "a tree's importances and the weights of the forests", draw_weights),
]

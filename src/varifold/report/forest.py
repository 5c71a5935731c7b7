"""Draw a forest learner: importance over time, and the class-wise distributions of a feature."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from varifold.base.classifier import Name
from varifold.base.plural import plural
from varifold.errors import DataError
from varifold.evaluate import RegressionResult, Result
from varifold.forest import ORF3V
from varifold.forest.orf3v import Floats
from varifold.report.style import FAINT, GREY, INK, LINES, RED, label_ends, pyplot, quiet, set_title, thousands, write


def plot_importances(
    result: Result | RegressionResult, path: str | os.PathLike[str], title: str = "", top: int = 6
) -> None:
    """Draw the importance of every feature over the stream, the `top` ones at its end in colour and by name.

    The result comes from ``prequential(..., track="importances")`` or ``track="permutation"``.
    """
    history = result.curve.importances
    if not any(history):
        raise DataError("the result holds no importances; evaluate with track='importances'")
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(9, 4.6))
    quiet(ax)
    at = np.asarray(result.curve.at)
    lines = _lines(history)
    ranked = sorted(lines, key=lambda name: -_last(lines[name]))
    for name in reversed(ranked[top:]):
        ax.plot(at, lines[name], color="#C9C9C9", linewidth=0.9)
    ends = []
    for name, colour in zip(ranked[:top], LINES * (1 + top // len(LINES)), strict=False):
        ax.plot(at, lines[name], color=colour, linewidth=1.8)
        ends.append((_last(lines[name]), str(name), colour))
    low, high = _limits(lines, 0.05 if isinstance(result, Result) else 0.0)
    ax.set(xlim=(0, at[-1]), ylim=(low, high), xlabel="instances", ylabel=_unit(result))
    thousands(ax)
    label_ends(ax, ends, float(at[-1]), 0.05 * (high - low))
    if len(ranked) > top:
        text = f"grey: {plural(len(ranked) - top, 'other')}"
        ax.text(0.99, 0.98, text, color=GREY, fontsize=9, ha="right", va="top", transform=ax.transAxes)
    set_title(ax, title)
    write(figure, path)


def _unit(result: Result | RegressionResult) -> str:
    """Return the unit of importances."""
    if not result.importances:
        return "importance of the feature"
    loss = "log loss" if isinstance(result, Result) else "absolute error"
    return f"{loss} added without the column"


def _lines(history: list[dict[Any, float]]) -> dict[Name, Floats]:
    """Return one value per window by feature, NaN while it has no forest."""
    names = {name: None for found in history for name in found}
    return {name: np.array([found.get(name, np.nan) for found in history]) for name in names}


def _last(line: Floats) -> float:
    """Return the last importance; below all others if the feature is gone by the end."""
    return float(line[-1]) if np.isfinite(line[-1]) else -np.inf


def _limits(lines: dict[Name, Floats], least: float) -> tuple[float, float]:
    """Leave out the first twentieth of the stream, where a few votes decide, if that leaves anything."""
    values = np.stack(list(lines.values()), axis=1)
    late = values[len(values) // 20 :]
    values = late if np.isfinite(late).any() else values
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.06 * (max(high - low, least) or 1.0)
    return low - margin, high + margin


def plot_feature(model: ORF3V, feature: Name, path: str | os.PathLike[str], value: float | None = None) -> None:
    """Draw the digests' distribution functions of a numeric feature by label, their centroids, and the thresholds.

    A `value`, that of the instance which is explained, is marked.
    """
    distribution = model.feature_distribution(feature)
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(9, 4.6))
    quiet(ax)
    ax.vlines(distribution.thresholds, 0, 1, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.55)
    shown: list[tuple[Hashable, str]] = []
    digests = distribution.digests
    for (label, digest), colour in zip(digests.items(), LINES * (1 + len(digests)), strict=False):
        if len(digest[0]):
            _distribution(ax, *digest, colour)
            shown.append((label, colour))
    ax.set(xlim=_range(distribution.digests.values()), ylim=(-0.02, 1.02), xlabel=str(feature))
    ax.set_ylabel("share of values up to here")
    if value is not None:
        low, high = ax.get_xlim()
        ax.set_xlim(min(low, value), max(high, value))
        ax.axvline(value, color=RED, linewidth=2)
        ax.annotate(f"here: {value:.6g}", (value, 1.0), xytext=(4, -4), textcoords="offset points", color=RED, va="top")
    ax.grid(axis="x", color=FAINT, linewidth=0.8)
    for row, (label, colour) in enumerate(shown):
        ax.text(1.02, 0.95 - 0.07 * row, str(label), color=colour, fontweight="bold", transform=ax.transAxes)
    if len(distribution.thresholds):
        text = f"dashed: thresholds\nof {len(distribution.thresholds)} stumps"
        ax.text(1.02, 0.9 - 0.07 * len(shown), text, color=GREY, fontsize=9, va="top", transform=ax.transAxes)
    set_title(ax, str(feature))
    write(figure, path)


def _distribution(ax: Any, values: Floats, weights: Floats, points: Any, colour: str) -> None:
    """Return a step at every centroid of equal values, others at the middle of their weight; points as a staircase."""
    upper = np.cumsum(weights) / weights.sum()
    if points.all() and len(values) <= 40:
        ax.step(np.r_[values[:1], values], np.r_[0.0, upper], where="post", color=colour, linewidth=1.8)
        ax.scatter(values, upper, s=9, color=colour, linewidths=0, zorder=3)
    else:
        share = weights / weights.sum()
        ends = np.stack([upper - np.where(points, share, share / 2), upper - np.where(points, 0.0, share / 2)], axis=1)
        ax.plot(np.repeat(values, 2), ends.ravel(), color=colour, linewidth=1.8)
        ax.scatter(values, ends[:, 1], s=9, color=colour, linewidths=0, zorder=3)


def _range(digests: Iterable[tuple[Floats, Floats, Any]]) -> tuple[float, float]:
    """Return the range of all but the outermost half percent of some label's values."""
    ends = []
    for values, weights, _ in digests:
        if len(values):
            upper = np.cumsum(weights) / weights.sum()
            ends += [values[np.searchsorted(upper, q)] for q in (0.005, 0.995)]
    margin = 0.03 * (max(ends) - min(ends)) or 0.5
    return min(ends) - margin, max(ends) + margin

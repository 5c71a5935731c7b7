"""Draw error, loss and intervals over time, above the columns alive."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from varifold.evaluate import RegressionCurve, Summary
from varifold.report.style import BLUE, GREY, SKY, label_ends, pyplot, quiet, set_title, thousands, trailing, write

_RECENT = 10
"""Windows of the curve over which the recent error is averaged."""


def plot_summary(summary: Summary, path: str | os.PathLike[str], title: str = "") -> None:
    """Draw the error so far (mean, and a band of one deviation over repeats), recent error, log loss, and features.

    The loss has no panel for a learner that gives no probabilities. The error of a regressor is the mean absolute one,
    its loss the root of the mean squared error; the intervals of one with coverages have a panel, in which the band
    widens where evidence is missing.
    """
    plt = pyplot()
    curves = [r.curve for r in summary.results]
    points = min(len(c.at) for c in curves)
    numeric = isinstance(curves[0], RegressionCurve)
    losses = np.array([(c.rmse if numeric else c.log_loss)[:points] for c in curves])
    rated = bool(np.isfinite(losses).any())
    banded = numeric and all(c.band is not None for c in curves)
    figure, panels = plt.subplots(
        2 + rated + banded,
        1,
        figsize=(9, 5.6 + 1.7 * (rated + banded)),
        sharex=True,
        height_ratios=[3, *[1.5] * (rated + banded), 1.3],
        gridspec_kw={"hspace": 0.12},
    )
    top, bottom = panels[0], panels[-1]
    at = curves[0].at[:points]
    windows = [(c.window_mae if numeric else c.window_cer)[:points] for c in curves]
    recent = np.mean([trailing(np.nan_to_num(window), _RECENT) for window in windows], axis=0)
    recent[: summary.results[0].scored_from * points // max(1, summary.results[0].instances) + _RECENT] = np.nan
    _error(top, at, np.array([(c.mae if numeric else c.cer)[:points] for c in curves]), recent, summary, numeric)
    if rated:
        _loss(panels[1], at, losses, "root mean squared error" if numeric else "log loss")
    if banded:
        _band(panels[-2], at, summary, points)
    _features(bottom, at, curves, points)
    set_title(top, title)
    instances_below(bottom, at[-1] if points else 1)
    write(figure, path)


def instances_below(ax: Any, last: float) -> None:
    """Label the horizontal axis: instances, with separated thousands."""
    ax.set_xlabel("instances")
    ax.xaxis.get_major_locator().set_params(integer=True)
    thousands(ax)
    ax.set_xlim(0, last)


def _loss(ax: Any, at: Any, losses: Any, name: str) -> None:
    quiet(ax)
    mean = losses.mean(axis=0)
    if len(losses) > 1:
        spread = losses.std(axis=0, ddof=1)
        ax.fill_between(at, mean - spread, mean + spread, color=BLUE, alpha=0.18, linewidth=0)
    ax.plot(at, mean, color=BLUE, linewidth=1.8)
    settled = mean[len(mean) // 20 :]
    least, digits = (0.02, ".3f") if name == "log loss" else (0.0, ".4g")
    top = 1.15 * max(np.nanmax(settled) if np.isfinite(settled).any() else 0.0, least) or 1.0
    ax.set_ylim(0, top)
    ax.set_ylabel(name)
    if np.isfinite(mean[-1]):
        label_ends(ax, [(float(mean[-1]), f"so far {mean[-1]:{digits}}", BLUE)], float(at[-1]), 0.2 * top)


def _band(ax: Any, at: Any, summary: Summary, points: int) -> None:
    """Draw the bounds of the intervals relative to the prediction, with the typical error; means over repeats."""
    quiet(ax)
    curves = [r.curve for r in summary.results]
    low, high, mae = (
        np.mean([trailing(np.nan_to_num(part[:points]), 3) for part in parts], axis=0)
        for parts in (
            [c.band.low for c in curves],
            [c.band.high for c in curves],
            [c.window_mae for c in curves],
        )
    )
    requested = summary.results[0].intervals[-1].coverage
    covered = float(np.mean([r.intervals[-1].covered for r in summary.results]))
    ax.fill_between(at, low, high, color=SKY, alpha=0.45, linewidth=0)
    ax.axhline(0.0, color=GREY, linewidth=1)
    for side in (-1.0, 1.0):
        ax.plot(at, side * mae, color=BLUE, linewidth=1.2)
    settled = slice(len(at) // 20, None)
    reach = 1.1 * float(max(high[settled].max(initial=0.0), -low[settled].min(initial=0.0))) or 1.0
    ax.set_ylim(-reach, reach)
    ax.set_ylabel("around the\nprediction")
    if len(at):
        ends = [(float(high[-1]), f"{requested:.0%} interval, contains {covered:.1%}", "#2B7FAE")]
        ends.append((float(mae[-1]), "mean absolute error", BLUE))
        label_ends(ax, ends, float(at[-1]), 0.3 * reach)


def _error(ax: Any, at: Any, cer: Any, recent: Any, summary: Summary, numeric: bool) -> None:
    quiet(ax)
    mean = cer.mean(axis=0)
    if len(cer) > 1:
        spread = cer.std(axis=0, ddof=1)
        ax.fill_between(at, mean - spread, mean + spread, color=BLUE, alpha=0.18, linewidth=0)
    ax.plot(at, recent, color=SKY, linewidth=1.2)
    ax.plot(at, mean, color=BLUE, linewidth=2.2)
    share = summary.mean("mean_mae" if numeric else "majority_cer")
    ax.axhline(share, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    settled = np.concatenate([mean[len(mean) // 20 :], recent])
    top = 1.15 * max(np.nanmax(settled) if np.isfinite(settled).any() else 0.0, share, 0.0 if numeric else 0.02) or 1.0
    ax.set_ylim(0, top)
    ax.set_ylabel("mean absolute error" if numeric else "share of wrong predictions")
    if len(at):
        names = ("MAE", "mean of the targets") if numeric else ("CER", "majority class")
        digits = ".4g" if numeric else ".3f"
        ends = [(float(mean[-1]), f"so far ({names[0]}) {mean[-1]:{digits}}", BLUE)]
        ends.append((share, f"{names[1]} {share:{digits}}", GREY))
        if np.isfinite(recent[-1]):
            width = int(at[min(_RECENT, len(at)) - 1])
            ends.append((float(recent[-1]), f"last {width:,} {recent[-1]:{digits}}", "#2B7FAE"))
        label_ends(ax, ends, float(at[-1]), 0.065 * top)


def _features(ax: Any, at: Any, curves: list[Any], points: int) -> None:
    quiet(ax)
    alive = np.mean([c.columns[:points] for c in curves], axis=0)
    present = np.mean([c.present[:points] for c in curves], axis=0)
    ax.fill_between(at, alive, color=SKY, alpha=0.35, linewidth=0, step="pre")
    ax.plot(at, present, color=BLUE, linewidth=1.5)
    ax.set_ylim(0, 1.2 * max(1.0, float(alive.max(initial=0.0))))
    ax.set_ylabel("columns")
    ax.yaxis.get_major_locator().set_params(integer=True)
    if len(at):
        ends = [(float(alive[-1]), f"alive {alive[-1]:,.0f}", "#2B7FAE")]
        if present[-1] < 0.97 * alive[-1]:
            ends.append((float(present[-1]), f"per instance {present[-1]:,.1f}", BLUE))
        label_ends(ax, ends, float(at[-1]), 0.2 * ax.get_ylim()[1])

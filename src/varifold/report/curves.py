"""Error over time, with the features alive below it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from varifold.evaluate import Summary
from varifold.report.style import BLUE, GREY, SKY, label_ends, pyplot, quiet, trailing, write


def plot_summary(summary: Summary, path: str | os.PathLike[str], title: str = "") -> None:
    """Error so far (mean, and a band of one deviation over repeats) and lately, above the features that are there."""
    plt = pyplot()
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(9, 5.6), sharex=True, height_ratios=[3, 1.3], gridspec_kw={"hspace": 0.12}
    )
    curves = [r.curve for r in summary.results]
    points = min(len(c.at) for c in curves)
    at = curves[0].at[:points]
    lately = np.mean([trailing(np.nan_to_num(c.window_cer[:points]), 10) for c in curves], axis=0)
    lately[: summary.results[0].scored_from * points // max(1, summary.results[0].instances) + 10] = np.nan
    _error(top, at, np.array([c.cer[:points] for c in curves]), lately, summary)
    _features(bottom, at, curves, points)
    top.set_title(title, fontsize=13, fontweight="bold", pad=12)
    bottom.set_xlabel("instances")
    bottom.xaxis.get_major_locator().set_params(integer=True)
    bottom.xaxis.set_major_formatter(plt.FuncFormatter(lambda v, _: f"{v:,.0f}"))
    bottom.set_xlim(0, at[-1] if points else 1)
    write(figure, path)


def _error(ax: Any, at: Any, cer: Any, lately: Any, summary: Summary) -> None:
    quiet(ax)
    mean = cer.mean(axis=0)
    if len(cer) > 1:
        spread = cer.std(axis=0, ddof=1)
        ax.fill_between(at, mean - spread, mean + spread, color=BLUE, alpha=0.18, linewidth=0)
    ax.plot(at, lately, color=SKY, linewidth=1.2)
    ax.plot(at, mean, color=BLUE, linewidth=2.2)
    share = summary.mean("majority_cer")
    ax.axhline(share, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    settled = np.concatenate([mean[len(mean) // 20 :], lately])
    top = 1.15 * max(np.nanmax(settled) if np.isfinite(settled).any() else 0.0, share, 0.02)
    ax.set_ylim(0, top)
    ax.set_ylabel("share of wrong answers")
    if len(at):
        ends = [(float(mean[-1]), f"so far (CER) {mean[-1]:.3f}", BLUE), (share, f"majority class {share:.3f}", GREY)]
        if np.isfinite(lately[-1]):
            ends.append((float(lately[-1]), "lately", "#2B7FAE"))
        label_ends(ax, ends, float(at[-1]), 0.065 * top)


def _features(ax: Any, at: Any, curves: list[Any], points: int) -> None:
    quiet(ax)
    alive = np.mean([c.alive[:points] for c in curves], axis=0)
    present = np.mean([c.present[:points] for c in curves], axis=0)
    ax.fill_between(at, alive, color=SKY, alpha=0.35, linewidth=0, step="pre")
    ax.plot(at, present, color=BLUE, linewidth=1.5)
    ax.set_ylim(0, 1.2 * max(1.0, float(alive.max(initial=0.0))))
    ax.set_ylabel("features")
    if len(at):
        ends = [(float(alive[-1]), "alive", "#2B7FAE")]
        if present[-1] < 0.97 * alive[-1]:
            ends.append((float(present[-1]), "in an instance", BLUE))
        label_ends(ax, ends, float(at[-1]), 0.2 * ax.get_ylim()[1])

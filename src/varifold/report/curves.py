"""Error over time, with the features alive below it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from varifold.evaluate import Summary
from varifold.report.style import BLUE, GREY, SKY, label_ends, pyplot, quiet, write


def plot_summary(summary: Summary, path: str | os.PathLike[str], title: str = "") -> None:
    """The running CER (mean, and a band of one deviation over repeats) above the features present and known."""
    plt = pyplot()
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(9, 5.6), sharex=True, height_ratios=[3, 1.3], gridspec_kw={"hspace": 0.12}
    )
    curves = [r.curve for r in summary.results]
    points = min(len(c.at) for c in curves)
    at = curves[0].at[:points]
    _error(top, at, np.array([c.cer[:points] for c in curves]), summary)
    _features(bottom, at, curves, points)
    top.set_title(title, fontsize=13, fontweight="bold", pad=12)
    bottom.set_xlabel("instances")
    bottom.xaxis.set_major_formatter(plt.FuncFormatter(lambda v, _: f"{v:,.0f}"))
    bottom.set_xlim(0, at[-1] if points else 1)
    write(figure, path)


def _error(ax: Any, at: Any, cer: Any, summary: Summary) -> None:
    quiet(ax)
    mean = cer.mean(axis=0)
    if len(cer) > 1:
        spread = cer.std(axis=0, ddof=1)
        ax.fill_between(at, mean - spread, mean + spread, color=BLUE, alpha=0.18, linewidth=0)
    ax.plot(at, mean, color=BLUE, linewidth=2)
    share = 1.0 - summary.mean("majority_share")
    ax.axhline(share, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    settled = mean[len(mean) // 20 :]
    top = 1.15 * max(np.nanmax(settled) if np.isfinite(settled).any() else 0.0, share, 0.02)
    ax.set_ylim(0, top)
    ax.set_ylabel("error so far (CER)")
    if len(at):
        ends = [(float(mean[-1]), f"{mean[-1]:.3f}", BLUE), (share, f"majority class {share:.3f}", GREY)]
        label_ends(ax, ends, float(at[-1]), 0.06 * top)


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

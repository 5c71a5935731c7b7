"""The default learner's account of itself, as a picture: who carried weight when, and which features matter."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from varifold.auto.report import AutoReport
from varifold.report.style import BLUE, FAINT, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, pyplot, quiet, write

COLOURS = (
    *(BLUE, ORANGE, GREEN, PURPLE, SKY, RED, "#E69F00", "#999933", GREY, INK, FAINT),
    *("#882255", "#44AA99", "#DDCC77", "#AA4466", "#6699CC"),
)
"""As many as there are experts, and some more."""


def draw_report(report: AutoReport, path: str | os.PathLike[str]) -> None:
    """Weights of the experts over the stream (stacked) above the features that matter most."""
    plt = pyplot()
    fig, (above, below) = plt.subplots(2, 1, figsize=(9, 6.5), height_ratios=(3, 2), layout="constrained")
    names = list(report.experts)
    order = np.argsort(-np.asarray(list(report.experts.values())))
    above.stackplot(
        report.history_steps,
        *(report.history_weights[:, i] for i in order),
        labels=[names[i] for i in order],
        colors=COLOURS,
    )
    mark_drifts(above, report)
    above.set_ylim(0, 1)
    above.set_xlabel("instances learned")
    above.set_title("Weight of each expert over the stream")
    above.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, reverse=True)
    labels = [str(name) for name in report.features][::-1]
    below.barh(labels, list(report.features.values())[::-1], color=BLUE, height=0.6)
    below.set_title("Features that matter most, by weight")
    for ax in (above, below):
        quiet(ax)
    write(fig, path)


def mark_drifts(ax: Any, report: AutoReport) -> None:
    """A line where the error rose, a triangle where an expert was replaced (upside down: by one of the past)."""
    shown = [drift for drift in report.drifts if drift.step >= min(report.history_steps, default=0)]
    for drift in shown:
        if drift.successor is None:
            ax.axvline(drift.since, color=INK, linewidth=1.0, linestyle=":")
    for what, marker in (("restarted", "^"), ("revived", "v")):
        steps = [drift.step for drift in shown if drift.what == what]
        if steps:
            ax.plot(steps, [0.97] * len(steps), marker, color=INK, markersize=5, linestyle="", label=f"expert {what}")

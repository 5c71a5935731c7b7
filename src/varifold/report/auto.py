"""Draw the report of a default learner: weights of the experts over time, and the most influential features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from varifold.auto.report import AutoReport
from varifold.base.plural import plural
from varifold.report.style import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    pyplot,
    quiet,
    thousands,
    write,
)

_COLOURS = {
    "linear": BLUE,
    "linear, full": SKY,
    "additive": ORANGE,
    "additive, bold": "#DDCC77",
    "naive Bayes": GREEN,
    "presence": PURPLE,
    "class frequencies": FAINT,
    "neighbours": RED,
    "neighbours, many": "#AA4466",
    "latent": "#44AA99",
    "window forest": "#117733",
    "Gaussian": "#6699CC",
    "stack": INK,
}
"""An expert has one colour in every picture."""
_OTHERS = (GREY, "#332288", "#661100", "#DDAA33", "#88CCEE", "#BBBBBB", "#004488")
"""For experts of other names, in the order of the learner's own list."""


def colours(names: Sequence[str]) -> dict[str, str]:
    """Return the colour of each expert."""
    others = iter(_OTHERS * (1 + len(names)))
    return {name: _COLOURS.get(name) or next(others) for name in names}


def draw_report(report: AutoReport, path: str | os.PathLike[str]) -> None:
    """Draw the weights of the experts over the stream (stacked) above the most influential features."""
    plt = pyplot()
    fig, (above, below) = plt.subplots(2, 1, figsize=(9, 6.5), height_ratios=(3, 2), layout="constrained")
    names = list(report.experts)
    order = np.argsort(-np.asarray(list(report.experts.values())))
    steps, weights = _up_to_now(report)
    of = colours(names)
    above.stackplot(
        steps,
        *(weights[:, i] for i in order),
        labels=[f"{names[i]} {report.experts[names[i]]:.0%}" for i in order],
        colors=[of[names[i]] for i in order],
    )
    mark_drifts(above, report)
    above.set_ylim(0, 1)
    above.set_xlabel("instances learned")
    above.set_xlim(0, max(1, report.steps))
    above.set_ylabel("share of the weight")
    thousands(above)
    above.set_title(f"Weight of each expert; at the names: now, after {plural(report.steps, 'instance')}")
    above.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, reverse=True)
    labels = [str(name) for name in report.features][::-1]
    below.barh(labels, list(report.features.values())[::-1], color=BLUE, height=0.6)
    below.set_title("Features with the largest average weights")
    below.set_xlabel("weight times share of presence (not the loss of accuracy without it: see column_importances)")
    for ax in (above, below):
        quiet(ax)
    below.grid(visible=False, axis="y")
    below.grid(axis="x", color=FAINT, linewidth=0.8)
    write(fig, path)


def mark_drifts(ax: Any, report: AutoReport) -> None:
    """Mark rising errors with a line, replaced experts with a triangle (upside down: by an earlier expert)."""
    shown = [drift for drift in report.drifts if drift.step >= min(report.history_steps, default=0)]
    for drift in shown:
        if drift.successor is None:
            ax.axvline(drift.since, color=INK, linewidth=1.0, linestyle=":")
    for what, marker in (("restarted", "^"), ("revived", "v")):
        steps = [drift.step for drift in shown if drift.what == what]
        if steps:
            ax.plot(steps, [0.97] * len(steps), marker, color=INK, markersize=5, linestyle="", label=f"expert {what}")


def _up_to_now(report: AutoReport) -> tuple[Any, Any]:
    """Return the recorded weights followed by the current ones, as in the text."""
    now = np.array([list(report.experts.values())])
    if not len(report.history_steps):
        return np.array([report.steps]), now
    later = report.history_steps < report.steps
    steps = np.append(report.history_steps[later], report.steps)
    return steps, np.concatenate([report.history_weights[later], now])

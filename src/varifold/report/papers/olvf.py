"""OLVF, Fig. 1: errors, the loss of the space classifier, and projection confidences on movie reviews."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from varifold.base.plural import plural
from varifold.bench.sources import stream_of
from varifold.bench.tables import find_table
from varifold.bench.work import spec_of
from varifold.linear import OLVF
from varifold.report.papers import Figure
from varifold.report.papers.runs import POINTS, cells_of
from varifold.report.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    headline,
    label_ends,
    pyplot,
    quiet,
    thousands,
    trailing,
    write,
)

__all__ = ["FIGURES"]


def _watched(cell: Any) -> dict[str, Any]:
    """Return the errors of a learner, and the outputs of OLVF's space classifier before each instance is learned."""
    learner = spec_of(cell)()
    block = stream_of(cell).prepared.block
    labels = block.labels.values
    wrong, losses, confidences = [], [], []
    for x, code in zip(block.rows(), block.codes.tolist(), strict=True):
        y = labels[code]
        right = learner.predict_one(x) == y
        wrong.append(not right)
        if isinstance(learner, OLVF):
            found = learner.confidences_one(x)
            margin = found.space_margin if right else -found.space_margin
            losses.append(math.log1p(math.exp(-margin)) if margin > -700 else -margin)
            confidences.append((found.instance, found.classifier))
        learner.learn_one(x, y)
    return {"wrong": wrong, "losses": losses, "confidences": np.array(confidences)}


def _mean(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Average the curves of several streams, instance by instance."""
    return {name: np.mean([run[name] for run in runs], axis=0) for name in runs[0]}


def _so_far(values: Any) -> Any:
    return np.cumsum(values) / np.arange(1, len(values) + 1)


def draw_confidences(path: str, repeats: int) -> None:
    """Draw errors so far of OLVF and OLSF with the space classifier's loss (left), projection confidences (right)."""
    table = find_table("olvf-5")
    setting = next(s for s in table.settings if s.name == "real VFS")
    data = next(d for d in table.data if d.name == "imdb")
    olvf, olsf = (
        _mean([_watched(cell) for cell in cells_of(table, setting, data, m.name, "paper", repeats)])
        for m in reversed(table.methods)
    )
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.2), gridspec_kw={"wspace": 0.5})
    n = len(olvf["wrong"])
    shown = np.unique(np.linspace(n // 200, n - 1, 3 * POINTS).astype(int))
    lines = {
        "OLVF": (_so_far(olvf["wrong"]), BLUE),
        "OLSF": (_so_far(olsf["wrong"]), ORANGE),
        "space loss": (_so_far(olvf["losses"]), GREEN),
    }
    for ax, title in (
        (left, "mean error so far, and mean loss of the space classifier"),
        (right, "projection confidence"),
    ):
        quiet(ax)
        ax.set_title(title, fontsize=10, color=GREY)
        ax.set_xlabel("reviews")
        thousands(ax)
    for values, colour in lines.values():
        left.plot(shown, values[shown], color=colour, linewidth=1.8)
    left.set_ylim(0, 0.8)
    ends = [(float(values[-1]), f"{name} {values[-1]:.3f}", colour) for name, (values, colour) in lines.items()]
    label_ends(left, ends, n, 0.05)
    instance, classifier = olvf["confidences"].T
    right.plot(shown, instance[shown], color=GREY, linewidth=0.5)
    right.plot(shown, trailing(instance, n // 50)[shown], color=ORANGE, linewidth=1.8)
    right.plot(shown, classifier[shown], color=BLUE, linewidth=1.8)
    label_ends(
        right,
        [
            (float(classifier[-1]), "classifier, p_w", BLUE),
            (float(trailing(instance, n // 50)[-1]), "instance, p_x", ORANGE),
        ],
        n,
        0.06 * (right.get_ylim()[1] - right.get_ylim()[0]),
    )
    headline(figure, f"OLVF: movie reviews, {plural(repeats, 'stream')}", x=0.08, y=1.03)
    write(figure, path)


FIGURES = [Figure("1", "errors and projection confidences on movie reviews", draw_confidences)]

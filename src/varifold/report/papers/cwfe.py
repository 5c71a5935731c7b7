"""CWFE, Fig. 1: the two feature spaces over time; Fig. 2: mean loss so far after the switch on eight sets."""

from __future__ import annotations

from varifold.base.plural import plural
from varifold.bench.tables import find_table
from varifold.datasets import load
from varifold.report.papers import Figure
from varifold.report.papers.runs import cells_of, curve_panels, mean_curve, run_cell
from varifold.report.presence import plot_presence
from varifold.report.style import write
from varifold.streams import prepare
from varifold.streams.presence import presence

__all__ = ["FIGURES"]


def draw_spaces(path: str, repeats: int) -> None:
    """Draw which features are present when: the old space, ten rows of both, the new space."""
    block = prepare(load("diabetes"), "evolvable", seed=0).block
    plot_presence(presence(block, stretches=96), path, title="Two feature spaces and ten rows of both (diabetes)")


def draw_losses(path: str, repeats: int) -> None:
    """Draw the mean hinge loss so far of three single models and two ensembles, as-paper settings, after the switch."""
    table = find_table("cwfe-2")
    setting = table.settings[0]
    panels = {}
    for data in table.data:
        lines = {}
        for method in ("NCW", "RCW-u", "RCW-f", "CWFE-c", "CWFE-s"):
            cells = cells_of(table, setting, data, method, "paper", repeats)
            lines[method] = mean_curve([run_cell(cell) for cell in cells], "hinge")
        panels[data.name] = lines
    write(
        curve_panels(panels, "mean hinge loss", f"CWFE: mean loss after the switch, {plural(repeats, 'stream')} each"),
        path,
    )


FIGURES = [
    Figure("1", "two feature spaces and their overlap", draw_spaces),
    Figure("2", "mean loss so far after the switch", draw_losses),
]

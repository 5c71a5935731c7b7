"""OVFIV, Fig. 1 and 2: loss and error so far of both classifiers and of the ensemble."""

from __future__ import annotations

from varifold.base.plural import plural
from varifold.bench.tables import find_table
from varifold.report.papers import Figure
from varifold.report.papers.runs import cells_of, curve_panels, mean_curve, run_cell
from varifold.report.style import write

__all__ = ["FIGURES"]

SETS = ("german", "kr-vs-kp", "diabetes")
BASES = ("Naive", "OVFM", "OLIDS")
LINES = {
    "variation": "variation-classifier",
    "feature": "feature-classifier",
    "ensemble": "ensemble OVFIV-ca",
}


def _draw(path: str, repeats: int, field: str, ylabel: str, title: str) -> None:
    panels = {}
    for name, absence in (("ovfiv-2", "informative"), ("ovfiv-3", "not informative")):
        table = find_table(name)
        setting = table.settings[0]
        for data in [d for d in table.data if d.name in SETS]:
            for base in BASES if data.name == SETS[0] else BASES[:1]:
                cells = {k: cells_of(table, setting, data, f"{base} / {m}", "paper", repeats) for k, m in LINES.items()}
                runs = {k: [run_cell(cell) for cell in each] for k, each in cells.items()}
                lines = {k: mean_curve(results, field) for k, results in runs.items()}
                panels[f"{data.name}, absence {absence}, base {base}"] = lines
    write(curve_panels(panels, ylabel, f"{title}, {plural(repeats, 'stream')} each"), path)


def draw_losses(path: str, repeats: int) -> None:
    """Draw the mean square loss so far."""
    _draw(path, repeats, "square", "mean square loss", "OVFIV: loss so far of both classifiers and their ensemble")


def draw_errors(path: str, repeats: int) -> None:
    """Draw the error rate so far."""
    _draw(path, repeats, "cer", "error so far", "OVFIV: error so far of both classifiers and their ensemble")


FIGURES = [
    Figure("1", "loss so far of both classifiers and the ensemble", draw_losses),
    Figure("2", "error so far of both classifiers and the ensemble", draw_errors),
]

"""Write tables and their statistics as LaTeX, for a paper: ``tabular`` with the rules of booktabs."""

from __future__ import annotations

import re

from varifold.bench.compare import Filled
from varifold.bench.table import Setting
from varifold.report.grids import METRIC, SENTENCES, Grid, Shown, parameter_grid, result_grid, study_grid, time_grid
from varifold.report.ranks import group_sentences, ranking, sentence, study_sentences
from varifold.report.statements import statement_grids

__all__ = ["latex"]

HEAD = "% Needs \\usepackage{booktabs}. Written by `varifold bench ... --latex`."
ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "−": "$-$",
    "–": "--",
    "•": r"$\bullet$",
    "◦": r"$\circ$",
    "▸": r"$\triangleright$",
    "µ": r"$\mu$",
    "χ²": r"$\chi^2$",
    "R²": "$R^2$",
    "C̄": r"$\bar C$",
    "*": "$^*$",
}
PATTERN = "|".join(map(re.escape, sorted(ESCAPES, key=len, reverse=True)))


def latex(filled: list[Filled]) -> str:
    """Write every table of the list, its ranks and tests, and the papers' claims."""
    by_name = {one.table.name: one for one in filled}
    parts = [HEAD, ""]
    for one in filled:
        parts += _table(one, by_name)
    for paper, grid in statement_grids([one for one in filled if not one.table.own]).items():
        parts += _tabular(grid, "claim", f"Claims of {paper}", f"claims-{paper.lower()}")
    return "\n".join(parts)


def _table(one: Filled, by_name: dict[str, Filled]) -> list[str]:
    table = one.table
    if table.parameters:
        other = by_name.get(table.parameters)
        return [] if other is None else _tabular(parameter_grid(other), "data set", table.title, table.name)
    parts: list[str] = []
    for number, setting in enumerate([s for s in table.settings if one.data_in(s)], 1):
        label = f"{table.name}-{number}"
        if table.own:
            parts += _tabular(study_grid(one, setting), "learner", f"{table.title}: {table.caption}", label)
            parts += map(escaped, study_sentences(one, setting))
        elif table.relative_to:
            parts += _tabular(time_grid(one, setting), "data set", f"{table.title}: {table.caption}", label)
        else:
            parts += _results(one, setting, label)
    return parts


def _results(one: Filled, setting: Setting, label: str) -> list[str]:
    parts: list[str] = []
    for i, group in enumerate(one.table.groups(), 1):
        for metric in one.table.metrics:
            title = ", ".join(t for t in (one.table.title, setting.title, group, METRIC[metric]) if t)
            grid = result_grid(one, setting, group, metric)
            parts += _tabular(grid, "data set", title, f"{label}-{i}-{metric}")
        metric = one.table.metrics[0]
        ranked = ranking(one, setting, group, metric)
        lines = [] if ranked is None else [sentence(ranked)]
        parts += [*map(escaped, [*lines, *group_sentences(one, setting, group, metric)]), ""]
    return parts


def _tabular(grid: Grid, corner: str, caption: str, label: str) -> list[str]:
    """Format a grid as a table; headers over several columns are in a row of their own."""
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escaped(caption)}.}}", rf"\label{{tab:{label}}}"]
    lines += [rf"\begin{{tabular}}{{{_columns(grid)}}}", r"\toprule"]
    if any(name for name, _ in grid.spans):
        lines.append(
            _row([corner, *(rf"\multicolumn{{{w}}}{{c}}{{{escaped(name)}}}" for name, w in grid.spans)], raw=True)
        )
        corner = ""
    lines += [_row([corner, *grid.columns]), r"\midrule"]
    lines += [_row([name, *map(_cell, cells)], raw=True) for name, cells in _escaped_names(grid.rows)]
    if grid.foot:
        lines += [
            r"\midrule",
            *(_row([name, *map(_cell, cells)], raw=True) for name, cells in _escaped_names(grid.foot)),
        ]
    return [*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]


def _columns(grid: Grid) -> str:
    """Return the kinds of columns; sentences share what other columns leave of the line, and are broken into lines."""
    sentences = sum(name in SENTENCES for name in grid.columns)
    if not sentences:
        return "l" + "r" * len(grid.columns)
    width = (0.96 - 0.12 * (len(grid.columns) - sentences)) / (1 + sentences)
    text = f"p{{{width:.2f}\\linewidth}}".replace("{0.", "{.")
    return text + "".join(text if name in SENTENCES else "r" for name in grid.columns)


def _escaped_names(rows: list[tuple[str, list[Shown]]]) -> list[tuple[str, list[Shown]]]:
    return [(escaped(name), cells) for name, cells in rows]


def _row(cells: list[str], *, raw: bool = False) -> str:
    return " & ".join(cells if raw else map(escaped, cells)) + r" \\"


def _cell(shown: Shown) -> str:
    spread = shown.spread if shown.spread.startswith("±") else f"({shown.spread})" if shown.spread else ""
    return escaped(" ".join(text for text in (shown.text + shown.flag, shown.sign, spread) if text))


def escaped(text: str) -> str:
    """Escape what LaTeX reads as commands, and write symbols as mathematics."""
    return re.sub(PATTERN, lambda found: ESCAPES[found[0]], text)

"""Write the report as one self-contained HTML page: no network, no script."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

from varifold.bench.compare import Filled
from varifold.bench.statistics import Ranking
from varifold.bench.table import Setting
from varifold.report.document import html_document
from varifold.report.figures import charts, legend
from varifold.report.grids import (
    METRIC,
    SENTENCES,
    Grid,
    Shown,
    gap_grid,
    parameter_grid,
    result_grid,
    size_grid,
    study_grid,
    summary_grid,
    time_grid,
)
from varifold.report.leaderboard import joint_ranking, leaderboard_grids
from varifold.report.markdown import COUNTS, GAPS, heading
from varifold.report.ranks import group_sentences, ranking, sentence, study_sentences, win_grid
from varifold.report.recipes import capped, coverage, gap_lines, made_with, readings, recipes, total_time
from varifold.report.statements import RULES, statement_counts, statement_grids
from varifold.report.svg import at_both_widths, difference_diagram

__all__ = ["page"]

_LEGEND = """
<ul class="legend">
<li><b class="k printed">.301</b> as the paper prints it</li>
<li><b class="k better">+ .272</b> ours, better</li>
<li><b class="k near">≈ .309</b> equal within two standard errors; no sign if no deviation is known</li>
<li><b class="k worse">− .350</b> worse</li>
<li><b class="k">*</b> best of several candidates, as the paper searched them: tuned on the stream</li>
<li><b class="k">•</b> <b class="k">◦</b> the group's last method is better or worse on the same streams
(paired t-test, 5&nbsp;%)</li>
</ul>
<p class="small"><b>as paper</b>: the paper's scaling, and its parameters where they are known. <b>defaults</b>: the
library as it comes, scaling online, with an intercept. <b>majority</b>: always predicting the most frequent label.
<b>auto</b> and <b>best of ours</b> (never a tuned one, but picked afterwards) are marked against the best printed
number of the row; the count above compares them with every printed cell. <b>?</b> behind a printed number: another
figure, given with the table, contradicts it. Variants are other readings of a protocol, counted apart.
Hover over a number for the learner
behind it.</p>"""


def page(filled: list[Filled], environments: Iterable[tuple[dict[str, Any], int, str, str]] = ()) -> str:
    """Write every table of the list."""
    by_name = {f.table.name: f for f in filled}
    papers = [f for f in filled if f.table.of_a_paper]
    name = heading(filled)
    parts = [
        f'<header><p class="over">varifold</p><h1>{escape(name)}</h1>{_lead(papers)}</header>',
        _contents(filled),
    ]
    if papers:
        parts += [_summary(papers), _LEGEND]
    claims = "".join(
        f"<h3>Claims of {escape(paper)}</h3>{html_table(grid, 'claim')}"
        for paper, grid in statement_grids(papers).items()
    )
    if claims:
        counts = f"{escape(statement_counts(papers))} {_marked(RULES)}"
        parts.append(f'<section id="claims"><h2>What the papers claim</h2><p>{counts}</p>{claims}</section>')
    for better, title in GAPS.items():
        gaps = gap_grid(papers, better=better)
        if gaps is not None:
            part = "ahead" if better else "behind"
            parts.append(f'<section id="{part}"><h2>{title}</h2>{html_table(gaps, "printed cell")}</section>')
    parts += [_section(one, by_name) for one in filled]
    made = "".join(f"<li>{escape(line)}</li>" for line in [total_time(filled), *made_with(environments)])
    parts.append(f'<section id="made"><h2>Made with</h2><ul class="notes">{made}</ul></section>')
    return html_document(f"varifold: {name}", parts)


def _lead(papers: list[Filled]) -> str:
    if not papers:
        return '<p class="lead">Every learner on the same streams, each instance predicted before it is learned.</p>'
    what = "every result table of five papers" if len({f.table.paper for f in papers}) > 1 else "a paper’s numbers"
    return (
        f'<p class="lead">Online learning from features that appear and vanish: {what}, the '
        "printed numbers next to ours, on the same protocol and once more with the library’s defaults.</p>"
    )


def _contents(filled: list[Filled]) -> str:
    links = "".join(f'<a href="#{escape(f.table.name)}">{escape(f.table.title)}</a>' for f in filled)
    return f'<nav aria-label="tables">{links}<a href="#made">made with</a></nav>'


def _summary(papers: list[Filled]) -> str:
    grid = summary_grid(papers)
    if grid is None:
        return ""
    return f'<section id="summary"><h2>{COUNTS}</h2>{html_table(grid, "better / equal / worse")}</section>'


def _section(one: Filled, by_name: dict[str, Filled]) -> str:
    table = one.table
    parts = [f'<section id="{escape(table.name)}"><h2>{escape(table.title)}</h2>', f"<p>{escape(table.caption)}.</p>"]
    if table.stand_in:
        parts.append(f'<p class="warn">{escape(table.stand_in)}</p>')
    notes = [*table.notes, *readings(one)]
    if not table.parameters:
        notes += [line for line in (coverage(one), capped(one)) if line]
    parts.append('<ul class="notes">' + "".join(f"<li>{_marked(note)}</li>" for note in notes) + "</ul>")
    gaps = gap_lines(one)
    if gaps:
        listed = "".join(f"<li>{escape(line)}</li>" for line in gaps)
        parts.append(f'<div class="gaps"><b>Not there:</b><ul>{listed}</ul></div>')
    lines = "\n".join(escape(line) for line in recipes(one))
    made = f'<h4>How to reproduce this</h4><pre tabindex="0">{lines}</pre></section>'
    return "\n".join([*parts, *_tables(one, by_name), made])


def _tables(one: Filled, by_name: dict[str, Filled]) -> list[str]:
    """Return the grids of a table with what belongs to them."""
    table = one.table
    if table.parameters:
        other = by_name.get(table.parameters)
        return [] if other is None else [html_table(parameter_grid(other), "data set")]
    if table.own:
        return [_study(one, setting) for setting in table.settings]
    if table.leaderboard:
        grids = [html_table(grid, "learner") for grid in leaderboard_grids(one)]
        return [*grids, *_diagram(joint_ranking([one]), table.metrics[0])]
    if table.relative_to:
        return [html_table(time_grid(one, setting), "data set") for setting in table.settings]
    parts = []
    for setting in [s for s in table.settings if one.data_in(s)]:
        parts.append(f"<h3>{escape(setting.title)}</h3>")
        for group in table.groups():
            first = setting is table.settings[0] and group == table.groups()[0]
            parts.append(_results(one, setting, group, first))
    return parts


def _diagram(found: Ranking | None, metric: str) -> list[str]:
    """Draw the average ranks of three entries or more."""
    if found is None or len(found.names) < 3:
        return []
    caption = f"Average ranks by {METRIC[metric]}. {escape(sentence(found))} Bars join what does not differ."
    return [f'<figure class="cd">{difference_diagram(found)}<figcaption>{caption}</figcaption></figure>']


def _study(one: Filled, setting: Setting) -> str:
    parts = [html_table(study_grid(one, setting), "learner")]
    parts += [f"<p>{escape(line)}</p>" for line in study_sentences(one, setting)]
    drawn = at_both_widths(lambda width: "".join(charts(one, setting, "", width, 140 + width // 5)), 1040)
    if "<svg" in drawn:
        parts.append(f'<figure class="one">{legend(one, setting, "")}{drawn}</figure>')
    wins = win_grid(one, setting, "", one.table.metrics[0])
    if wins is not None:
        parts.append(_fold("Wins, ties and losses by error rate (paired t-tests, 5 %)", html_table(wins, ""), True))
    return "".join(parts)


def _results(one: Filled, setting: Setting, group: str, unfolded: bool) -> str:
    parts = [f"<h4>{escape(group)}</h4>" if group else ""]
    several = len(one.table.metrics) > 1
    for metric in one.table.metrics:
        if several:
            parts.append(f'<p class="metric">{METRIC[metric]}</p>')
        parts.append(html_table(result_grid(one, setting, group, metric), "data set"))
    metric = one.table.metrics[0]
    parts += _diagram(ranking(one, setting, group, metric), metric)
    among = "".join(f"<li>{escape(line)}</li>" for line in group_sentences(one, setting, group, metric))
    if among:
        parts.append(_fold("The methods of the group among themselves", f'<ul class="notes">{among}</ul>'))
    drawn = charts(one, setting, group)
    if drawn:
        picture = f'{legend(one, setting, group)}<div class="charts">{"".join(drawn)}</div>'
        parts.append(_fold("Error over time", picture, unfolded))
    wins = win_grid(one, setting, group, metric)
    if wins is not None:
        parts.append(_fold("Wins, ties and losses (paired t-tests, 5 %)", html_table(wins, "")))
    sizes = html_table(size_grid(one, setting, group), "data set")
    parts.append(_fold("Weights held, features known, microseconds per instance", sizes))
    return "\n".join(parts)


def _fold(title: str, body: str, unfolded: bool = False) -> str:
    return f"<details{' open' if unfolded else ''}><summary>{escape(title)}</summary>{body}</details>"


def html_table(grid: Grid, corner: str) -> str:
    """Format a grid; the first column stays visible if the table is wider than the screen."""
    first, place = set(), 0
    for _, width in grid.spans:
        first.add(place)
        place += width
    spans = "".join(f'<th colspan="{width}" scope="colgroup">{escape(name)}</th>' for name, width in grid.spans)
    texts = {i for i, name in enumerate(grid.columns) if name in SENTENCES}
    columns = "".join(f"<th{_classes('', i in first, i in texts)}>{escape(n)}</th>" for i, n in enumerate(grid.columns))
    body = "".join(_row(name, cells, first, texts) for name, cells in grid.rows)
    kind = ' class="sentences"' if texts else ""
    foot = "".join(_row(name, cells, first, texts) for name, cells in grid.foot)
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="table">'
        f"<table{kind}>"
        f'<thead><tr><th rowspan="2" class="name">{escape(corner)}</th>{spans}</tr><tr>{columns}</tr></thead>'
        f"<tbody>{body}</tbody>{f'<tfoot>{foot}</tfoot>' if foot else ''}</table></div>"
    )


def _marked(note: str) -> str:
    """Return a note as HTML; it may have the emphasis and the code of Markdown."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escape(note)))


def _classes(tone: str, edge: bool, text: bool) -> str:
    names = " ".join(name for name in (tone, "edge" if edge else "", "text" if text else "") if name)
    return f' class="{names}"' if names else ""


def _row(name: str, cells: list[Shown], first: set[int], texts: set[int]) -> str:
    shown = "".join(_cell(cell, i in first, i in texts) for i, cell in enumerate(cells))
    return f'<tr><th scope="row" class="name">{escape(name)}</th>{shown}</tr>'


def _cell(shown: Shown, edge: bool, text: bool) -> str:
    sign = f"<i>{shown.sign}</i> " if shown.sign else ""
    flag = f"<sup>{shown.flag}</sup>" if shown.flag else ""
    spread = f"<small>{escape(shown.spread)}</small>" if shown.spread else ""
    tip = f' title="{escape(shown.tip)}"' if shown.tip else ""
    return f"<td{_classes(shown.tone, edge, text)}{tip}>{sign}{escape(shown.text)}{flag}{spread}</td>"

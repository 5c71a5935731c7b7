"""Content of a report before it is HTML or Markdown: grids of short texts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from varifold.base.plural import plural
from varifold.base.spec import parameters, split_name
from varifold.bench.compare import Filled, Number, largest_gaps, lower_is_better, mark, tally
from varifold.bench.published import Published
from varifold.bench.statistics import ALPHA, average_ranks, paired_t
from varifold.bench.table import Data, Method, Setting, Table

__all__ = ["Grid", "Shown", "parameter_grid", "result_grid", "size_grid", "study_grid", "summary_grid", "time_grid"]

COLUMN = {"paper": "as paper", "default": "defaults"}
SENTENCES = frozenset({"reason", "figure"})
"""Columns of sentences: aligned to the left, and broken into lines."""
METRIC = {
    "cer": "error rate",
    "accuracy": "accuracy",
    "f1": "F-measure",
    "balanced_accuracy": "balanced accuracy",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "log_loss": "log loss",
    "brier": "Brier score",
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
    "mape": "MAPE",
    "pinball": "pinball",
    "seconds": "time",
}
UNCERTAINTY = {
    "covered": "coverage",
    "width": "interval width",
    "interval_score": "interval score",
    "size": "labels in a set",
}
"""Scores of intervals and sets in a study, for each coverage."""
TONES = {"+": "better", "~": "near", "-": "worse"}
SIGNS = {"+": "+", "~": "≈", "-": "−"}


@dataclass(frozen=True)
class Shown:
    """One cell: a number, its spread, its comparison with the printed one, and a note."""

    text: str
    spread: str = ""
    sign: str = ""
    tone: str = ""
    flag: str = ""
    """Outcome of a paired test against the group's last method."""
    tip: str = ""


@dataclass
class Grid:
    """A table; `spans` are headers over several columns."""

    spans: list[tuple[str, int]]
    columns: list[str]
    rows: list[tuple[str, list[Shown]]]
    foot: list[tuple[str, list[Shown]]] = field(default_factory=list)


def short(value: float) -> str:
    """Format a share like the papers, without the leading zero."""
    if math.isnan(value):
        return "–"
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


def _spread(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"±{short(value)}"


def shown_printed(printed: Published | None, doubt: str = "") -> Shown:
    """Format a printed number, with a question mark if another figure contradicts it."""
    if printed is None or printed.mean is None:
        return Shown("–", tone="gap", tip="not printed")
    tip = ". ".join(text for text in (printed.note, doubt) if text)
    return Shown(short(printed.mean), _spread(printed.std), tone="printed", flag="?" if doubt else "", tip=tip)


def column_title(table: Table, column: str) -> str:
    """Return the header of one of our columns."""
    variant = table.variant(column)
    return COLUMN[column] if variant is None else variant.name


def shown_number(number: Number, printed: Published | None, metric: str, compared: bool = True) -> Shown:
    """Make the cell of one of our numbers."""
    if not number:
        return Shown("–", tone="gap", tip=number.gap)
    verdict = mark(number, printed, metric) if compared else None
    runs = len(number.outcomes)
    tip = f"{number.text}; {plural(runs, 'repeat')}"
    if number.tried > 1:
        tip += f"; best of {number.tried} candidates, tuned on the stream"
    if runs < number.wanted:
        tip += f" of {number.wanted} wanted"
    return Shown(
        short(number.mean(metric)),
        _spread(number.std(metric)),
        SIGNS[verdict.sign] if verdict else "",
        TONES[verdict.sign] if verdict else "",
        "*" if number.tried > 1 else "",
        tip,
    )


def result_grid(filled: Filled, setting: Setting, group: str, metric: str) -> Grid:
    """Make a grid of a group of methods: printed, as in the paper, library defaults; then additional columns."""
    table = filled.table
    methods = filled.methods(group, setting)
    has_printed = any(key[3] == metric for key in filled.printed)
    printed_column = ["printed"] if has_printed else []
    methods = [m for m in methods if has_printed or table.columns(setting, m)]
    headers = [[*printed_column, *(column_title(table, c) for c in table.columns(setting, m))] for m in methods]
    spans = [(m.name, len(header)) for m, header in zip(methods, headers, strict=True)] + [("", len(table.also) + 2)]
    header = [name for names in headers for name in names] + [*table.also, "majority", "best of ours"]
    rows = []
    for data in filled.data_in(setting):
        cells: list[Shown] = []
        for method in methods:
            printed = filled.published(setting, data, method.name, metric)
            if has_printed:
                cells.append(shown_printed(printed, filled.doubt(printed) if printed else ""))
            for column in table.columns(setting, method):
                number = filled.number(setting, data, method.name, column)
                shown = shown_number(number, printed, metric, not table.stand_in and _compared(table, column))
                cells.append(_tested(shown, filled, setting, data, methods, method, column, metric))
        rows.append((data.name, cells + _last_columns(filled, setting, data, methods, metric)))
    return Grid(spans, header, rows, _rank_rows(filled, setting, methods, metric, len(table.also) + 2))


def _compared(table: Table, column: str) -> bool:
    """Return whether a column is compared with print: not another method's."""
    return table.variant(column) is None or table.counted(column)


def _last_columns(filled: Filled, setting: Setting, data: Data, methods: list[Method], metric: str) -> list[Shown]:
    table = filled.table
    printed = [filled.published(setting, data, m.name, metric) for m in methods]
    values = [p for p in printed if p is not None and p.mean is not None]
    sign = 1 if lower_is_better(metric) else -1
    lowest = min(values, key=lambda p: sign * (p.mean or 0.0), default=None)
    cells = [
        shown_number(filled.number(setting, data, name, "default"), lowest, metric, not table.stand_in)
        for name in table.also
    ]
    cells.append(Shown(short(filled.majority(setting, data, metric)), tone="quiet"))
    best = filled.best(setting, data, metric)
    if best is None:
        return [*cells, Shown("–", tone="gap")]
    method, column, number = best
    name = method if method in table.also or table.own else f"{method}, {COLUMN[column]}"
    verdict = mark(number, lowest, metric) if not table.stand_in else None
    tone = TONES[verdict.sign] if verdict else ""
    return [
        *cells,
        Shown(short(number.mean(metric)), name, SIGNS[verdict.sign] if verdict else "", tone, tip=number.text),
    ]


def _tested(
    shown: Shown,
    filled: Filled,
    setting: Setting,
    data: Data,
    methods: list[Method],
    method: Method,
    column: str,
    metric: str,
) -> Shown:
    """Mark cells with a dot if the group's last method is better on the same streams, a ring if it is worse."""
    last = methods[-1]
    if method is last:
        return shown
    a, b = (filled.number(setting, data, m.name, column) for m in (last, method))
    if not a or not b or len(a.outcomes) != len(b.outcomes):
        return shown
    mine, other = a.values(metric), b.values(metric)
    p = paired_t(mine, other)
    if not p < ALPHA:
        return shown
    better = (mine.mean() < other.mean()) == lower_is_better(metric)
    return Shown(shown.text, shown.spread, shown.sign, shown.tone, shown.flag + ("•" if better else "◦"), shown.tip)


def _rank_rows(
    filled: Filled, setting: Setting, methods: list[Method], metric: str, further: int
) -> list[tuple[str, list[Shown]]]:
    """Return averages and average ranks of the methods of a group, within print and within each of our columns.

    They are over the data sets on which every method of the group has a number.
    """
    table = filled.table
    first = ("printed",) if any(key[3] == metric for key in filled.printed) else ()
    by_method = [(*first, *table.columns(setting, m)) for m in methods]
    kinds = [k for k in by_method[0] if all(k in own for own in by_method)] if methods else []
    if len(methods) < 2:
        return []
    sign = 1 if lower_is_better(metric) else -1
    names = [m.name for m in methods]
    means: dict[str, list[str]] = {}
    ranks: dict[str, list[str]] = {}
    for kind in kinds:
        rows = filled.rows(setting, names, [kind] * len(names), metric)
        scores = np.array(list(rows.values())).reshape(-1, len(names))
        means[kind] = [short(v) for v in scores.mean(axis=0)] if rows else ["–"] * len(names)
        ranks[kind] = [f"{r:.2f}" for r in average_ranks(sign * scores)] if rows else ["–"] * len(names)
    places = [(kind, i) for i, own in enumerate(by_method) for kind in own]
    blank = [Shown("")] * further
    return [
        (title, [Shown(texts[kind][i] if kind in texts else "", tone="quiet") for kind, i in places] + blank)
        for title, texts in (("average", means), ("average rank", ranks))
    ]


def size_grid(filled: Filled, setting: Setting, group: str) -> Grid:
    """Make a grid of the weights and features at the end, and microseconds per instance."""
    table = filled.table
    entries = [(m.name, c) for m in filled.methods(group, setting) for c in table.columns(setting, m)]
    entries += [(name, "default") for name in table.also]
    spans = [(f"{m}, {column_title(table, c)}" if m not in table.also and not table.own else m, 2) for m, c in entries]
    rows = []
    for data in filled.data_in(setting):
        cells: list[Shown] = []
        for method, column in entries:
            number = filled.number(setting, data, method, column)
            cells += _size(number)
        rows.append((data.name, cells))
    return Grid(spans, ["weights / features", "µs"] * len(entries), rows)


def _size(number: Number) -> list[Shown]:
    if not number:
        return [Shown("–", tone="gap", tip=number.gap)] * 2
    known = [o.known for o in number.outcomes if o.known is not None]
    weighted = [o.weighted for o in number.outcomes if o.weighted is not None]
    sizes = f"{np.mean(weighted):,.0f} / {np.mean(known):,.0f}" if known and weighted else "–"
    micros = float(np.median([1e6 * o.seconds / max(1, o.instances) for o in number.outcomes]))
    return [Shown(sizes), Shown(f"{micros:,.2f}" if micros < 10 else f"{micros:,.0f}")]


def time_grid(filled: Filled, setting: Setting) -> Grid:
    """Make a grid of times in units of one method's: printed, both of ours, and our milliseconds."""
    table = filled.table
    methods = list(table.methods)
    spans = [(m.name, 3) for m in methods] + [(f"{table.relative_to}, ms", 2)]
    rows = []
    for data in filled.data_in(setting):
        cells = []
        for method in methods:
            for kind in ("printed", "paper", "default"):
                mine = filled.value(setting, data, method.name, kind, "seconds")
                unit = filled.value(setting, data, table.relative_to, kind, "seconds")
                ratio = mine / unit if unit > 0 else math.nan
                cells.append(Shown("–" if math.isnan(ratio) else f"{ratio:.2f}", tone="printed" * (kind == "printed")))
        for kind in ("printed", "default"):
            unit = filled.value(setting, data, table.relative_to, kind, "seconds")
            cells.append(Shown("–" if math.isnan(unit) else f"{1e3 * unit:.1f}", tone="printed" * (kind == "printed")))
        rows.append((data.name, cells))
    return Grid(spans, ["printed", "as paper", "defaults"] * len(methods) + ["printed", "ours"], rows)


def parameter_grid(other: Filled) -> Grid:
    """Make a grid of a table of parameters, as they are run in another table, with their results."""
    table = other.table
    method = next(m for m in table.methods if m.by_data)
    setting = table.settings[0]
    rows = []
    for data in table.data:
        spec = method.candidates("paper", setting.name, data.name)[0]
        given = parameters(split_name(spec)[1], spec)
        printed = other.published(setting, data, method.name, "cer")
        numbers = [
            shown_number(other.number(setting, data, method.name, c), printed, "cer") for c in ("paper", "default")
        ]
        cells = [Shown(given[key], tone="printed") for key in ("B", "C", "C_bar")]
        rows.append((data.name, [*cells, shown_printed(printed), *numbers]))
    spans = [("printed parameters", 3), (f"{method.name}: error rate with them", 3)]
    return Grid(spans, ["B", "C", "C̄", "printed", "as paper", "defaults"], rows)


def study_grid(filled: Filled, setting: Setting) -> Grid:
    """Make a grid of the learners of a user's study, one per row: metrics, intervals or sets, weights and time.

    The best of a column is marked, unless a paired t-test over the streams finds no difference from the next best.
    """
    data = filled.table.data[0]
    metrics = filled.table.metrics
    numbers = {m.name: filled.number(setting, data, m.name, "default") for m in filled.table.methods}
    covered = _covered(numbers.values())
    best = {k: _clear_best([n for n in numbers.values() if n], k) for k in metrics}
    rows = []
    for name, number in numbers.items():
        cells = [shown_number(number, None, k) for k in metrics]
        marked = [
            replace(c, tone="better", sign="▸") if number and number is best[k] else c
            for c, k in zip(cells, metrics, strict=True)
        ]
        rows.append((name, marked + [shown_number(number, None, k) for k in covered] + _size(number)))
    share = [Shown(short(filled.majority(setting, data, k)), tone="quiet") for k in metrics]
    header = [METRIC[k] for k in metrics] + list(covered.values()) + ["weights / features", "µs per instance"]
    others = [Shown("")] * (len(covered) + 2)
    foot = [("the mean so far" if metrics[0] == "mae" else "always the most frequent label", share + others)]
    return Grid([("", len(metrics)), *([("", len(covered))] if covered else []), ("", 2)], header, rows, foot)


def _covered(numbers: Iterable[Number]) -> dict[str, str]:
    """Return the headers of the scores of intervals or sets of labels by metric, for each coverage."""
    by_coverage: dict[str, dict[str, float]] = {}
    for number in numbers:
        for outcome in number.outcomes:
            by_coverage.update(outcome.by_coverage)
    return {
        f"{name}@{coverage}": f"{title} ({coverage})"
        for coverage in sorted(by_coverage, key=float)
        for name, title in UNCERTAINTY.items()
        if name in by_coverage[coverage]
    }


def _clear_best(numbers: list[Number], metric: str) -> Number | None:
    """Return the best entry; None if it ties with another one."""
    ranked = sorted(numbers, key=lambda number: _rated(number, metric))
    if not ranked or math.isinf(_rated(ranked[0], metric)):
        return None
    first = ranked[0]
    for other in ranked[1:]:
        if _rated(other, metric) == _rated(first, metric):
            return None
        if len(first.outcomes) == len(other.outcomes) > 1:
            p = paired_t(first.values(metric), other.values(metric))
            if p >= ALPHA:
                return None
    return first


def _rated(number: Number, metric: str) -> float:
    """Return the mean such that less is better; infinity without any."""
    rated = number.rated(metric)
    return math.inf if math.isnan(rated) else rated


def gap_grid(filled: list[Filled], *, better: bool = False) -> Grid | None:
    """Make a grid of the as-paper numbers furthest behind print, or ahead of it, with the reason if known."""
    rows = []
    first: dict[str, str] = {}
    for gap in largest_gaps(filled, better=better):
        p = gap.printed
        where = ", ".join(text for text in (gap.table.title, p.setting, p.data, p.method, METRIC[p.metric]) if text)
        why = gap.why or "not known"
        if gap.why and gap.why in first:
            why = f"As for {first[gap.why]} above."
        first.setdefault(gap.why, f"{p.method} on {p.data}")
        cells = [short(p.mean or 0.0), short(gap.ours), short(gap.size), why]
        rows.append((where, [Shown(text) for text in cells]))
    return Grid([("", 4)], ["printed", "as paper", "ahead" if better else "behind", "reason"], rows) if rows else None


def summary_grid(filled: list[Filled]) -> Grid | None:
    """Count, per paper, printed cells and those where ours is better / equal / worse; None if none can be compared."""
    by_paper: dict[str, list[Filled]] = {}
    for one in filled:
        by_paper.setdefault(one.table.paper, []).append(one)
    if len(by_paper) > 1:
        by_paper["all"] = [one for one in filled if not one.table.apart]
    kinds = {"paper": "as paper", "default": "defaults", "auto": "auto", "best": "best of ours", "variants": "variants"}
    rows = []
    for paper, ones in by_paper.items():
        counted = tally(ones)
        if not counted.counts["best"]["compared"]:
            continue
        cells = [Shown(f"{counted.printed}")]
        for kind in kinds:
            counts = counted.counts[kind]
            text = " / ".join(f"{counts[sign]}" for sign in ("+", "~", "-")) if counts["compared"] else "–"
            cells.append(Shown(text, tone="better" if counts["+"] > counts["-"] else ""))
        rows.append((paper, cells))
    return Grid([("", 1 + len(kinds))], ["printed cells", *kinds.values()], rows) if rows else None

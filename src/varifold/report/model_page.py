"""Write a report on one model as a self-contained HTML page, for readers who do not run it: no network, no script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from varifold import __version__
from varifold.auto import AutoClassifier, AutoRegressor
from varifold.auto.report import Change, appeared, changes
from varifold.base import VaryingDetector, VaryingLearner
from varifold.base.importances import CLEAR
from varifold.base.plural import plural
from varifold.errors import ModelFileError
from varifold.report.document import html_document
from varifold.report.style import BLUE, SKY
from varifold.report.svg import Line, at_both_widths, bar_chart, error_chart

__all__ = ["model_page"]

_SHOWN = 12
"""Most columns and labels shown."""
_CODE = re.compile("`([^`]*)`")
"""Text between backticks, which is a command."""


def model_page(learner: VaryingLearner, name: str, record: Mapping[str, Any] | None) -> str:
    """Write the page: what the model learned, how well, what matters, what changed, what it is unsure of.

    `record` is that of the run that made the model (`varifold.report.record`); without one, the page states that.
    """
    try:
        parts = [_header(learner, name, record)]
        if isinstance(learner, VaryingDetector):
            parts += [_watched(learner), _what_changed(learner)]
        else:
            parts += [_over_time(record)] if record is not None else []
            parts += [_what_matters(learner, record), _what_changed(learner)]
            parts += [_unsure(record)] if record is not None else []
        parts += [_made(learner, record)]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"the record of a run in {name} cannot be read: {error!r}") from error
    return html_document(f"{name}: report", parts, kind="model")


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def _paragraph(text: str, kind: str = "") -> str:
    with_code = _CODE.sub(r"<code>\1</code>", escape(text))
    return f"<p{f' class={kind!r}' if kind else ''}>{with_code}</p>"


def _listed(items: Sequence[str]) -> str:
    return '<ul class="notes">' + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _number(value: float) -> str:
    """Format a number with thousands separated and four significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# ---------------------------------------------------------------- header


def _header(learner: VaryingLearner, name: str, record: Mapping[str, Any] | None) -> str:
    target = learner.reading.get("target")
    detects = isinstance(learner, VaryingDetector)
    title = "Finding unusual rows" if detects else f"Predicting {target}" if target else "What the model learned"
    head = f'<header><p class="over">varifold, report on {escape(name)}</p><h1>{escape(title)}</h1>'
    if record is None:
        lead = (
            f"The detector has learned {plural(learner.steps, 'row')}, and its rate of alarms is {learner.rate:g}. The "
            "file holds no count of its alarms: `varifold detect --save` writes one."
            if isinstance(learner, VaryingDetector)
            else f"The model has learned {plural(learner.steps, 'row')}. The file holds no record of how well it "
            "predicted them: `varifold run --save` writes one."
        )
        return f"{head}{_paragraph(lead, 'lead')}</header>"
    before = "scored before the detector learned it" if detects else "predicted before the model saw its true value"
    lead = (
        f"Learned from {record['data']}: {plural(record['instances'], 'row')}, one after the other. Each row was "
        f"{before}, so all figures are about new rows."
    )
    tiles = "".join(f"<li><b>{escape(value)}</b>{escape(what)}</li>" for value, what in _tiles(record))
    return f'{head}{_paragraph(lead, "lead")}<ul class="tiles">{tiles}</ul></header>'


def _tiles(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    if record["task"] == "detection":
        return [
            (f"{record['alarms']:,}", "alarm" if record["alarms"] == 1 else "alarms"),
            (f"{record['alarms'] / record['instances']:.2%}", "of the rows are alarms"),
            (f"{record['rate']:g}", "is the requested rate of alarms"),
            (f"{record['columns']:,}", "columns seen"),
        ]
    if record["task"] == "regression":
        return [
            (_number(record["error"]), "mean absolute error"),
            (_number(record["baseline"]), "if the mean so far were predicted"),
            (f"{_number(record['lowest'])} to {_number(record['highest'])}", "range of the target"),
            (f"{record['columns']:,}", "columns seen"),
        ]
    costs = []
    if record.get("costs"):
        cost, constant, label = record["costs"]
        costs = [(_number(cost), "cost per row"), (_number(constant), f"if {label} were always predicted")]
    return [
        *costs,
        (f"{1 - record['error']:.1%}", "of the predictions are right"),
        (f"{1 - record['baseline']:.1%}", "if the most frequent label were predicted"),
        (f"{record['n_labels']:,}", "different labels"),
        (f"{record['columns']:,}", "columns seen"),
    ]


# ---------------------------------------------------------------- sections


def _over_time(record: Mapping[str, Any]) -> str:
    """Draw the error so far and in parts of the stream, and compare the beginning with the end."""
    at = np.array(record["at"], dtype=np.float64)
    so_far, recent = (
        np.array([np.nan if v is None else v for v in record[name]], dtype=np.float64) for name in ("so_far", "recent")
    )
    lines = [
        Line("in parts", at, recent, np.zeros(len(at)), SKY),
        Line("so far", at, so_far, np.zeros(len(at)), BLUE),
    ]
    baseline, period = float(record["baseline"]), record.get("period")
    chart = at_both_widths(lambda width: error_chart("", lines, baseline, width, 120 + width // 6, period))
    numeric = record["task"] == "regression"
    tenth = max(1, len(at) // 10)
    first, last = (float(np.nanmean(part)) for part in (recent[:tenth], recent[-tenth:]))
    shown = [_number(v) if numeric else f"{v:.1%}" for v in (first, last)]
    what = "mean absolute error" if numeric else "share of wrong predictions"
    return _section(
        "How well, over time",
        _paragraph(f"{what.capitalize()}: {shown[0]} in the first tenth of the rows, {shown[1]} in the last tenth."),
        f'<figure class="one">{chart}<figcaption>Dark: {what} of all rows so far. Light: in parts of the stream. '
        f"Dotted: {'predicting the mean so far' if numeric else 'always predicting the most frequent label'}."
        "</figcaption></figure>",
    )


def _what_matters(learner: VaryingLearner, record: Mapping[str, Any] | None) -> str:
    """Draw measured importances; without any, list the features by weight and presence, with a caution."""
    measured = record["importances"] if record is not None else []
    if not measured:
        return _section(
            "What matters",
            _paragraph(
                "How much each column contributes was not measured; `varifold run --importances --save` measures it. "
                "These features have the largest average weight in the model, which is no proof that they are needed. "
                "Present: share of the rows that have the feature, since it appeared."
            ),
            _listed([f"{name} (present {share:.0%})" for name, share in _by_weight(learner)]),
        )
    clear = [row for row in measured if row[1] > CLEAR * row[2]]
    rest = [row[0] for row in measured if row not in clear]
    unit = "mean absolute error" if record is not None and record["task"] == "regression" else "log loss"
    parts = []
    if clear:
        bars = [(row[0], row[1], row[2], f"present {row[3]:.0%}") for row in clear[:_SHOWN]]
        chart = at_both_widths(lambda width: bar_chart(bars, width))
        parts.append(
            f'<figure class="one">{chart}<figcaption>How much worse the predictions become ({unit}) if the values of a '
            "column are exchanged between rows; the thin line is twice the standard error. Present: share of the rows "
            "that have the column, since it appeared.</figcaption></figure>"
        )
    else:
        parts.append(_paragraph("No column was found without which the predictions would be clearly worse."))
    if rest:
        more = f" and {len(rest) - _SHOWN} more" if len(rest) > _SHOWN else ""
        parts.append(_paragraph(f"No clear loss without: {', '.join(rest[:_SHOWN])}{more}.", "small"))
    return _section("What matters", *parts)


def _watched(learner: VaryingLearner) -> str:
    """List the columns of a detector, which measures no importances."""
    return _section(
        "What it looks at",
        _paragraph(
            "The features with the largest average weight in the detector. `varifold detect` names those behind each "
            "alarm, `varifold explain` those of one row. Present: share of the rows that have the feature, since it "
            "appeared."
        ),
        _listed([f"{name} (present {share:.0%})" for name, share in _by_weight(learner)]),
    )


def _by_weight(learner: VaryingLearner) -> list[tuple[str, float]]:
    steps = learner.steps
    ranked = sorted(learner.features.items(), key=lambda item: -item[1].weight * item[1].share(steps))
    return [(str(name), feature.share(steps)) for name, feature in ranked[:_SHOWN]]


def _what_changed(learner: VaryingLearner) -> str:
    """Describe columns that came and went, changes of unit, and rises of the error."""
    if isinstance(learner, AutoClassifier | AutoRegressor):
        report = learner.report()
        lines = [str(drift) for drift in report.drifts if drift.successor is None][-5:]
        found = report.changes
    else:
        lines, found = [], changes(learner.steps, learner.features, "", {})
    lines += [str(change) for change in found if change.what not in ("vanished", "new")][:_SHOWN]
    lines += _came_and_went(learner, found)
    return _section("What changed", _listed(lines) if lines else _paragraph("No column appeared or vanished."))


def _came_and_went(learner: VaryingLearner, found: Sequence[Change]) -> list[str]:
    """Describe the columns that appeared or vanished, in order: the latest of them, by the rows learned before."""
    events = [(first - 1, f"{name} appeared") for name, first in appeared(learner.features).items()]
    events += [(change.step, f"{change.feature} vanished") for change in found if change.what == "vanished"]
    events.sort()
    earlier = len(events) - _SHOWN
    lines = [f"... {plural(earlier, 'earlier change')}"] if earlier > 0 else []
    latest: dict[int, list[str]] = {}
    for rows, event in events[-_SHOWN:]:
        latest.setdefault(rows, []).append(event)
    return lines + [f"After {plural(rows, 'row')}: {', '.join(each)}." for rows, each in latest.items()]


def _unsure(record: Mapping[str, Any]) -> str:
    """Describe labels that are hard to distinguish, and whether intervals and sets hold what they promise."""
    lines = []
    for label, count, precision, recall in record.get("labels", [])[:_SHOWN]:
        recognised = "none" if recall is None else f"{recall:.0%}"
        right = "never predicted" if precision is None else f"{precision:.0%} of its predictions are right"
        lines.append(f"{label}: {plural(count, 'row')}, {recognised} recognised; {right}")
    parts = [_listed(lines)] if lines else []
    confused = [
        f"{true} was predicted as {other} {plural(count, 'time')}" for true, other, count in record.get("confused", [])
    ]
    parts += [_paragraph("Most frequent confusions:"), _listed(confused)] if confused else []
    numeric = record["task"] == "regression"
    for requested, covered, size in record["coverage"]:
        what = f"intervals, {_number(size)} wide on average," if numeric else f"sets of {size:.2g} labels on average"
        share = f"{covered:.1%} of the rows ({requested:.0%} were requested)"
        parts.append(_paragraph(f"The {what} contained the truth in {share}."))
    if record.get("requested"):
        parts.append(_paragraph(f"Only requested labels were learned. What they alone show: {record['requested']}."))
    return _section("What it is unsure of", *(parts or [_paragraph("Nothing was measured about it in this run.")]))


def _made(learner: VaryingLearner, record: Mapping[str, Any] | None) -> str:
    header = learner._header()
    known = plural(len(learner.features), "feature")
    lines = [f"Method: {header['method']}, {plural(learner.steps, 'row')} learned, {known} known"]
    if isinstance(learner, AutoClassifier | AutoRegressor):
        experts = sorted(learner.report().experts.items(), key=lambda item: -item[1])
        shown = "; ".join(f"{name} {weight:.0%}" for name, weight in experts if weight >= 0.01)
        lines.append(
            "It combines learners of several kinds and weights each by its recent predictions; stack is a sum of all "
            f"the others, with learned weights. Now: {shown}"
        )
    lines.append(f"Written by varifold {__version__}")
    return _section("How it was made", _listed(lines))

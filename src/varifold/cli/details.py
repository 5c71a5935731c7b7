"""Details of a run: every label, the confusion table, every period, every prediction."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from varifold.base.learner import is_regressor
from varifold.base.plural import plural
from varifold.cli.output import named, number, shorten, table
from varifold.cli.targets import check_picture, check_target
from varifold.cli.writers import check_format, open_writer
from varifold.errors import ParameterError
from varifold.evaluate import RegressionResult, Result, Summary
from varifold.evaluate.periods import PERIODS

_MOST = 20
"""Most labels of a confusion table in text."""
PRESENT = "present: share of the rows that have the column, since it appeared"
_NUMBER_PERIOD = ("mae", "rmse", "mean_mae")
_PERIOD = ("cer", "f1", "balanced_accuracy", "kappa", "log_loss", "majority_cer")


def add_options(parser: Any) -> None:
    """Declare --by, --confusion and --predictions."""
    parser.add_argument(
        "--by", type=_by, metavar="PERIOD", help=f"metrics per {', '.join(PERIODS)} of --time COL, or per N instances"
    )
    parser.add_argument(
        "--confusion", action="store_true", help="precision and recall of every label, and the confusion table"
    )
    parser.add_argument(
        "--importances",
        nargs="?",
        const="",
        metavar="FILE.png",
        help="draw how much worse predictions are without each column, over time",
    )
    parser.add_argument(
        "--predictions", metavar="FILE", help="write every prediction to a .csv, .jsonl or .parquet file (one repeat)"
    )


def _by(text: str) -> str | int:
    if text in PERIODS:
        return text
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither one of {', '.join(PERIODS)} nor a number of instances")


def check(args: argparse.Namespace) -> None:
    """Raise an error for options that cannot work, before anything is read."""
    if isinstance(args.by, str) and not args.time:
        raise ParameterError(f"--by {args.by} needs --time COL: which column holds the time of a row?")
    if args.importances:
        check_picture(args.importances)
    if (args.importances is not None or args.html) and args.jobs > 1:
        raise ParameterError(f"{'--html' if args.html else '--importances'} is for --jobs 1")
    if args.predictions:
        if args.repeats > 1:
            raise ParameterError("--predictions is for one repeat")
        check_target(args.predictions, [*args.files, *filter(None, [args.load])])
        check_format(args.predictions)


def check_task(args: argparse.Namespace, cls: type[Any]) -> None:
    """Raise an error for options that the learner's task does not have."""
    if is_regressor(cls) and args.positive is not None:
        raise ParameterError(f"--positive {args.positive} names a label; the target is a number, and has none")
    if not is_regressor(cls) and args.quantile is not None:
        raise ParameterError(
            f"--quantile {args.quantile:g} is for numbers, and the target is a class; --target-type number predicts it"
        )
    if is_regressor(cls) and args.confusion:
        raise ParameterError("--confusion is for classifiers; the target is a number")


@contextmanager
def predictions_to(path: str | None) -> Iterator[Any]:
    """Return the argument `predictions` of `prequential`: a function that writes them, or False without a path."""
    if path is None:
        yield False
        return
    with open_writer(path, None) as write:
        yield lambda part: write(list(part.records()))


def facts(args: argparse.Namespace, summary: Summary) -> dict[str, Any]:
    """Return what JSON has in addition: labels (of the first repeat), and periods if requested."""
    first = summary.results[0]
    found: dict[str, Any] = {}
    if isinstance(first, Result):
        found["per_label"] = {str(label): vars(scores) for label, scores in first.per_label().items()}
        found["confusion"] = first.confusion.tolist()
    if args.by is not None:
        found["periods"] = [_period_facts(period) for period in first.periods]
    if args.importances is not None:
        found["importances"] = [
            {"column": name, **vars(each), "matters": each.matters} for name, each in first.importances.items()
        ]
    return found


def _period_facts(period: Any) -> dict[str, Any]:
    return {"period": period.name, "instances": period.instances, "scored": period.scored, **period.metrics()}


def period_lines(summary: Summary) -> list[dict[str, Any]]:
    """Return the lines of CSV by period, which replace those by repeat."""
    return [
        {"seed": seed, **_period_facts(period)}
        for seed, result in zip(summary.seeds, summary.results, strict=True)
        for period in result.periods
    ]


def pages(args: argparse.Namespace, summary: Summary) -> list[str]:
    """Return the tables below that of the metrics, of the first repeat."""
    first = summary.results[0]
    found = []
    if args.by is not None:
        found.append(_period_page(first))
    if args.confusion:
        found += [_label_page(first), _confusion_page(first)]
    if args.importances is not None:
        found.append(_importance_page(first))
    return found


def _importance_page(result: Result | RegressionResult) -> str:
    rows = []
    is_label = isinstance(result, Result)
    for name, each in list(result.importances.items())[:_MOST]:
        verdict = "" if each.matters else "no loss seen"
        loss, error = (
            (f"{each.loss:+.4f}", f"{each.error:.4f}") if is_label else (f"{each.loss:+.4g}", f"{each.error:.2g}")
        )
        rows.append([named(name), loss, error, f"{each.present:.0%}", verdict])
    head = ["column", "log loss without it" if is_label else "absolute error without it", "± error", "present", ""]
    more = len(result.importances) - _MOST
    note = [f"... and {plural(more, 'less important column')} (--format json has all)"] if more > 0 else []
    note.append(PRESENT)
    return "\n".join([table(head, rows), *note])


def draw(args: argparse.Namespace, summary: Summary, title: str) -> None:
    """Draw the picture of the importances, if requested."""
    if not args.importances:
        return
    from varifold.report.forest import plot_importances

    plot_importances(summary.results[0], args.importances, f"Loss of accuracy without a column: {title}")
    print(f"picture written to {args.importances}", file=sys.stderr)


def _period_page(result: Result | RegressionResult) -> str:
    shown = _PERIOD if isinstance(result, Result) else _NUMBER_PERIOD
    rows = [[p.name, f"{p.instances:,}", *(number(getattr(p, name)) for name in shown)] for p in result.periods]
    return table(["period", "instances", *(_heading(name) for name in shown)], rows)


def _heading(name: str) -> str:
    """Return the heading of a metric, short enough for a table with a line per period."""
    short = {"balanced_accuracy": "balanced", "majority_cer": "majority", "mean_mae": "mae of the mean"}
    return short.get(name, name.replace("_", " "))


def _label_page(result: Result) -> str:
    rows = [
        [
            shorten(str(label), 30),
            *(number(v) for v in (s.precision, s.recall, s.f1)),
            f"{s.count:,}",
            f"{s.predicted:,}",
        ]
        for label, s in result.per_label().items()
    ]
    return table(["label", "precision", "recall", "f1", "instances", "predictions"], rows)


def _confusion_page(result: Result) -> str:
    names = [shorten(str(label), 12) for label in result.labels]
    if len(names) > _MOST:
        return f"the confusion table of {len(names):,} labels is in --format json"
    head = [*names, "none"] if result.confusion[:, 0].any() else names
    rows = [
        [name, *(f"{count:,}" for count in ([*row[1:], row[0]] if len(head) > len(names) else row[1:]))]
        for name, row in zip(names, result.confusion.tolist(), strict=True)
    ]
    return table(["true \\ predicted", *head], rows)

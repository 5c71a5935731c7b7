"""``varifold demo``: sensors drop out, retire and are added; one learner, five ways to treat absent values."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold.base import to_block
from varifold.base.spec import parse_model
from varifold.cli.filling import ways
from varifold.cli.numbers import natural
from varifold.cli.output import number, print_json, table
from varifold.cli.sensors import Plant, plant
from varifold.cli.targets import check_picture
from varifold.errors import MissingExtraError
from varifold.evaluate import Result, prequential

_STORY = """\
A cooling plant, {n:,} readings of up to {sensors} sensors; will it trip? Groups of sensors fall silent and come back,
thermometers are taken away for good, acoustic and infrared ones are added, battery nodes live and die.
The same learner ({model}) sees the stream in five ways, and three of river's learners see it as it is:
"""


@dataclass(frozen=True)
class Way:
    """A line of the table: its result, and the number of values that were filled in."""

    name: str
    result: Result
    made_up: int


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "demo",
        help="watch a learner cope with failing sensors",
        description="Sensors drop out, retire and are added while a learner keeps its error down. Needs no data.",
    )
    parser.add_argument("--model", default="auto", metavar="NAME[:KEY=VALUE,...]", help="default auto")
    parser.add_argument("--plot", default="varifold-demo.png", metavar="FILE.png", help="default varifold-demo.png")
    parser.add_argument("--seed", type=natural, default=7, metavar="S")
    parser.add_argument("--format", choices=["table", "json"], default="table")


def run(args: argparse.Namespace) -> int:
    """Run all treatments, print the table, and draw the picture if matplotlib is installed."""
    spec = parse_model(args.model, imports=True)
    with suppress(MissingExtraError):
        check_picture(args.plot)
    made = plant(seed=args.seed)
    lines = [
        Way(way.name, prequential(spec(), to_block(way.readings, made.labels, names=way.columns)), way.made_up)
        for way in ways(made)
    ]
    block = to_block(made.readings, made.labels, names=made.names)
    lines += [Way(name, prequential(learner, block), 0) for name, learner in _peers().items()]
    if args.format == "json":
        print_json([_entry(way, made) for way in lines])
    else:
        print(_STORY.format(n=len(made.labels), sensors=len(made.names), model=args.model))
        print(_table(lines, made))
    try:
        from varifold.report.demo import plot_demo

        plot_demo(made, [(way.name, way.result.curve) for way in lines], len(lines) - len(_peers()), args.plot)
    except MissingExtraError as error:
        print(f"\nno picture: {error}", file=sys.stderr)
    else:
        print(f"\npicture written to {args.plot}", file=sys.stderr)
    return 0


def _peers() -> dict[str, Any]:
    """Return river's learners that accept instances with absent values."""
    from river import compose, linear_model, naive_bayes, preprocessing, tree
    from river.multiclass import OneVsRestClassifier

    bayes: Any = naive_bayes.GaussianNB
    return {
        "river's logistic regression, scaled": compose.Pipeline(
            preprocessing.StandardScaler(), OneVsRestClassifier(linear_model.LogisticRegression())
        ),
        "river's Gaussian naive Bayes": bayes(),
        "river's Hoeffding adaptive tree": tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    }


def _silent(made: Plant) -> np.ndarray[Any, np.dtype[np.bool_]]:
    silent = np.zeros(len(made.labels), dtype=bool)
    for _, lo, hi in made.outages():
        silent[lo:hi] = True
    return silent


def _during(way: Way, made: Plant) -> tuple[float, float]:
    """Return the error while a group of sensors was silent, and in the last quarter (after the replacement)."""
    curve = way.result.curve
    lows = np.concatenate([[0], curve.at[:-1]])
    out = _silent(made)[(lows + curve.at) // 2]
    last = curve.at > 0.75 * len(made.labels)
    return float(curve.window_cer[out].mean()), float(curve.window_cer[last].mean())


def _entry(way: Way, made: Plant) -> dict[str, Any]:
    outage, last_quarter = _during(way, made)
    return {
        "way": way.name,
        "cer": way.result.cer,
        "cer_outages": outage,
        "cer_last_quarter": last_quarter,
        "made_up": way.made_up,
        "us_per_instance": way.result.us_per_instance,
        "majority_cer": way.result.majority_cer,
    }


def _table(lines: list[Way], made: Plant) -> str:
    rows = []
    for entry in (_entry(way, made) for way in lines):
        errors = [number(entry[key], 3) for key in ("cer", "cer_outages", "cer_last_quarter")]
        rows.append([entry["way"], *errors, f"{entry['made_up']:,}", f"{entry['us_per_instance']:,.0f}"])
    header = ["", "error", "in outages", "last quarter", "values made up", "us an instance"]
    return table(header, rows) + f"\n\nalways predicting the more frequent label: {lines[0].result.majority_cer:.3f}"

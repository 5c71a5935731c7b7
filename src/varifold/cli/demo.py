"""``varifold demo``: sensors drop out, retire and are added; one learner, four ways to treat what is absent."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold.base import models, to_block
from varifold.base.spec import parse_model
from varifold.cli.numbers import natural
from varifold.cli.output import number, print_json, table
from varifold.cli.sensors import Plant, Values, plant
from varifold.cli.targets import check_picture
from varifold.errors import MissingExtraError
from varifold.evaluate import Result, prequential

_STORY = """\
A cooling plant, {n:,} readings of up to {sensors} sensors; will it trip? Groups of sensors fall silent and come back,
thermometers are taken away for good, acoustic and infrared ones are added, battery nodes live and die.
The same learner ({model}) sees the stream in four ways:
"""
_FIXED = 0.05
"""Share of the stream from which a fixed table takes its columns."""


@dataclass(frozen=True)
class Way:
    """One way to treat absent values: its result, and how many values it had to fill in."""

    name: str
    result: Result
    made_up: int


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "demo",
        help="see a learner live through failing sensors",
        description="Sensors drop out, retire and are added while a learner keeps its error down. Needs no data.",
        allow_abbrev=False,
    )
    default = "auto" if "auto" in models else "arow"
    parser.add_argument("--model", default=default, metavar="NAME[:KEY=VALUE,...]", help=f"default {default}")
    parser.add_argument("--plot", default="varifold-demo.png", metavar="FILE.png", help="default varifold-demo.png")
    parser.add_argument("--seed", type=natural, default=7, metavar="S")
    parser.add_argument("--format", choices=["table", "json"], default="table")


def run(args: argparse.Namespace) -> int:
    """Run the four ways, print the table, draw the picture when matplotlib is there."""
    spec = parse_model(args.model)
    with suppress(MissingExtraError):
        check_picture(args.plot)
    made = plant(seed=args.seed)
    ways = [
        Way(name, prequential(spec(), to_block(readings, made.labels, names=names)), made_up)
        for name, readings, names, made_up in _ways(made)
    ]
    if args.format == "json":
        print_json([_entry(way, made) for way in ways])
    else:
        print(_STORY.format(n=len(made.labels), sensors=len(made.names), model=args.model))
        print(_table(ways, made))
    try:
        from varifold.report.demo import plot_demo

        plot_demo(made, [(way.name, way.result.curve) for way in ways[:3]], args.plot)
    except MissingExtraError as error:
        print(f"\nno picture: {error}", file=sys.stderr)
    else:
        print(f"\npicture written to {args.plot}", file=sys.stderr)
    return 0


def _ways(made: Plant) -> list[tuple[str, Values, list[str], int]]:
    """(name, readings, column names, values made up) of each way."""
    readings = made.readings
    at_start = np.flatnonzero(~np.isnan(readings[: int(_FIXED * len(readings))]).all(axis=0))
    fixed = [made.names[j] for j in at_start.tolist()]
    zeros, means = _filled(readings, False), _filled(readings, True)
    made_up = int(np.isnan(readings).sum() - np.isnan(means).sum())
    made_up_fixed = int(np.isnan(readings[:, at_start]).sum() - np.isnan(means[:, at_start]).sum())
    return [
        ("absent stays absent", readings, made.names, 0),
        ("zeros filled in", zeros, made.names, made_up),
        ("means filled in, fixed columns", means[:, at_start], fixed, made_up_fixed),
        ("means filled in, growing columns", means, made.names, made_up),
    ]


def _filled(readings: Values, with_means: bool) -> Values:
    """The readings with a value for every sensor seen so far: zero, or the mean of its readings."""
    there = ~np.isnan(readings)
    count = there.cumsum(axis=0)
    mean = np.where(there, readings, 0.0).cumsum(axis=0) / np.maximum(count, 1)
    fill = mean if with_means else np.zeros_like(mean)
    return np.where(there, readings, np.where(count > 0, fill, np.nan))


def _silent(made: Plant) -> np.ndarray[Any, np.dtype[np.bool_]]:
    silent = np.zeros(len(made.labels), dtype=bool)
    for _, lo, hi in made.outages():
        silent[lo:hi] = True
    return silent


def _during(way: Way, made: Plant) -> tuple[float, float]:
    """Error while a group of sensors was silent, and in the last quarter (after the replacement)."""
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


def _table(ways: list[Way], made: Plant) -> str:
    rows = []
    for entry in (_entry(way, made) for way in ways):
        errors = [number(entry[key], 3) for key in ("cer", "cer_outages", "cer_last_quarter")]
        rows.append([entry["way"], *errors, f"{entry['made_up']:,}"])
    header = ["", "error", "in outages", "last quarter", "values made up"]
    return table(header, rows) + f"\n\nalways answering the more frequent label: {ways[0].result.majority_cer:.3f}"

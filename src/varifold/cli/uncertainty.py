"""``--coverage``: intervals and sets of labels in ``varifold run``, ``follow`` and ``predict``."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

import numpy as np

from varifold.base.spec import ModelSpec
from varifold.cli.numbers import share
from varifold.errors import ParameterError
from varifold.evaluate import RegressionResult, Summary
from varifold.evaluate.predictions import column_names

_LABELS = {
    "covered": "coverage",
    "width": "interval width",
    "interval_score": "interval score",
    "infinite": "infinite intervals",
    "size": "labels in a set",
    "empty": "empty sets",
    "all_labels": "sets of all labels",
}


def add_options(parser: Any) -> None:
    """Declare --coverage."""
    parser.add_argument(
        "--coverage",
        type=_inside,
        action="append",
        metavar="SHARE",
        help="intervals (sets of labels for a classifier) that contain this share of the true values; may be repeated "
        "(default: what the learner has, 0.9 for auto on numbers)",
    )


def _inside(text: str) -> float:
    """Parse a coverage: a number above 0 and below 1."""
    coverage = share(text)
    if coverage in (0.0, 1.0):
        raise argparse.ArgumentTypeError(f"must be above 0 and below 1, not {text!r}")
    return coverage


def with_coverages(spec: ModelSpec, args: argparse.Namespace) -> ModelSpec:
    """Set the requested coverages of a learner."""
    if args.coverage is None:
        return spec
    if not spec.accepts("coverages"):
        raise ParameterError(f"--coverage: {spec.cls.__name__} has no parameter 'coverages'; learners of varifold have")
    return spec.having(coverages=requested(args))


def requested(args: argparse.Namespace) -> tuple[float, ...]:
    """Return the requested coverages, ascending."""
    return tuple(sorted(set(args.coverage)))


def _scores(result: Any) -> list[Any]:
    return list(result.intervals if isinstance(result, RegressionResult) else result.sets)


def facts(summary: Summary) -> dict[str, Any]:
    """Return mean and deviation by coverage, for JSON and the table; nothing for a learner without coverages."""
    runs = [_scores(result) for result in summary.results]
    if not runs[0]:
        return {}
    found = []
    for scores in zip(*runs, strict=True):
        measured = {}
        for field in fields(scores[0])[1:]:
            values = np.array([getattr(each, field.name) for each in scores])
            spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
            measured[field.name] = {"mean": float(values.mean()), "std": spread}
        found.append({"coverage": scores[0].coverage, **measured})
    return {"intervals" if isinstance(summary.results[0], RegressionResult) else "sets": found}


def shown(facts: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Return (label, mean and deviation) of the lines of the table."""
    return [
        (f"{_LABELS[name]} ({each['coverage']:g})", measured)
        for each in facts.get("intervals", facts.get("sets", []))
        for name, measured in each.items()
        if name != "coverage" and (name not in ("infinite", "all_labels") or measured["mean"] > 0.01)
    ]


def line(result: Any) -> dict[str, float]:
    """Return the columns of a line of CSV."""
    return {
        f"{field.name}_{each.coverage:g}": getattr(each, field.name)
        for each in _scores(result)
        for field in fields(each)[1:]
    }


def regions(learner: Any, block: Any, is_number: bool) -> list[dict[str, Any]]:
    """Return low and high, or the set, of every row by column name; empty dicts for a learner without coverages."""
    coverages = tuple(getattr(learner, "coverages", ()))
    found: list[dict[str, Any]] = [{} for _ in range(len(block))]
    for place, coverage in enumerate(coverages):
        if is_number:
            low, high = (column_names(end, coverages)[place] for end in ("low", "high"))
            for row, interval in zip(found, learner.predict_interval_many(block, coverage), strict=True):
                row[low], row[high] = (bound if np.isfinite(bound) else None for bound in interval)
        else:
            name = column_names("set", coverages)[place]
            for row, held in zip(found, learner.predict_set_many(block, coverage), strict=True):
                row[name] = [label for label in learner.classes if label in held]
    return found

"""``--objective`` and ``--costs``: how a learner chooses the label to predict."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from varifold.base.costs import OBJECTIVES
from varifold.base.spec import ModelSpec, split_pairs
from varifold.errors import ParameterError, UnknownNameError
from varifold.evaluate import Summary
from varifold.streams.readers._numbers import label_of


def add_options(parser: Any) -> None:
    """Declare both options."""
    parser.add_argument(
        "--objective",
        choices=OBJECTIVES,
        help="what to optimise; balanced: every label counts the same (default accuracy)",
    )
    parser.add_argument("--costs", metavar="LABEL=COST,...", help="cost of missing a label, 1 for those not named")


def with_rule(spec: ModelSpec, args: argparse.Namespace) -> ModelSpec:
    """Set the objective or costs of a learner from the options."""
    given = {"objective": args.objective, "costs": None if args.costs is None else parse_costs(args.costs)}
    for name, value in given.items():
        if value is None:
            continue
        if not spec.accepts(name):
            raise ParameterError(f"--{name}: {spec.cls.__name__} has no parameter {name!r}")
        spec = spec.having(**{name: value})
    spec()
    return spec


def parse_costs(text: str) -> dict[Any, float]:
    """Parse costs by label; a label is read like the label column of a file."""
    costs: dict[Any, float] = {}
    for label, cost in split_pairs(text, last=True):
        try:
            number = float(cost or "")
        except ValueError:
            raise ParameterError(f"--costs: {label!r} has no cost in {text!r}; write LABEL=COST,LABEL=COST") from None
        known = label_of(label.strip().encode())
        if known in costs:
            raise ParameterError(f"--costs: {label.strip()!r} is given twice in {text!r}")
        costs[known] = number
    if not costs:
        raise ParameterError("--costs: no LABEL=COST is given")
    return costs


def facts(text: str | None, summary: Summary) -> dict[str, Any]:
    """Return the mean cost of an instance, and that of the cheapest constant prediction (in the first repeat)."""
    if text is None:
        return {}
    costs = parse_costs(text)
    values = np.array([result.cost(costs) for result in summary.results])
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    label, constant = summary.results[0].constant_cost(costs)
    return {
        "cost": {"mean": float(values.mean()), "std": spread},
        "constant_cost": {"label": label, "mean": constant},
    }


def check_labels(text: str | None, labels: list[Any]) -> None:
    """Raise an error for costs of labels that do not occur in the stream."""
    unknown = [label for label in parse_costs(text) if label not in labels] if text is not None else []
    if unknown:
        raise UnknownNameError(f"--costs: the label {unknown[0]!r} is not in the stream; it has {labels!r}")

"""Choose between classifiers and regressors by the type of the target, and report the choice."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from varifold.base import Block
from varifold.base.blocks import with_numbers
from varifold.base.learner import is_regressor
from varifold.base.spec import ModelSpec, parse_model, regressor_for
from varifold.cli.source import Input
from varifold.errors import ParameterError

_MANY = 10
"""More whole numbers than this as classes cause a remark."""


def for_target(
    args: argparse.Namespace, given: Input, spec: ModelSpec, named: bool = True, loaded: Any = None
) -> ModelSpec:
    """Return the learner for the target of the input: a classifier's name means its regressor for a number.

    The choice is reported on standard error. A regressor that was named, or a saved one, makes the target a number
    automatically. `named` is whether the caller named the learner.
    """
    numeric = is_regressor(loaded if loaded is not None else spec.cls)
    if numeric and args.target_type == "class":
        raise ParameterError(f"--target-type class: {spec.name} is a regressor, which predicts numbers")
    if numeric:
        _take_numbers(given)
    elif _target_type(args, given) == "number":
        if loaded is not None:
            raise ParameterError(f"the target is a number, and {args.load} holds the classifier {spec.name!r}")
        spec = regressor_for(spec) if named else parse_model("autoregressor")
        _take_numbers(given)
        report_number(
            spec,
            "requested by --target-type" if args.target_type else "--target-type class reads every number as a class",
        )
    return spec


def report_number(spec: ModelSpec, how: str) -> None:
    """Report on standard error that the target is a number, how that was decided, and which learner predicts it."""
    print(f"the target is a number ({how}): {spec.name} predicts it", file=sys.stderr)


def _target_type(args: argparse.Namespace, given: Input) -> str | None:
    """Return ``class`` or ``number``, as given, as the data set has it or as the first rows of files show."""
    if args.target_type is not None:
        return str(args.target_type)
    if given.stream is None:
        block = given.whole if isinstance(given.whole, Block) else given.whole.block
        return "class" if block.targets is None else "number"
    found: str | None = given.stream.target_type
    return found


def _take_numbers(given: Input) -> None:
    """Read the target of the input as numbers to predict."""
    if given.stream is not None:
        given.stream.predict_numbers()
    elif isinstance(given.whole, Block):
        given.whole = with_numbers(given.whole)
    else:
        given.whole = replace(given.whole, block=with_numbers(given.whole.block))


def warn_if_numbers(labels: Sequence[Any], scored: int) -> None:
    """Remark on standard error that classes may be numbers: many numbers, or labels that occur once each.

    `scored` instances had these different labels.
    """
    if len(labels) > _MANY and all(type(label) in (int, float) for label in labels):
        print(
            f"the target holds {len(labels)} numbers, each read as a class; --target-type number predicts them",
            file=sys.stderr,
        )
    elif len(labels) > _MANY and 2 * len(labels) > scored:
        print(
            f"the {scored} instances have {len(labels)} different labels, such as {labels[0]!r}; a number to predict "
            "has to be written as one: 1234.5 (--decimal , for 1234,5)",
            file=sys.stderr,
        )

"""``varifold report``: write a page about one model, for readers who do not run it."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from varifold.base.plural import plural
from varifold.cli import keyed
from varifold.cli.targets import check_target
from varifold.ensemble.per_key import KeyedLearner
from varifold.ensemble.vote import Vote
from varifold.errors import ParameterError


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "report",
        help="write a page about a model",
        description="Write a self-contained page about a model file: what it learned, how well over time, what "
        "matters, what changed, what it is unsure of. `run --html` writes the same page for a run.",
    )
    parser.add_argument("file", metavar="MODEL", help="a file that `varifold run --save` or learner.save() wrote")
    parser.add_argument("--html", required=True, metavar="PAGE.html", help="page to write")
    keyed.add_option(parser)


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    check_target(args.html, [args.file])
    learner = keyed.open_model(args.file, args.key_value)
    if isinstance(learner, KeyedLearner):
        raise ParameterError(f"{args.file} holds {plural(len(learner.keys), 'learner')}; name one with --key-value")
    if isinstance(learner, Vote):
        raise ParameterError(f"{args.file} holds a vote of {len(learner.learners)} learners; report on one of them")
    write_page(args.html, learner, os.path.basename(args.file), learner.reading.get("run"))
    return 0


def write_page(path: str, learner: Any, name: str, record: Any) -> None:
    """Write the page about a learner."""
    from varifold.report.model_page import model_page

    with open(path, "w", encoding="utf-8") as file:
        file.write(model_page(learner, name, record))
    print(f"page written to {path}", file=sys.stderr)

"""``varifold follow``: JSON lines in, answers out, learning as labels come."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from varifold.base.nearest import nearest
from varifold.base.spec import parse_model
from varifold.cli.numbers import positive


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "follow",
        help="answer a stream of JSON lines and learn from it",
        description="Read JSON lines from standard input, one object of features each, and write one answer per line. "
        "A line with the target is answered, then learned. With --id, a line without it waits for a later line that "
        "has its id and the target.",
        epilog="example: tail -f sensors.jsonl | varifold follow --target state --state follow.state",
        allow_abbrev=False,
    )
    parser.add_argument("--target", required=True, metavar="FIELD", help="field of the label")
    parser.add_argument(
        "--id", metavar="FIELD", help="field that identifies an instance, so that its label may come later"
    )
    parser.add_argument("--key", metavar="FIELD", help="one learner per value of this field")
    parser.add_argument(
        "--model",
        metavar="NAME[:KEY=VALUE,...]",
        help="learner to start with (default auto); a state that exists keeps its own",
    )
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="folder to go on from; what is answered is on disk there"
    )
    parser.add_argument("--name", default="follow", help="name of the model in that folder (default follow)")
    parser.add_argument(
        "--max-waiting", type=positive, default=100_000, metavar="N", help="instances that wait for a label"
    )


def run(args: argparse.Namespace) -> int:
    """Follow until the input ends or a signal comes."""
    from varifold.perkey import PerKey
    from varifold.serve.core.state import Limits
    from varifold.serve.follow import Follower, check_fields, groups_of_lines, other_method

    check_fields(args.target, args.id, args.key)
    learner = parse_model(args.model or "auto")()
    if args.key is not None:
        learner = PerKey(learner, key=args.key)
    limits = Limits(waiting=args.max_waiting)
    follower = Follower.open(args.state, args.name, learner, args.target, args.id, limits)
    if args.model is not None and (held := other_method(follower.state.learner, learner)) is not None:
        print(f"varifold: --model {args.model} is not used: the state in {args.state} holds {held}", file=sys.stderr)
    stop = _Stop()
    before = {number: signal.signal(number, stop.asked) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for lines in groups_of_lines(sys.stdin.fileno()):
            with stop.later():
                answers = follower.answer(lines)
            sys.stdout.buffer.write(b"\n".join(answers) + b"\n")
            sys.stdout.buffer.flush()
            stop.check()
    except KeyboardInterrupt:
        print("varifold: stopped", file=sys.stderr)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        follower.close()
        _say(follower)
    return 0


class _Stop:
    """A signal to stop: at once while waiting for input or output, after the group while one is learned."""

    def __init__(self) -> None:
        self._came = False
        self._learning = False

    def asked(self, number: int, frame: object) -> None:
        """The handler of the signal."""
        self._came = True
        if not self._learning:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def later(self) -> Iterator[None]:
        """Within it a signal only leaves a note."""
        self._learning = True
        try:
            yield
        finally:
            self._learning = False

    def check(self) -> None:
        """Stop if a signal came while a group was learned."""
        if self._came:
            raise KeyboardInterrupt


def _say(follower: Any) -> None:
    """What was done; and that no line had the target, which may be misspelled."""
    state = follower.state
    error = state.monitor.error
    scored = f", error {error.usual:.3g} over {error.scored:,} answers" if error.scored else ""
    refused = f", {follower.refused:,} refused" if follower.refused else ""
    print(
        f"varifold: {follower.lines:,} lines, {state.learner.steps:,} learned in all, {len(state.waiting):,} wait for "
        f"a label{scored}{refused}",
        file=sys.stderr,
    )
    if follower.lines > follower.refused and not follower.labelled:
        close = nearest(follower.target, follower.fields)
        print(f"varifold: no line had the target {follower.target!r}: nothing was learned{close}", file=sys.stderr)

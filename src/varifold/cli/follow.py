"""``varifold follow``: read JSON lines, write predictions, learn when labels arrive."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from varifold.base.coverages import coverage_key
from varifold.base.learner import is_detector, is_regressor
from varifold.base.nearest import nearest
from varifold.base.plural import plural
from varifold.base.spec import ModelSpec, parse_model, parse_spec, regressor_for
from varifold.cli import source, uncertainty
from varifold.cli.asking import POLICIES, START, asking
from varifold.cli.detect import make_detector
from varifold.cli.numbers import positive, share
from varifold.cli.tasks import report_number, warn_if_numbers
from varifold.errors import ParameterError


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "follow",
        help="predict a stream of JSON lines and learn from it",
        description="Read JSON lines from standard input, one object of features each; write one prediction per line. "
        "A line with the target is predicted, then learned. With --id, a line without it waits for a later line that "
        "has its id and the target. With --detect, every line is scored by how unusual it is, then learned.",
        epilog="examples: tail -f sensors.jsonl | varifold follow --target state --state follow.state; "
        "tail -f sensors.jsonl | varifold follow --detect --rate 0.005",
    )
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--target", metavar="FIELD", help="field of the label")
    task.add_argument(
        "--detect", action="store_true", help="find unusual lines without labels; --model names a detector"
    )
    parser.add_argument("--rate", type=share, help="with --detect: share of usual lines that may be alarms")
    parser.add_argument(
        "--id", metavar="FIELD", help="field that identifies an instance, so that its label may arrive later"
    )
    parser.add_argument("--key", metavar="FIELD", help="one learner per value of this field")
    parser.add_argument(
        "--max-keys",
        type=int,
        metavar="N",
        help="with --key: most learners; the one that learned nothing for longest is forgotten",
    )
    source.add_target_type(parser)
    parser.add_argument("--time", metavar="FIELD", help="field of the time; not a feature")
    parser.add_argument(
        "--no-flatten", action="store_true", help="reject objects within an object, instead of taking a.b for b of a"
    )
    parser.add_argument(
        "--ignore",
        type=source.listed,
        action=source.Joined,
        metavar="FIELD,...",
        default=(),
        help="fields to leave out",
    )
    source.add_dates(parser)
    parser.add_argument(
        "--types",
        type=source.types,
        action=source.Joined,
        metavar="FIELD=KIND,...",
        default={},
        help="what the strings of fields are: text (counts of words), numeric, category (also where they look like "
        "dates)",
    )
    parser.add_argument(
        "--model",
        metavar="NAME[:KEY=VALUE,...]",
        help="learner to start with (default auto, or autodetector); an existing state keeps its own",
    )
    parser.add_argument(
        "--ask",
        type=asking,
        metavar="BUDGET[:POLICY]",
        help=f"with --id: mark the waiting lines that are worth a label: {START} lines, and of more lines about this "
        f"share (a line of output has ask true or false), by {', '.join(POLICIES)} (default {POLICIES[0]})",
    )
    uncertainty.add_options(parser)
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="folder of the state to continue from; every line that was predicted is saved there",
    )
    parser.add_argument("--name", default="follow", help="name of the model in that folder (default follow)")
    parser.add_argument(
        "--max-waiting", type=positive, default=100_000, metavar="N", help="instances that wait for a label"
    )


def run(args: argparse.Namespace) -> int:
    """Follow until the input ends or a signal arrives."""
    from varifold.serve.core.quoted_numbers import QuotedNumbers
    from varifold.serve.core.state import Limits
    from varifold.serve.follow import Follower, groups_of_lines, other_method

    rules = _rules(args)
    learner, regressor = _learners(args)
    limits = Limits(waiting=args.max_waiting)
    follower = Follower.open(args.state, args.name, learner, rules, limits, regressor)
    rules.numbers = QuotedNumbers(_report_numbers)
    try:
        _check_type(args, follower.state.learner)
        _check_coverages(args, follower.state.learner)
    except BaseException:
        follower.close()
        raise
    if args.model is not None and (held := other_method(follower.state.learner, learner)) is not None:
        print(f"varifold: --model {args.model} is not used: the state in {args.state} holds {held}", file=sys.stderr)
    stop, reported = _Stop(), False
    before = {number: signal.signal(number, stop.handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for lines in groups_of_lines(sys.stdin.fileno()):
            with stop.later():
                output = follower.process(lines)
            sys.stdout.buffer.write(b"".join(line + b"\n" for line in output))
            sys.stdout.buffer.flush()
            reported = _print_rejected(follower, reported)
            stop.check()
    except KeyboardInterrupt:
        print("varifold: stopped", file=sys.stderr)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        follower.close()
        _print_summary(follower)
    return 1 if follower.lines and follower.rejected == follower.lines else 0


def _rules(args: argparse.Namespace) -> Any:
    """Return how lines are read."""
    from varifold.serve.core.input import InputRules

    named = [name for name in (args.target, args.id, args.key, args.time) if name is not None]
    if len(set(named)) != len(named):
        raise ParameterError("--target, --id, --key and --time must be different fields")
    if args.max_keys is not None and args.key is None:
        raise ParameterError("--max-keys needs --key")
    if args.ask is not None and args.id is None:
        raise ParameterError("--ask needs --id: a label that is requested arrives later, with the id of its line")
    return InputRules(
        target=args.target,
        id=args.id,
        key=args.key,
        time=args.time,
        ignore=args.ignore,
        flatten=not args.no_flatten,
        dates=args.dates,
        date_order=args.date_order,
        types=args.types,
        ask=None if args.ask is None else args.ask.params,
    )


def _learners(args: argparse.Namespace) -> tuple[Any, Callable[[], Any] | None]:
    """Return the learner to start with, and a function that makes the regressor for numeric labels."""
    if args.detect:
        return _keyed(args, _detector(args)), None
    if args.rate is not None:
        raise ParameterError("--rate is the rate of alarms of --detect")
    spec = parse_spec(args.model or "auto", args.target_type, imports=True)

    def regressor() -> ModelSpec:
        return regressor_for(spec) if args.model else parse_model("autoregressor")

    def changed() -> Any:
        found = regressor()
        report_number(found, "--target-type class takes every number as a class")
        return _made(args, found)

    if is_regressor(spec.cls) or args.target_type == "class":
        return _made(args, spec), None
    if args.target_type == "number":
        return _made(args, regressor()), None
    return _made(args, spec), changed


def _detector(args: argparse.Namespace) -> Any:
    if args.target_type is not None or args.coverage is not None:
        raise ParameterError("--detect has no target: leave out --target-type and --coverage")
    return make_detector(args.model, args.rate)


def _made(args: argparse.Namespace, spec: ModelSpec) -> Any:
    return _keyed(args, uncertainty.with_coverages(spec, args)())


def _keyed(args: argparse.Namespace, learner: Any) -> Any:
    from varifold.ensemble.per_key import by_key

    return learner if args.key is None else by_key(learner, args.key, args.max_keys)


def _check_type(args: argparse.Namespace, learner: Any) -> None:
    """Raise an error for a type of the target that the learner, which may come from a state, does not have."""
    if args.detect != is_detector(learner):
        holds = "a detector" if is_detector(learner) else "no detector"
        raise ParameterError(
            f"the state in {args.state} holds {holds}; use {'--detect' if not args.detect else '--target'}"
        )
    numeric = is_regressor(learner)
    if args.target_type == ("class" if numeric else "number"):
        kind = "regressor, which predicts numbers" if numeric else "classifier, which predicts classes"
        raise ParameterError(f"--target-type {args.target_type}: the learner is a {kind}")


def _check_coverages(args: argparse.Namespace, learner: Any) -> None:
    """Raise an error for coverages that the learner of a state does not have: its errors were measured for others."""
    held = tuple(learner.coverages)
    if args.coverage is None or uncertainty.requested(args) == held:
        return
    has = f"of the coverages {', '.join(map(coverage_key, held))}" if held else "without intervals and sets"
    raise ParameterError(
        f"--coverage: the state in {args.state} holds a learner {has}; leave --coverage out, or give another --state"
    )


class _Stop:
    """Handles a signal to stop: at once while waiting for input or output, else after the current group of lines."""

    def __init__(self) -> None:
        self._came = False
        self._learning = False

    def handle(self, number: int, frame: object) -> None:
        """Handle the signal."""
        self._came = True
        if not self._learning:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def later(self) -> Iterator[None]:
        """Defer signals within the with block."""
        self._learning = True
        try:
            yield
        finally:
            self._learning = False

    def check(self) -> None:
        """Stop if a signal arrived while a group was learned."""
        if self._came:
            raise KeyboardInterrupt


def _report_numbers(field: str, text: str, notation: Any) -> None:
    """Report that the numbers of a field are strings, with the option that reads them as numbers."""
    write = "" if notation.separators == (".", "") else "write them with a decimal point alone; "
    print(
        f"varifold: the field {field!r} holds numbers as strings, such as {text!r}, and each is a category: {write}"
        f"--types {field}=numeric reads the numbers, {field}=category suppresses this message",
        file=sys.stderr,
        flush=True,
    )


def _print_rejected(follower: Any, reported: bool) -> bool:
    """Report the first rejected line as soon as there is one; the last line of the report has their number."""
    first = follower.first_rejected
    if first is not None and not reported:
        print(f"varifold: line {first['line']:,} is rejected: {first['error']}", file=sys.stderr, flush=True)
    return first is not None


def _print_summary(follower: Any) -> None:
    """Report what was done, and if no line had the target, which may be misspelled."""
    state = follower.state
    error = state.monitor.error
    # where labels are requested, the error among them is biased: the estimate below replaces it
    counts = error.scored and state.asking is None
    scored = f", error {error.mean:.3g} over {plural(error.scored, 'prediction')}" if counts else ""
    rejected = f", {follower.rejected:,} rejected" if follower.rejected else ""
    waiting = f", {len(state.waiting):,} waiting for a label"
    if state.detects:
        scored, waiting = f", {plural(round(error.mean * error.scored), 'alarm')}", ""
    print(
        f"varifold: {plural(follower.lines, 'line')}, {state.learner.steps:,} learned in all"
        f"{waiting}{scored}{rejected}",
        file=sys.stderr,
    )
    if state.asking is not None:
        policy = state.asking
        print(
            f"varifold: {policy.asked:,} of {plural(policy.seen, 'label')} requested; {policy.estimate()}. The "
            "estimate uses the lines drawn at random",
            file=sys.stderr,
        )
    if state.detects:
        return
    warn_if_numbers(getattr(state.learner, "classes", []), state.learned)
    if follower.lines > follower.rejected and not follower.labelled:
        target = follower.rules.target
        close = nearest(target, follower.fields)
        print(f"varifold: no line had the target {target!r}: nothing was learned{close}", file=sys.stderr)

"""``varifold run``: one learner on a file or a data set, predicted before learned."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from varifold import base
from varifold.base import VaryingLearner
from varifold.base.learner import is_detector
from varifold.base.plural import plural
from varifold.base.python_rule import PythonRule
from varifold.base.spec import ModelSpec, parse_spec
from varifold.cli import costs, details, keyed, matching, remembered, report, source, uncertainty
from varifold.cli.asking import POLICIES, START, asking
from varifold.cli.numbers import natural, positive, share
from varifold.cli.progress import progress
from varifold.cli.stoppable import Stoppable, stoppable
from varifold.cli.summary import columns_of, facts_of, show, title
from varifold.cli.targets import check_picture, check_target
from varifold.cli.tasks import for_target, warn_if_numbers
from varifold.ensemble import per_key
from varifold.errors import DataError, ParameterError
from varifold.evaluate import Summary, prequential, repeat
from varifold.streams import vary
from varifold.streams.stream import BLOCK_ROWS

_FEWEST_ROWS = 1024


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "run",
        help="run a learner over a file or a data set",
        description="Predict, score and learn every instance of a stream, and show the metrics.",
    )
    source.add_options(parser)
    how = parser.add_argument_group("how")
    how.add_argument("--load", metavar="MODEL", help="continue with a saved model instead of a new learner (FILE only)")
    matching.add_rename(how, "with --load: ")
    how.add_argument("--key", metavar="COL", help="one learner per value of this column")
    how.add_argument(
        "--max-keys",
        type=int,
        metavar="N",
        help="with --key: most learners; the one that learned nothing for longest is forgotten",
    )
    how.add_argument(
        "--model",
        metavar="NAME[:KEY=VALUE,...]",
        help="a name from `varifold models`, or package.module:Class (default auto)",
    )
    how.add_argument(
        "--scenario", default="none", metavar="SPEC", help="how features appear and vanish, such as vfs:0.5"
    )
    how.add_argument(
        "--as-paper",
        metavar="TABLE",
        help="one as-paper number of a table (see `varifold bench list`); --data, --model and --scenario name its data "
        "set, method and setting",
    )
    how.add_argument("--repeats", type=positive, default=1, metavar="N", help="runs with the seeds S, S+1, ...")
    how.add_argument("--seed", type=natural, default=0, metavar="S", help="seed of permutation and scenario")
    how.add_argument(
        "--scale",
        choices=["standard", "robust", "minmax", "none", "paper"],
        help="online scaling (default: robust); paper: z-scores of the whole set and no intercept (looks ahead)",
    )
    how.add_argument(
        "--shuffle",
        action=argparse.BooleanOptionalAction,
        help="permute the rows (default: those of a --data set that has no natural order)",
    )
    how.add_argument("--delay", metavar="K|COL", help="labels arrive K instances later, or by the number in a column")
    how.add_argument("--positive", metavar="LABEL", help="label whose f1 is shown (default: the rarer of two)")
    how.add_argument(
        "--ask",
        type=asking,
        metavar="BUDGET[:POLICY]",
        help=f"learn only requested labels: {START} rows, and of more rows about this share, by "
        f"{', '.join(POLICIES)} (default {POLICIES[0]})",
    )
    costs.add_options(how)
    uncertainty.add_options(how)
    how.add_argument(
        "--quantile", type=share, metavar="Q", help="regression: quantile whose pinball loss is shown (default 0.5)"
    )
    how.add_argument("--jobs", type=positive, default=1, metavar="N", help="repeats to run at a time")
    out = parser.add_argument_group("output")
    out.add_argument("--format", choices=["table", "json", "csv"], default="table", help="csv has a line per repeat")
    out.add_argument(
        "--plot", metavar="FILE", help="picture of the error, the loss and the features over time (png, svg or pdf)"
    )
    details.add_options(out)
    out.add_argument(
        "--html", metavar="PAGE.html", help="page about the run for readers who do not run it; measures importances"
    )
    out.add_argument("--save", metavar="FILE", help="write the learner (of the first repeat) to a model file")
    out.add_argument("--checkpoint-every", type=positive, metavar="N", help="write --save every N instances as well")


def run(args: argparse.Namespace) -> int:
    """Evaluate, print the metrics, save the learner and draw the picture."""
    if args.as_paper is not None:
        from varifold.cli import as_paper  # imports the bench, which a run does not need

        return as_paper.run(args)
    loaded = _loaded(args)
    named = args.model is not None
    args.model = args.model or (loaded._header()["method"] if loaded is not None else "auto")
    if loaded is None:
        spec = parse_spec(args.model, args.target_type, imports=True)
    else:
        spec = ModelSpec(args.model, args.model)
    _check(args, spec if loaded is None else type(loaded))
    # checkpoints are written between batches; the first batch must be large enough to show what the target is
    block_rows = min(BLOCK_ROWS, max(_FEWEST_ROWS, args.checkpoint_every or BLOCK_ROWS))
    given = source.open_input(args, args.key or keyed.field_of(loaded), block_rows)
    spec = for_target(args, given, spec, named, loaded)
    if loaded is None:
        args.model = spec.text
        spec = uncertainty.with_coverages(costs.with_rule(_scaled(spec, args.scale), args), args)
    details.check_task(args, spec.cls if loaded is None else type(loaded))
    with details.predictions_to(args.predictions) as predictions:
        summary, stream = _evaluate(args, spec, given, loaded, predictions)
    _check_result(args, given, summary, stream)
    stopped = None if stream is None else stream.reason
    facts = facts_of(args, spec, given, summary, _delay(args.delay), stopped)
    try:
        if args.save:
            _save(args, summary.learner, given, summary)
            print(f"learner written to {args.save}", file=sys.stderr)
    finally:
        show(args, facts, summary)  # last: whoever reads the output may stop reading it
    if args.plot:
        from varifold.report.curves import plot_summary

        plot_summary(summary, args.plot, title=title(facts))
        print(f"picture written to {args.plot}", file=sys.stderr)
    if args.html:
        _write_page(args, summary, given)
    details.draw(args, summary, title(facts))
    return 0 if stream is None else _ended(args, stream, summary.results[0].instances)


def _ended(args: argparse.Namespace, stream: Stoppable, instances: int) -> int:
    """Report where a pass ended early and return the exit code; raise the error of data that cannot be read further."""
    if stream.reason is not None:
        files = filter(None, (args.save, args.predictions, args.plot, args.html, args.importances))
        partial = " and ".join(["the metrics", *map(str, files)])
        print(f"stopped after {plural(instances, 'instance')}; {partial} are of these alone", file=sys.stderr)
    if stream.error is not None:
        raise stream.error
    return 128 + stream.signal if stream.signal else 0


def _loaded(args: argparse.Namespace) -> Any:
    """Load the model to continue with and apply its reading options; return None without --load."""
    if args.load is None:
        if args.rename:
            raise ParameterError("--rename needs a saved model: name it with --load MODEL")
        return None
    for option, given in (
        ("model", args.model),
        ("key", args.key),
        ("data", args.data),
        ("scale", args.scale),
        ("shuffle", args.shuffle),
        ("objective", args.objective),
        ("costs", args.costs),
        ("coverage", args.coverage),
        ("repeats", args.repeats > 1),
    ):
        if given:
            raise ParameterError(f"--load continues a model on files, in their order: leave out --{option}")
    learner = base.load(args.load)
    if is_detector(learner):
        raise ParameterError(f"{args.load} holds a detector: use `varifold detect --load {args.load}`")
    matching.rename(learner, args.rename)
    learned = learner.reading.get("target")
    if args.target is not None and learned is not None and args.target != learned:
        print(
            f"varifold: {args.load} learned to predict {learned!r} and continues with {args.target!r}; if "
            "that is another target, leave --load out",
            file=sys.stderr,
        )
    if args.files:
        remembered.apply_saved_options(args, learner.reading, remembered.columns_of(args.files))
    return learner


def _save(args: argparse.Namespace, learner: Any, given: source.Input, summary: Summary | None = None) -> None:
    """Save the learner with the options with which its data was read, and at the end the record of the run."""
    if given.stream is not None:
        learner.reading = remembered.noted(args, given.stream)
    if summary is not None:
        learner.reading = {**learner.reading, "run": _record(args, summary, given)}
    learner.save(args.save)


def _record(args: argparse.Namespace, summary: Summary, given: source.Input) -> dict[str, Any]:
    """Return the record of the run for a page about its model."""
    from varifold.report.record import run_record

    period = None if given.stream is None or _shuffles(args, given) else given.stream.period
    record = run_record(summary, given.title, costs.facts(args.costs, summary), period)
    return record | {"columns": columns_of(given, summary)}


def _write_page(args: argparse.Namespace, summary: Summary, given: source.Input) -> None:
    """Write the page about the run."""
    learner = summary.learner
    learner.reading = {**learner.reading, **({"target": args.target} if args.target else {})}
    report.write_page(args.html, learner, given.title, _record(args, summary, given))


def _check(args: argparse.Namespace, spec: ModelSpec | type[Any]) -> None:
    """Raise an error for options that cannot work, before anything is read."""
    source.check(args)
    details.check(args)
    if args.checkpoint_every and not args.save:
        raise ParameterError("--checkpoint-every needs --save FILE")
    if args.max_keys is not None and not args.key:
        raise ParameterError("--max-keys needs --key")
    if args.key and args.data:
        raise ParameterError("--key is for files; a data set has no such column")
    cls = spec.cls if isinstance(spec, ModelSpec) else spec
    if args.save and not hasattr(cls, "save"):
        raise ParameterError(f"--save: {cls.__name__} has no save()")
    if args.save and issubclass(cls, PythonRule):
        spec().to_bytes()  # raises an error for a class that cannot be saved
    check_target(args.save, args.files)
    check_picture(args.plot)
    check_target(args.html, args.files)
    if args.html and args.key:
        raise ParameterError("--html is about one learner, and --key makes several: `report --key-value` writes one")
    if args.html and not issubclass(cls, VaryingLearner):
        raise ParameterError(f"--html: {cls.__name__} is not a learner of varifold")


def _shuffles(args: argparse.Namespace, given: source.Input) -> bool:
    """Return whether rows are permuted: by default those of a data set that is not a natural stream."""
    if args.shuffle is not None:
        return bool(args.shuffle)
    return given.stream is None and not getattr(given.whole, "ordered", False)


def _check_result(args: argparse.Namespace, given: source.Input, summary: Summary, stream: Stoppable | None) -> None:
    """Raise an error if nothing was scored; report skipped rows and repeats that do not vary on standard error."""
    first = summary.results[0]
    if first.scored == 0 and stream is not None and stream.error is not None:
        raise stream.error
    if first.instances == 0:
        raise source.no_instances(given.name, given.problems)
    if first.scored == 0:
        raise DataError(
            f"none of the {first.instances:,} instances of {given.name} that count has a label or target; `varifold "
            "predict` predicts rows without"
        )
    if stream is None or stream.reason is None:
        costs.check_labels(args.costs, getattr(first, "labels", []))
    if len(summary.results) > 1 and args.scenario == "none" and not _shuffles(args, given):
        print(
            "every repeat saw the same rows in the same order; --shuffle or a --scenario varies them", file=sys.stderr
        )
    warn_if_numbers(getattr(first, "labels", []), first.scored)
    for problem in given.problems[:3]:
        print(f"skipped: {problem}", file=sys.stderr)
    if given.skipped > 3:
        print(f"skipped: {given.skipped - 3:,} more", file=sys.stderr)


def _scaled(spec: ModelSpec, scale: str | None) -> ModelSpec:
    if scale is None:
        return spec
    for needed in ("scale", "fit_intercept") if scale == "paper" else ("scale",):
        if not spec.accepts(needed):
            raise ParameterError(f"--scale {scale}: {spec.cls.__name__} has no parameter {needed!r}")
    if scale != "paper":
        return spec.having(scale=scale)
    return spec.having(scale="none", fit_intercept=False)


def _delay(text: str | None) -> float | str | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _measured(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `prequential` and `repeat` for what is measured."""
    return {
        "delay": _delay(args.delay),
        "positive": args.positive,
        "quantile": 0.5 if args.quantile is None else args.quantile,
        "by": args.by,
        "ask": args.ask,
        "track": None if args.importances is None and not args.html else "permutation",
    }


def _evaluate(
    args: argparse.Namespace, spec: ModelSpec, given: source.Input, loaded: Any, predictions: Any
) -> tuple[Summary, Stoppable | None]:
    """Run one pass over a stream, or repeats over data in memory if rows are permuted or scaled as a whole.

    Also return the stream of the one pass, which records whether it ended early.
    """
    shuffle = _shuffles(args, given)
    if given.stream is not None and args.repeats == 1 and not shuffle and args.scale != "paper":
        return _one_pass(args, spec, given, loaded, predictions)
    if isinstance(args.by, str):
        raise ParameterError(f"--by {args.by} is for one pass over FILE in its order; --by N counts instances")
    for option in ("key", "checkpoint_every"):
        if getattr(args, option):
            raise ParameterError(f"--{option.replace('_', '-')} is for one pass over FILE in its order")
    data = given.load()
    with progress(f"{spec.name} on {given.title}", args.repeats, "repeats") as report:
        summary = repeat(
            spec,
            data,
            scenario=args.scenario,
            repeats=args.repeats,
            seed=args.seed,
            shuffle=shuffle,
            scale="paper" if args.scale == "paper" else None,
            predictions=predictions,
            jobs=args.jobs,
            progress=report,
            **_measured(args),
        )
    return summary, None


def _one_pass(
    args: argparse.Namespace, spec: ModelSpec, given: source.Input, loaded: Any, predictions: Any
) -> tuple[Summary, Stoppable]:
    """Learn the stream while it is read; a signal ends it early, checkpoints save the learner in between."""
    learner = spec() if loaded is None else loaded
    if args.key:
        learner = per_key.by_key(learner, args.key, args.max_keys)
    saved = 0
    with (
        progress(f"{spec.name} on {given.title}", None, "instances") as report,
        stoppable(vary(given.stream, args.scenario, seed=args.seed)) as stream,
    ):

        def done(instances: int) -> None:
            """Report the progress; save the learner if a checkpoint is due."""
            nonlocal saved
            report(instances)
            if args.checkpoint_every and instances - saved >= args.checkpoint_every:
                saved = instances
                _save(args, learner, given)

        result = prequential(
            learner,
            stream,
            predictions=predictions,
            progress=done,
            **_measured(args),
        )
    return Summary([result], [args.seed], learner), stream

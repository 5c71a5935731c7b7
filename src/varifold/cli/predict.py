"""``varifold predict``: predict every row of files, labelled or not, with a saved model."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

from varifold.base import load
from varifold.base.files import is_model_file
from varifold.base.learner import is_detector, is_regressor
from varifold.base.plural import plural
from varifold.cli import keyed, matching, remembered, source, uncertainty
from varifold.cli.matching import Match
from varifold.cli.numbers import natural
from varifold.cli.targets import check_target
from varifold.cli.writers import FORMATS, input_name, open_writer
from varifold.ensemble.per_key import KeyedLearner
from varifold.errors import DataError, ParameterError
from varifold.streams import Batch


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "predict",
        help="predict every row of files with a saved model",
        description="Predict every row of files with a saved model, which does not learn from them. The model file "
        "remembers how the files it learned from were read; options given here come first, and for standard input they "
        "are needed again. The target is not read unless --target names it. A model with coverages also gives low and "
        "high, or the set of labels.",
    )
    parser.add_argument("model", metavar="MODEL", help="a file that `varifold run --save` or learner.save() wrote")
    parser.add_argument("files", nargs="+", metavar="FILE", help="files to predict, in this order; - is stdin")
    parser.add_argument("--target", metavar="COL", help="column of the true label or number, which is copied")
    matching.add_rename(parser)
    source.add_reading_options(parser)
    out = parser.add_argument_group("output")
    out.add_argument("--out", metavar="FILE", help="file to write, .csv, .jsonl or .parquet (default: CSV on stdout)")
    out.add_argument("--format", choices=FORMATS, help="format, if the suffix of --out does not show it")
    out.add_argument(
        "--probabilities",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="one column per label of a classifier (default yes)",
    )
    out.add_argument(
        "--explain", type=natural, default=0, metavar="N", help="show the N features that add most, and how much"
    )


def run(args: argparse.Namespace) -> int:
    """Predict and write."""
    check_target(args.out, [args.model, *args.files])
    models = [file for file in (args.model, *args.files) if os.path.isfile(file) and is_model_file(file)]
    if models and args.model not in models:  # the order of the arguments is easily confused
        raise ParameterError(f"{args.model} is no model file, {models[0]} is: the model comes first, then the data")
    learner = load(args.model)
    if is_detector(learner):
        raise ParameterError(f"{args.model} holds a detector: use `varifold detect --load {args.model}`")
    if not learner.steps:
        raise DataError(f"{args.model} has a learner that has not learned anything yet")
    matching.rename(learner, args.rename)
    remembered.apply_saved_options(args, learner.reading, remembered.columns_of(args.files), roles=("id", "time"))
    args.target_type = "number" if is_regressor(learner) else "class"
    args.probabilities = args.probabilities and not is_regressor(learner)
    from varifold.streams import read

    key = keyed.field_of(learner)
    stream = read(args.files, target=args.target, unlabelled="keep", key=key, **source.reading_options(args))
    rows = 0
    match = Match(learner, args, stream)
    with open_writer(args.out, args.format) as write:
        for batch in stream.batches():
            match.look(batch)
            write(list(_records(learner, batch, args, rows)))
            rows += len(batch.block)
    if rows == 0:
        raise source.no_instances(" ".join(args.files), stream.problems)
    match.warn(args.model)
    match.warn_keys(args.model)
    skipped = f", {plural(stream.skipped, 'row')} could not be read" if stream.skipped else ""
    print(f"{plural(rows, 'row')} predicted{skipped}", file=sys.stderr)
    return 0


def _records(learner: Any, batch: Batch, args: argparse.Namespace, before: int) -> Iterator[dict[str, Any]]:
    """Return one record per row: id or number, key, true label if known, prediction, probabilities, explanation."""
    block = batch.block
    keyed = isinstance(learner, KeyedLearner)
    dicts = list(block.rows()) if args.explain or keyed else []
    if keyed:
        labels = [learner.predict_one(x) for x in dicts]
        shares = [learner.predict_proba_one(x) for x in dicts] if args.probabilities else []
    else:
        labels = learner.predict_many(block)
        shares = learner.predict_proba_many(block) if args.probabilities else []
    name, known = ("prediction", []) if is_regressor(learner) else ("label", learner.classes)
    columns, targets = _columns(known), block.y
    uncertain = uncertainty.regions(learner, block, is_regressor(learner))
    own = {name, "explanation", *columns.values(), *(key for each in uncertain[:1] for key in each)}
    own |= {"row"} if batch.ids is None else set()
    for i, label in enumerate(labels):
        record: dict[str, Any]
        record = {"row": before + i + 1} if batch.ids is None else {input_name(args.id, own): batch.ids[i]}
        if keyed:
            record[input_name(learner.key, own)] = learner._split(dicts[i])[0]
        if args.target is not None:
            record[input_name(args.target, own)] = targets[i]
        record[name] = label
        if args.probabilities:
            record |= {column: shares[i].get(y, 0.0) for y, column in columns.items()}
        record |= uncertain[i]
        if args.explain:
            record["explanation"] = _explained(learner, dicts[i], args.explain)
        yield record


def _columns(labels: list[Any]) -> dict[Any, str]:
    """Name the column of each label's probability; a string that looks like another label is quoted."""
    others = {str(y) for y in labels if not isinstance(y, str)}
    return {y: f'p:"{y}"' if isinstance(y, str) and y in others else f"p:{y}" for y in labels}


def _explained(learner: Any, x: dict[Any, Any], most: int) -> str:
    if not hasattr(learner, "explain_one"):
        raise ParameterError(f"--explain: {type(learner).__name__} has no explain_one()")
    parts = list(learner.explain_one(x).items())[:most]
    return "; ".join(f"{name} {part:+.4g}" for name, part in parts)

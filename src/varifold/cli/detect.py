"""``varifold detect``: score every row of files, labelled or not, then learn it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from varifold.base import load
from varifold.base.learner import is_detector
from varifold.base.nested import make_learner
from varifold.base.plural import plural
from varifold.cli import keyed, matching, remembered, source
from varifold.cli.matching import Match
from varifold.cli.numbers import natural, share
from varifold.cli.output import number, print_json, table
from varifold.cli.targets import check_target
from varifold.cli.writers import FORMATS, input_name, open_writer
from varifold.ensemble.per_key import by_key
from varifold.errors import ParameterError
from varifold.streams import Batch

_MOST = 10
"""Rows that the table shows."""
_OWN = ("row", "score", "p_value", "anomaly", "because")


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "detect",
        help="find unusual rows of files, without labels",
        description="Score every row of files, in their order, by how unusual it is compared with the rows before it, "
        "then learn it. No label is needed; --target names one that is known and only rates the scores.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="files to read, in this order; - is stdin")
    parser.add_argument("--target", metavar="COL", help="column that marks known anomalies; it is not learned")
    parser.add_argument("--positive", metavar="LABEL", help="label of an anomaly (default: all but the most frequent)")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="a detector, NAME:key=value sets its parameters (default autodetector; copuladetector if sensors depend "
        "on each other)",
    )
    parser.add_argument("--load", metavar="FILE", help="continue with a saved detector")
    matching.add_rename(parser, "with --load: ")
    parser.add_argument("--key", metavar="COL", help="one detector per value of this column, such as a device")
    parser.add_argument("--rate", type=share, help="share of usual rows that may be alarms (default 0.01)")
    source.add_reading_options(parser)
    out = parser.add_argument_group("output")
    out.add_argument("--format", choices=["table", "json"], default="table", help="form of the summary")
    out.add_argument(
        "--explain", type=natural, default=3, metavar="N",
        help="features named for an alarm, with their value and their part of the score (default 3)",
    )  # fmt: skip
    out.add_argument("--out", metavar="FILE", help="write score, p-value and alarm of each row: .csv, .jsonl, .parquet")
    out.add_argument("--out-format", choices=FORMATS, help="format of --out, if its suffix does not show it")
    out.add_argument("--save", metavar="FILE", help="write the detector to a model file")


def run(args: argparse.Namespace) -> int:
    """Score and learn every row; print a summary."""
    check_target(args.out, args.files)
    check_target(args.save, args.files)
    detector = _detector(args)
    args.rate = detector.rate if args.rate is None else args.rate
    args.target_type = args.target_type or "class"
    from varifold.streams import read

    stream = read(args.files, target=args.target, unlabelled="keep", key=args.key, **source.reading_options(args))
    seen = _Seen()
    match = None if args.load is None else Match(detector, args, stream)
    if args.out is None:
        for batch in stream.batches():
            _add(seen, detector, batch, args, match)
    else:
        with open_writer(args.out, args.out_format) as write:
            for batch in stream.batches():
                write(_add(seen, detector, batch, args, match))
    if seen.rows == 0:
        raise source.no_instances(" ".join(args.files), stream.problems)
    if match is not None:
        match.warn(args.load)
    if args.save:
        detector.reading = {**remembered.noted(args, stream), "run": _record(args, seen, stream.width)}
        detector.save(args.save)
        print(f"detector written to {args.save}", file=sys.stderr)
    _show(args, detector, seen)
    return 0


def _add(
    seen: _Seen, detector: Any, batch: Batch, args: argparse.Namespace, match: Match | None
) -> list[dict[str, Any]]:
    """Score and learn the rows of a batch; return their records."""
    if match is not None:
        match.look(batch)
    records = list(_records(detector, batch, args, seen.rows))
    seen.add(records, batch)
    return records


def make_detector(model: str | None, rate: float | None) -> Any:
    """Make the detector that --model and --rate describe."""
    detector = make_learner(model or "autodetector")
    if not is_detector(detector):
        raise ParameterError(f"--model {model}: not a detector; `varifold models` lists them")
    return detector if rate is None else detector.clone({"rate": rate})


def _detector(args: argparse.Namespace) -> Any:
    if args.load is None:
        if args.rename:
            raise ParameterError("--rename needs a saved detector: name it with --load FILE")
        detector = make_detector(args.model, args.rate)
        return detector if args.key is None else by_key(detector, args.key)
    for option in ("model", "key"):
        if getattr(args, option) is not None:
            raise ParameterError(f"--load continues a saved detector: leave out --{option}")
    detector = load(args.load)
    if not is_detector(detector):
        raise ParameterError(f"{args.load} holds a {type(detector).__name__}, which is no detector")
    matching.rename(detector, args.rename)
    args.key = keyed.field_of(detector)
    remembered.apply_saved_options(args, detector.reading, remembered.columns_of(args.files))
    return detector


@dataclass
class _Seen:
    """Counts of the rows so far, for the summary."""

    rows: int = 0
    alarms: int = 0
    top: list[dict[str, Any]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    raised: list[bool] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)

    def add(self, records: list[dict[str, Any]], batch: Batch) -> None:
        """Count the rows of a batch and keep the most unusual ones."""
        self.rows += len(records)
        self.alarms += sum(record["anomaly"] for record in records)
        self.top = sorted([*self.top, *records], key=lambda record: (not record["anomaly"], -record["score"]))[:_MOST]
        for record, label in zip(records, batch.block.y, strict=True):
            if label is not None:
                self.scores.append(record["score"])
                self.raised.append(record["anomaly"])
                self.labels.append(label)


def _record(args: argparse.Namespace, seen: _Seen, columns: int) -> dict[str, Any]:
    """Return the record of the alarms, for `inspect` and a page about the detector."""
    facts = {"alarms": seen.alarms, "instances": seen.rows, "rate": args.rate, "columns": columns}
    return {"data": source.title_of(args.files), "task": "detection", **facts}


def _records(detector: Any, batch: Batch, args: argparse.Namespace, before: int) -> Iterator[dict[str, Any]]:
    """Score and learn the rows of a batch; one record each."""
    labels = batch.block.y
    for i, x in enumerate(batch.block.rows()):
        record: dict[str, Any]
        record = {"row": before + i + 1} if batch.ids is None else {input_name(args.id, _OWN): batch.ids[i]}
        if batch.times is not None:
            record[input_name(args.time, _OWN)] = batch.times[i]
        if args.key is not None:
            record[input_name(args.key, _OWN)] = x[args.key]
        if args.target is not None:
            record[input_name(args.target, _OWN)] = labels[i]
        score, p = detector.score_and_p_value_one(x)
        record |= {"score": score, "p_value": p, "anomaly": p <= args.rate}
        if args.explain:
            parts = list(detector.explain_one(x).items())[: args.explain] if record["anomaly"] else []
            record["because"] = "; ".join(f"{_with_value(name, x)} {part:+.3g}" for name, part in parts)
        detector.learn_one(x)
        yield record


def _with_value(name: Any, x: dict[Any, Any]) -> str:
    """Return `name=value` of a number; strings, absent and rare columns have their value or state in the name."""
    return f"{name}={x[name]:.6g}" if isinstance(x.get(name), float) else str(name)


def _rated(args: argparse.Namespace, seen: _Seen) -> dict[str, Any]:
    """Return the metrics and the labels that count as anomalies, if labels are known."""
    if not seen.labels:
        return {}
    from varifold.evaluate.detection import detection_scores

    counts = Counter(seen.labels)
    usual = counts.most_common(1)[0][0]
    if args.positive is not None and args.positive not in map(str, counts):
        raise ParameterError(f"--positive {args.positive}: the labels are {', '.join(sorted(map(str, counts)))}")
    unusual = {y for y in counts if (str(y) == args.positive if args.positive is not None else y != usual)}
    truth = [y in unusual for y in seen.labels]
    return {"anomalous": sorted(unusual, key=str), **asdict(detection_scores(seen.scores, truth, seen.raised))}


def _show(args: argparse.Namespace, detector: Any, seen: _Seen) -> None:
    rated = _rated(args, seen)
    if args.format == "json":
        facts = {"model": detector._header()["method"], "rows": seen.rows, "rate": args.rate, "alarms": seen.alarms}
        print_json({**facts, **({"rated": rated} if rated else {}), "most unusual": seen.top})
        return
    print(f"{plural(seen.rows, 'row')}, {plural(seen.alarms, 'alarm')} at a rate of {args.rate:g}")
    if rated:
        names = ("auroc", "average_precision", "precision", "recall")
        labels = ", ".join(map(repr, rated["anomalous"][:_MOST])) + (", ..." if len(rated["anomalous"]) > _MOST else "")
        print(
            f"{rated['anomalies']:,} of {plural(rated['instances'], 'labelled row')} are known anomalies, "
            f"{args.target} {labels or '(none)'}{'' if args.positive else ' (all but the most frequent)'}: "
            + ", ".join(f"{name.replace('_', ' ')} {number(rated[name], 3)}" for name in names)
        )
    if len(seen.top) < seen.rows:
        print(f"\nThe {len(seen.top)} most unusual rows, alarms first (--out FILE writes all):")
    else:
        print("\nAll rows, the most unusual first:")
    shown = [[_cell(value) for value in record.values()] for record in seen.top]
    print(table(list(seen.top[0]), shown, left=1))


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)

"""``varifold explain``: why a saved model predicts what it does for one instance, or how unusual it is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from varifold.base import NO_FEATURES, VaryingClassifier, VaryingDetector, VaryingLearner, VaryingRegressor, load
from varifold.cli import keyed, remembered, source
from varifold.cli.numbers import natural
from varifold.cli.output import named, print_json, probability, shorten, table
from varifold.cli.targets import check_picture
from varifold.ensemble.vote import Vote
from varifold.ensemble.vote_detector import VoteDetector
from varifold.errors import DataError, ParameterError

MOST_LABELS = 6
"""Most labels shown side by side; with more, only the predicted one."""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "explain",
        help="show what each feature adds to a model's prediction",
        description="Show a saved model's prediction for one instance, and what each feature present adds to every "
        "label's score, to the prediction of a regressor, or to the score of a detector. (intercept) is what no single "
        "feature adds; of "
        "auto also what mixing its experts does.",
    )
    parser.add_argument("file", metavar="FILE", help="a file that `varifold run --save` or learner.save() wrote")
    parser.add_argument(
        "--row",
        nargs="+",
        metavar="ROW",
        help="the instance: '{\"name\": value, ...}', or name=value pairs, written as in the model's files, or the "
        "number of a row (from 1) of --data",
    )
    parser.add_argument("--data", metavar="NAME|PATH", help="data set or file of the row number")
    parser.add_argument("--target", metavar="COL", help="column of the label in that file")
    keyed.add_option(parser)
    parser.add_argument("--label", metavar="LABEL", help="explain the score of this label only")
    parser.add_argument(
        "--top", type=natural, default=20, metavar="N", help="features shown, largest first (default 20)"
    )
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument(
        "--plot",
        metavar="FILE.png",
        help="draw what each feature adds; for an orf3v model, a feature's values by label with the row's value marked",
    )
    parser.add_argument(
        "--feature", metavar="NAME", help="the feature to draw (orf3v; default: the one that adds most)"
    )
    parser.add_argument("--by-column", action="store_true", help="add up the values of a string column")
    source.add_reading_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the prediction and its parts."""
    if args.row is None:
        raise ParameterError("--row is needed: --row name=value ..., or the number of a row, --row 12 --data FILE")
    learner = load(args.file)
    if not learner.steps:
        raise DataError(f"{args.file} holds a learner that has not learned anything yet")
    if isinstance(learner, Vote | VoteDetector):
        raise ParameterError(f"{args.file} holds a vote of {len(learner.learners)} learners; explain them one by one")
    x = _row(args, learner.reading)
    learner = keyed.learner_for(learner, x, args.key_value, args.file)
    x = _known_names(x, learner)
    check_picture(args.plot)
    if isinstance(learner, VaryingClassifier):
        found = _explained(learner, x, _labels(learner, x, args.label), args.by_column)
    elif args.label is not None:
        kind = "detector" if isinstance(learner, VaryingDetector) else "regressor"
        raise ParameterError(f"--label: {args.file} holds a {kind}, which has no labels")
    elif isinstance(learner, VaryingDetector):
        found = _explained_score(learner, x, args.by_column)
    else:
        found = _explained_number(learner, x, args.by_column)
    if args.format == "json":
        print_json(found)
    else:
        _print(found, x, args.top)
    if args.plot is not None:
        _plot(args, learner, found, x)
    return 0


def _plot(args: argparse.Namespace, learner: VaryingLearner, found: dict[str, Any], x: dict[Any, Any]) -> None:
    from varifold.forest import ORF3V
    from varifold.report.forest import plot_feature

    if not isinstance(learner, ORF3V):
        if args.feature is not None:
            raise ParameterError(f"--feature is for orf3v models; {args.file} is of {found['method']}")
        _plot_bars(args, learner, found, x)
        return
    known = learner.features
    named = [row["feature"] for row in found["features"] if _votes(known.get(row["feature"]))]
    feature: Any = args.feature if args.feature is not None else next(iter(named), None)
    if feature is None:
        raise ParameterError("no numeric feature of the row has a forest to draw; name one with --feature")
    name = feature if feature in known else _number(str(feature)) or feature
    value = x.get(name)
    plot_feature(learner, name, args.plot, value=float(value) if isinstance(value, int | float) else None)
    if args.format == "table":
        print(f"picture of {feature} written to {args.plot}")


def _plot_bars(args: argparse.Namespace, learner: VaryingLearner, found: dict[str, Any], x: dict[Any, Any]) -> None:
    from varifold.report.explanation import plot_explanation

    predicted = found.get("prediction")
    label = predicted if predicted in found["labels"] else found["labels"][0]
    column = found["labels"].index(label)
    parts = [(row["feature"], row["parts"][column]) for row in found["features"]]
    if isinstance(learner, VaryingClassifier):
        share = learner.predict_proba_one(x).get(label, 0.0)
        what = "predicts" if label == predicted else "gives"
        title = f"{found['method']} {what} {label} (probability {probability(share, 2)})"
        plot_explanation(parts, x, args.plot, title, max(args.top, 1), label=True)
    else:
        what = "predicts" if "prediction" in found else "scores"
        title = f"{found['method']} {what} {found['scores'][0]:.6g}"
        plot_explanation(parts, x, args.plot, title, max(args.top, 1), total=found["labels"][0])
    if args.format == "table":
        print(f"picture written to {args.plot}")


def _votes(feature: Any) -> bool:
    return feature is not None and feature.role == "forest"


def _labels(learner: VaryingClassifier, x: dict[Any, Any], wanted: str | None) -> list[Any]:
    if wanted is None:
        return learner.classes if len(learner.classes) <= MOST_LABELS else [learner.predict_one(x)]
    for label in learner.classes:
        if wanted in (label, str(label)):
            return [label]
    raise ParameterError(f"the model has no label {wanted!r}; it knows {', '.join(map(str, learner.classes))}")


def _explained(learner: VaryingClassifier, x: dict[Any, Any], labels: list[Any], by_column: bool) -> dict[str, Any]:
    predicted = learner.predict_one(x)
    shares = [learner.explain_one(x, label, by_column=by_column) for label in labels]
    names = dict.fromkeys(name for part in shares for name in part)
    rows: list[dict[str, Any]] = [{"feature": n, "parts": [part.get(n, 0.0) for part in shares]} for n in names]
    rows.sort(key=lambda row: (row["feature"] in NO_FEATURES, -max(abs(v) for v in row["parts"])))
    margins = learner.margins_one(x)
    return {
        "method": learner._header()["method"],
        "prediction": predicted,
        "probability": learner.predict_proba_one(x)[predicted],
        "labels": labels,
        "features": rows,
        "scores": [margins[label] for label in labels],
        **_not_known(learner, x),
    }


def _explained_number(learner: VaryingRegressor, x: dict[Any, Any], by_column: bool) -> dict[str, Any]:
    """Return the parts of a regressor's prediction, which add up to it."""
    parts = learner.explain_one(x, by_column=by_column)
    predicted = learner.predict_one(x)
    return {
        "method": learner._header()["method"],
        "prediction": predicted,
        "labels": ["prediction"],
        "features": [{"feature": name, "parts": [part]} for name, part in parts.items()],
        "scores": [predicted],
        **_not_known(learner, x),
    }


def _explained_score(detector: VaryingDetector, x: dict[Any, Any], by_column: bool) -> dict[str, Any]:
    """Return the parts of a detector's score, which add up to it, and its p-value."""
    parts = detector.explain_one(x, by_column=by_column)
    score, p_value = detector.score_and_p_value_one(x)
    return {
        "method": detector._header()["method"],
        "p_value": p_value,
        "anomaly": p_value <= detector.rate,
        "labels": ["score"],
        "features": [{"feature": name, "parts": [part]} for name, part in parts.items()],
        "scores": [score],
        **_not_known(detector, x),
    }


def _not_known(learner: VaryingLearner, x: dict[Any, Any]) -> dict[str, list[Any]]:
    """Return the names that the model does not know, and those with an unknown value: a new level, or a text."""
    known, space = learner.features, learner._engine.space
    columns = {space.name_of(space.column_of(i)) for i in space.live()}
    missed = [n for n, v in x.items() if v is not None and (f"{n}={v}" if isinstance(v, str) else n) not in known]
    return {"unknown": [n for n in missed if n not in columns], "unseen": [n for n in missed if n in columns]}


def _print(found: dict[str, Any], x: dict[Any, Any], top: int) -> None:
    numeric = "probability" not in found
    if "p_value" in found:
        print(f"score        {found['scores'][0]:.4g}")
        print(f"p-value      {found['p_value']:.4g}{', an anomaly' if found['anomaly'] else ''}")
    else:
        print(f"prediction   {found['prediction']:.6g}" if numeric else f"prediction   {found['prediction']}")
    if not numeric:
        print(f"probability  {probability(found['probability'], 4)}")
    if found["unknown"]:
        print("not known    " + ", ".join(named(n) for n in found["unknown"]))
    if found["unseen"]:
        values = ", ".join(f"{named(n)} = {shorten(str(x[n]), 40)}" for n in found["unseen"])
        effect = "" if "p_value" in found else ", adds nothing"
        print(f"not seen     {values} (value not seen before{effect})")
    rows = found["features"]
    held = [row for row in rows if row["feature"] not in NO_FEATURES]
    cells = [_cells(row, x) for row in held[:top]]
    cells += [_cells(row, x) for row in rows if row["feature"] in NO_FEATURES]
    cells.append(["sum" if numeric else "score", "", *(f"{s:+.4f}" for s in found["scores"])])
    print()
    print(table(["feature", "value", *(shorten(str(label), 16) for label in found["labels"])], cells))
    if len(held) > top:
        print(f"... and {len(held) - top:,} that add less (--top {len(held)} shows all)")


def _cells(row: dict[str, Any], x: dict[Any, Any]) -> list[str]:
    value = x.get(row["feature"], "")
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return [named(row["feature"]), shorten(shown, 16), *(f"{part:+.4f}" for part in row["parts"])]


# ---------------------------------------------------------------- the instance


def _row(args: argparse.Namespace, reading: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the instance of --row: the number of a row of the data, a JSON object, or pairs name=value."""
    words: list[str] = args.row
    text = " ".join(words)
    if len(words) == 1 and text.isascii() and text.isdigit():
        return _numbered(int(text), args, reading)
    if args.data is not None:
        raise ParameterError("--data goes with the number of a row: --row 12 --data NAME")
    is_json = text.lstrip().startswith("{")
    return _as_read(_json(text) if is_json else _pairs(words), "category" if is_json else "numeric", args, reading)


def _as_read(row: dict[Any, Any], default: str, args: argparse.Namespace, reading: Mapping[str, Any]) -> dict[Any, Any]:
    """Read a row as the model's files were read: its numbers, dates, categories and texts.

    `default` is the type of strings in columns that the model file does not name.
    """
    from varifold.streams import read
    from varifold.streams.readers.notation import POINT, Notation, detect_notations, number_of, without_unit

    remembered.apply_saved_options(args, reading, [set(map(str, row))])
    kinds = {str(n): default for n, v in row.items() if isinstance(v, str)} | (args.types or {})
    others = {args.id, args.time, *(args.dates or {})}
    texts = {
        n: v.strip() for n, v in row.items() if isinstance(v, str) and kinds[str(n)] == "numeric" and n not in others
    }
    known = {column: Notation(*each) for column, each in (args.notations or {}).items()}
    texts = {n: without_unit(v, known.get(str(n), POINT).unit) for n, v in texts.items()}
    notations = detect_notations({n: [v] for n, v in texts.items()}, args.decimal, args.thousands, known, "--row")
    numbers = {n: number_of(v, notations[n]) for n, v in texts.items()}
    row = row | {name: number for name, number in numbers.items() if number is not None}
    options = source.reading_options(args) | {"types": kinds}
    x, _ = next(iter(read([row], target=args.target, unlabelled="keep", **options)))
    return dict(x)


def _known_names(x: dict[Any, Any], learner: VaryingLearner) -> dict[Any, Any]:
    """Convert the names of an instance to ints where the model has ints."""
    known = learner.features
    return {int(k) if k not in known and _number(str(k)) in known else k: v for k, v in x.items()}


def _number(name: str) -> int | None:
    return int(name) if name.isascii() and name.removeprefix("-").isdigit() else None


def _pairs(words: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ParameterError(f"{word!r} is not of the form name=value; a row number needs --data")
        if name in given:
            raise ParameterError(f"{name!r} is given twice in --row")
        given[name] = value
    return given


def _json(text: str) -> dict[Any, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"--row is not valid JSON: {error}") from error
    return dict(found)


def _numbered(number: int, args: argparse.Namespace, reading: Mapping[str, Any]) -> dict[Any, Any]:
    if args.data is None:
        raise ParameterError(f"--row {number} is the number of a row; name its data with --data NAME or --data PATH")
    seen = 0
    for block in _blocks(args, reading):
        if 0 < number <= seen + len(block):
            return dict(block.row(number - seen - 1))
        seen += len(block)
    raise ParameterError(f"there is no row {number}: {args.data} has {seen:,}")


def _blocks(args: argparse.Namespace, reading: Mapping[str, Any]) -> Any:
    """Read the data; a file is read with the options saved in the model."""
    from varifold.datasets import load as load_data
    from varifold.datasets import names

    if args.data in names():
        return [load_data(args.data).block]
    from varifold.streams import read

    remembered.apply_saved_options(args, reading, remembered.columns_of([args.data]))
    return read([args.data], target=args.target, unlabelled="keep", **source.reading_options(args)).blocks()

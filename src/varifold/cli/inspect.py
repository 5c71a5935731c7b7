"""``varifold inspect``: show the content of a model file."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from varifold._engine.targets.real_target import RealTarget
from varifold.base import Feature, VaryingLearner, VaryingRegressor
from varifold.base.files import unpack_label
from varifold.base.importances import CLEAR
from varifold.base.learner import is_detector, is_regressor
from varifold.cli import keyed
from varifold.cli.numbers import natural
from varifold.cli.output import named, print_json, shorten, table
from varifold.cli.targets import check_picture
from varifold.ensemble.per_key import KeyedLearner
from varifold.ensemble.vote import Vote
from varifold.errors import ParameterError

_MEANING = "ordered by weight times presence; present: share of the instances since the first that has the feature"
_IN_SCORES = "`varifold detect` names the features behind each alarm"
_MEASURE = "a large weight is no proof of use: `varifold run --importances --save` measures what each column is worth"


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "inspect",
        help="show a model file",
        description="Show the content of a model file: method, parameters, labels, features with their weights.",
    )
    parser.add_argument("file", metavar="FILE", help="a file that `varifold run --save` or learner.save() wrote")
    parser.add_argument(
        "--top", type=natural, default=20, metavar="N", help="features shown, largest weights first (default 20)"
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.png",
        help="draw experts over time and important features (auto), or latent correlations of a copula (ovfm)",
    )
    keyed.add_option(parser)
    parser.add_argument("--format", choices=["table", "json"], default="table")


def run(args: argparse.Namespace) -> int:
    """Print the content."""
    learner = keyed.open_model(args.file, args.key_value)
    if isinstance(learner, KeyedLearner):
        return _keys(learner, args)
    if isinstance(learner, Vote):
        raise ParameterError(f"{args.file} holds a vote of {len(learner.learners)} learners; inspect them one by one")
    if args.plot:
        _plot(learner, args.plot)
    steps = learner.steps
    features = sorted(
        learner.features.items(), key=lambda item: (-item[1].weight * item[1].share(steps), item[1].first_seen)
    )
    facts = _facts(learner, args.file, len(features))
    importances = _importances(learner)
    if args.format == "json":
        print_json(
            facts
            | {"importances": importances}
            | {"features": [{"name": n, **asdict(f), "present": f.share(steps)} for n, f in features]}
        )
        return 0
    account = facts.pop("report", None)
    if account:  # which has its own notes
        facts["notes"] = [note for note in facts["notes"] if f"Note: {note}." not in account]
    for key, value in facts.items():
        print(f"{key:<11} {_spelled(value)}")
    if account:
        print(f"\n{account}")
    if importances:
        print(f"\n{_importance_table(importances[: args.top], is_regressor(learner))}")
    if features:
        print()
        print(_feature_table(features[: args.top], steps))
    if len(features) > args.top:
        print(f"... and {len(features) - args.top:,} lighter ones (--top {len(features)} shows all)")
    if features:
        hint = _IN_SCORES if is_detector(learner) else _MEASURE
        print(_MEANING if importances else f"{_MEANING}; {hint}")
    return 0


def _importances(learner: VaryingLearner) -> list[dict[str, Any]]:
    """Return the importances that the run which wrote the file measured; empty without any."""
    rows = (learner.reading.get("run") or {}).get("importances") or []
    return [dict(zip(("column", "loss", "error", "present"), row, strict=True)) for row in rows]


def _importance_table(rows: list[dict[str, Any]], numeric: bool) -> str:
    loss = "absolute error without it" if numeric else "log loss without it"
    shown = []
    for r in rows:
        verdict = "" if r["loss"] > CLEAR * r["error"] else "no loss seen"
        shown.append([named(r["column"]), f"{r['loss']:+.4g}", f"{r['error']:.2g}", f"{r['present']:.0%}", verdict])
    return table(["column", loss, "± error", "present", ""], shown)


def _keys(learner: KeyedLearner, args: argparse.Namespace) -> int:
    """Print the keys of one learner per key, those with most steps first."""
    if args.plot:
        raise ParameterError(f"--plot draws one learner; name one of the {len(learner.keys):,} with --key-value")
    header = learner._header()
    found: list[dict[str, Any]] = [
        {"key": k, "steps": each.steps, "features": len(each.features)} for k, each in learner.items()
    ]
    found.sort(key=lambda row: (-row["steps"], str(row["key"])))
    inner = header["params"].pop("model")
    facts = {
        "file": args.file,
        "bytes": Path(args.file).stat().st_size,
        "method": header["method"],
        "of": inner["method"],
        "params": {**inner["params"], **header["params"]},
        "steps": learner.steps,
        "labels": getattr(learner, "classes", []),
        "keys": len(found),
    }
    if args.format == "json":
        print_json(facts | {"keys": found})
        return 0
    for key, value in facts.items():
        print(f"{key:<11} {_spelled(value)}")
    rows = [[shorten(str(r["key"]), 40), f"{r['steps']:,}", f"{r['features']:,}"] for r in found[: args.top]]
    print(f"\n{table([str(learner.key), 'steps', 'features'], rows)}")
    if len(found) > args.top:
        print(f"... and {len(found) - args.top:,} that learned less (--top {len(found)} shows all)")
    print("--key-value KEY shows one of them")
    return 0


def _plot(learner: VaryingLearner, path: str) -> None:
    from varifold.auto import AutoClassifier, AutoRegressor  # all commands are imported for --help, learners are not
    from varifold.copula import OVFM
    from varifold.report.auto import draw_report
    from varifold.report.copula import plot_correlation

    check_picture(path)
    if isinstance(learner, AutoClassifier | AutoRegressor):
        draw_report(learner.report(), path)
    elif isinstance(learner, OVFM):
        plot_correlation(*learner.correlation(), path)
    else:
        method = learner._header()["method"]
        raise ParameterError(
            f"--plot draws the experts of `auto` or the latent correlations of `ovfm`; {method} has none"
        )
    print(f"picture written to {path}", file=sys.stderr)


def _facts(learner: VaryingLearner, path: str, known: int) -> dict[str, Any]:
    from varifold.auto import AutoClassifier, AutoRegressor

    header = learner._header()
    account = {"report": str(learner.report())} if isinstance(learner, AutoClassifier | AutoRegressor) else {}
    return {
        "file": path,
        "bytes": Path(path).stat().st_size,
        "method": header["method"],
        "params": header["params"],
        "steps": learner.steps,
        **_learned(learner),
        "known": known,
        "notes": list(learner.traits.notes),
        **account,
    }


def _learned(learner: VaryingLearner) -> dict[str, Any]:
    """Return the labels learned, mean and deviation of the targets, or the alarms of the run that wrote the file."""
    if is_detector(learner):
        run = learner.reading.get("run")
        return {"alarms": {name: run[name] for name in ("alarms", "instances", "rate")}} if run else {}
    if isinstance(learner, VaryingRegressor):
        target = cast(RealTarget, learner._engine.target).statistics
        return {"target": {"mean": target.mean, "deviation": target.deviation}}
    return {"labels": getattr(learner, "classes", [])}


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={_param(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(str(v) for v in value) or "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _param(value: Any) -> str:
    """Format a parameter; a learner and costs by label are written as on the command line."""
    if not isinstance(value, dict):
        return repr(value)
    if "pairs" in value:
        return f"({','.join(f'{unpack_label(label)}={_param(part)}' for label, part in value['pairs'])})"
    header = value["learner"]
    return f"({header['method']}:{','.join(f'{k}={_param(v)}' for k, v in header['params'].items())})"


def _feature_table(features: list[tuple[str | int, Feature]], steps: int) -> str:
    """Format features as a table, with a column for their roles if any has one."""
    roles = any(f.role for _, f in features)
    rows = [
        [named(n), f"{f.weight:.4g}", f"{f.share(steps):.0%}", f"{f.count:,}", f"{f.first_seen:,}", f"{f.last_seen:,}"]
        + ([f.role] if roles else [])
        for n, f in features
    ]
    header = ["feature", "weight", "present", "seen", "first", "last"] + (["role"] if roles else [])
    return table(header, rows)

"""``varifold models``: list every registered learner and detector."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from varifold.base import detectors, models
from varifold.cli.output import print_json, table


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "models",
        help="list the learners and detectors",
        description="List every registered learner and detector.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, with their parameters")
    parser.add_argument("--format", choices=["table", "json"], default="table")


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    found = [_entry(name) for name in (args.names or [*models, *detectors])]
    if args.format == "json":
        print_json(found)
    elif args.names:
        print("\n\n".join(_page(entry) for entry in found))
    else:
        print(table(["name", "class", ""], [[e["name"], e["class"], e["summary"]] for e in found], left=3))
        print("\n`varifold models NAME` shows a learner's parameters; --model NAME:key=value sets them.")
        print("Detectors are for `varifold detect`.")
    return 0


def _class(name: str) -> Any:
    return (detectors if name in detectors else models)[name]


def _entry(name: str) -> dict[str, Any]:
    cls = _class(name)
    traits = cls().traits
    return {
        "name": name,
        "class": cls.__name__,
        "family": cls.__module__.split(".")[1],
        "summary": (inspect.getdoc(cls) or "").split("\n", 1)[0],
        "params": {k: p.default for k, p in inspect.signature(cls).parameters.items()},
        "task": traits.task,
        "multiclass": traits.multiclass,
        "cost": traits.cost,
        "uses_absence": traits.uses_absence,
    }


def _page(entry: dict[str, Any]) -> str:
    doc = inspect.getdoc(_class(entry["name"])) or ""
    spelled = ", ".join(f"{k}={v!r}" for k, v in entry["params"].items())
    return f"{entry['name']}: {entry['class']}({spelled})\n\n{doc}"

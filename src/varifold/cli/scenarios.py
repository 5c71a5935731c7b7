"""``varifold scenarios``: list the ways to make a fixed data set vary."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from varifold.cli.output import print_json, table
from varifold.streams.scenarios.registry import all_scenarios
from varifold.streams.scenarios.spec import Scenario


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "scenarios",
        help="list the ways in which features appear and vanish",
        description="List the scenarios, which make a fixed data set vary: --scenario NAME[:VALUE,KEY=VALUE].",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, with their full description")
    parser.add_argument("--format", choices=["table", "json"], default="table")


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    from varifold.streams.scenarios.spec import find

    known = all_scenarios()
    found = [find(name, known) for name in args.names] if args.names else list(known.values())
    if args.format == "json":
        print_json([_entry(scenario) for scenario in found])
    elif args.names:
        print("\n\n".join(_page(scenario) for scenario in found))
    else:
        print(table(["name", "parameters", ""], [[s.name, _spelled(s), s.summary] for s in found], left=3))
        print("\nSeveral are joined with +, applied from left to right: mixed+vfs:0.3. A function of your own is")
        print("written package.module:function; `varifold data show NAME --scenario SPEC --plot FILE.png` draws one.")
    return 0


def _spelled(scenario: Scenario) -> str:
    parts = []
    for name, parameter in scenario.parameters.items():
        has_default = parameter.default is not inspect.Parameter.empty
        parts.append(f"{name}={parameter.default}" if has_default else name)
    return ", ".join(parts)


def _entry(scenario: Scenario) -> dict[str, Any]:
    empty = inspect.Parameter.empty
    params = {k: None if p.default is empty else p.default for k, p in scenario.parameters.items()}
    return {"name": scenario.name, "summary": scenario.summary, "params": params, "needs": scenario.needs}


def _page(scenario: Scenario) -> str:
    return f"{scenario.name}: {_spelled(scenario)}\n\n{inspect.getdoc(scenario.apply) or ''}".rstrip()

"""``varifold run --as-paper TABLE``: one as-paper number of a paper's table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TypeVar

from varifold.base.nearest import nearest
from varifold.bench.compare import Number, mark
from varifold.bench.table import Data, Method, Setting, Slot, Table
from varifold.bench.tables import find_table
from varifold.bench.work import measure
from varifold.cli.output import table as text_table
from varifold.errors import ParameterError, UnknownNameError

__all__ = ["run"]

Part = TypeVar("Part", Setting, Data, Method)
VERDICTS = {"+": "better", "~": "equal within two standard errors", "-": "worse"}


def run(args: argparse.Namespace) -> int:
    """Run the candidates of one as-paper cell, and print them with the printed number.

    --data names the data set as the table does, --model its method and --scenario its setting; what there is only one
    of may be left out.
    """
    table = find_table(args.as_paper)
    if table.parameters:
        raise ParameterError(f"{table.name} is a table of parameters; its numbers are those of {table.parameters}")
    for option, given in (("load", args.load), ("scale", args.scale), ("save", args.save), ("plot", args.plot)):
        if given is not None:
            raise ParameterError(f"--{option} cannot be combined with --as-paper, whose table decides how to run")
    if args.files or args.data is None:
        raise ParameterError("--as-paper needs a data set of the table: --data NAME")
    data = _chosen("--data", args.data, table.data)
    method = _chosen("--model", args.model, table.methods)
    slot = _slot(table, data, method, None if args.scenario == "none" else args.scenario, args.repeats)
    rows = []
    for cells in slot.cells.values():
        text = cells[0].model
        outcomes = []
        for cell in cells:
            print(f"seed {cell.seed}: {text}", file=sys.stderr)
            outcomes.append(measure(cell))
        number = Number("", text, len(slot.cells), cells, tuple(outcomes), len(cells))
        for metric in table.metrics:
            rows.append(
                [
                    metric,
                    f"{number.mean(metric):.4f}",
                    f"{number.std(metric):.4f}",
                    *_printed(slot, table, number, metric),
                    text,
                ]
            )
    cell = next(iter(slot.cells.values()))[0]
    done = f"{len(cells)} of {table.repeats} repeats"
    print(f"{table.title}, {slot.setting.name}, {data.name}, {method.name}, as paper; {done}")
    print(f"stream {cell.scenario}, scale {cell.scale}, learner with {cell.overrides}\n")
    print(text_table(["metric", "mean", "std", "printed", "ours is", "learner"], rows, left=1))
    return 0


def _printed(slot: Slot, table: Table, number: Number, metric: str) -> list[str]:
    """Return the cells of the paper's number and of the verdict on ours; empty if the paper has no such number."""
    wanted = (slot.setting.name, slot.data.name, slot.method, metric)
    printed = next((p for p in table.published if (p.setting, p.data, p.method, p.metric) == wanted), None)
    if printed is None or printed.mean is None:
        return ["", ""]
    if table.stand_in or table.relative_to:
        return [f"{printed.mean:.4f}", ""]
    verdict = mark(number, printed, metric)
    return [f"{printed.mean:.4f}", VERDICTS[verdict.sign] if verdict is not None else "needs more streams"]


def _slot(table: Table, data: Data, method: Method, scenario: str | None, repeats: int) -> Slot:
    """Return what the table runs for its as-paper number of this method; raise an error that lists those it has."""
    slots = [slot for slot in table.slots(repeats) if (slot.method, slot.column) == (method.name, "paper")]
    slots = [slot for slot in slots if slot.data == data]
    settings = [slot.setting for slot in slots] if scenario is None and slots else table.settings
    setting = _chosen("--scenario", scenario, settings)
    for slot in slots:
        if slot.setting == setting:
            if slot.gap:
                raise ParameterError(f"{table.name} has no such number: {slot.gap}")
            return slot
    others = ", ".join(slot.setting.name for slot in slots)
    raise ParameterError(
        f"{table.name} has no as-paper number of {method.name} on {data.name}, {setting.name}"
        + (f"; it has one with --scenario {others}" if others else "")
    )


def _chosen(option: str, name: str | None, parts: Iterable[Part]) -> Part:
    """Return the part of the table with this name, or its only one."""
    by_name = {part.name.lower(): part for part in parts}
    if name is None and len(by_name) == 1:
        return next(iter(by_name.values()))
    listed = ", ".join(part.name for part in by_name.values())
    if name is None:
        raise ParameterError(f"{option} is needed: one of {listed}")
    if name.lower() not in by_name:
        raise UnknownNameError(f"the table has no {name!r}{nearest(name.lower(), list(by_name))} ({option}: {listed})")
    return by_name[name.lower()]

"""How to reproduce the numbers, and with what they were made."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from varifold.base.plural import plural
from varifold.bench.compare import Filled, won
from varifold.bench.sources import files_of
from varifold.bench.table import Data, Setting, Table

__all__ = ["gap_lines", "made_with", "readings", "recipes"]


def recipes(filled: Filled) -> list[str]:
    """Return the commands for the whole table and for a single number of it."""
    table = filled.table
    most = filled.repeats()[1] or table.repeats
    if table.own:
        return _study(table, most)
    repeats = "" if table.leaderboard else f" --repeats {most}"
    if table.parameters:
        return [f"varifold bench run {table.parameters}", f"varifold bench report {table.name}"]
    lines = [f"varifold bench run {table.name}{repeats}", f"varifold bench report {table.name}"]
    if table.leaderboard:
        name = table.methods[0].name
        return [*lines, f"varifold bench run {table.name} --method {shlex.quote(name)} --only {table.data[0].name}"]
    if not (table.stand_in or table.relative_to):
        for command in (_as_paper, _single):
            lines += next((line for place in table.places() if (line := command(filled, *place, most))), [])
    return lines


def _study(table: Table, repeats: int) -> list[str]:
    """Return the command of a study; it names files without their folders, which are nobody else's."""
    setting, load = table.settings[0], table.data[0].load
    files = files_of(load)
    words = ["--data", *([Path(path).name for path in files.paths] if files is not None else [load])]
    if files is not None:
        words += ["--target", files.target] if files.target else []
        words += [word for name, value in files.reading.items() for word in _reading(name, value)]
        words += ["--shuffle"] if setting.shuffle else []
    elif not setting.shuffle:
        words.append("--no-shuffle")
    models = ",".join(m.default[0] for m in table.methods)
    words += ["--models", models, "--scenario", setting.scenario, "--repeats", str(repeats), "--name", table.name]
    where = [] if files is None else [f"# in the folder of {Path(files.paths[0]).name}"]
    return [*where, shlex.join(["varifold", "bench", "run", *words])]


def _reading(name: str, value: Any) -> list[str]:
    """Format an option of `streams.read` for the command line."""
    if name == "header":
        return ["--no-header"]
    if name == "absent":
        value = [text for text in value if text]
    option = {"format": "input-format"}.get(name, name.replace("_", "-"))
    if isinstance(value, dict):
        value = [f"{column}={kind if isinstance(kind, str) else '+'.join(kind)}" for column, kind in value.items()]
    return [f"--{option}", ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]


def _as_paper(filled: Filled, setting: Setting, data: Data, most: int) -> list[str]:
    """Return the command that computes one number as paper."""
    table, metric = filled.table, filled.table.metrics[0]
    for method in table.methods:
        number = filled.number(setting, data, method.name, "paper")
        if number:
            words = ["varifold", "run", "--as-paper", table.name, "--data", data.name, "--model", method.name]
            words += ["--scenario", setting.name] if len(table.settings) > 1 else []
            words += ["--repeats", str(len(table.seeds(setting, data, most)[: method.repeats]))]
            best = f"the best of {number.tried}: " if number.tried > 1 else ""
            return [
                shlex.join(words),
                f"# {method.name}, as paper, {data.name}: {best}{metric} {number.mean(metric):.4f}",
            ]
    return []


def _single(filled: Filled, setting: Setting, data: Data, most: int) -> list[str]:
    """Return the command that computes one number with library defaults."""
    repeats = len(filled.table.seeds(setting, data, most))
    scenario = "+".join(s for s in (data.before, setting.scenario) if s)
    for method in filled.table.methods:
        number = filled.number(setting, data, method.name, "default")
        if number:
            metric = filled.table.metrics[0]
            return [
                f"varifold run --data {data.load} --scenario {scenario} --model {number.text} --repeats {repeats}",
                f"# {method.name}, defaults, {data.name}: {metric} {number.mean(metric):.4f}",
            ]
    return []


def gap_lines(filled: Filled) -> list[str]:
    """Describe what is missing, and why."""
    return [f"{plural(count, 'number')}: {reason}" for reason, count in filled.gaps().most_common()]


def readings(filled: Filled) -> list[str]:
    """Describe variants of the protocol, and printed cells that another figure contradicts."""
    table = filled.table
    lines = [f"Variant *{variant.name}*: {variant.why}" for variant in table.variants]
    counts, places = won(filled) if table.apart else ({}, 0)
    if counts:
        shown = ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda pair: -pair[1]))
        lines.append(f"Places of {places} in which ours is above the best printed number: {shown}.")
    for doubt in table.doubts:
        cells = [p for p in filled.printed.values() if doubt.covers(p)]
        if cells:
            which = ", ".join(f"{p.method} {p.mean:.3f}".replace(" 0.", " .") for p in cells)
            lines.append(f"Printed cells marked ?: {doubt.data}, {which}. {doubt.why}")
    return lines


def coverage(filled: Filled) -> str:
    """Describe how complete a table is."""
    there, wanted = filled.done()
    least, most = filled.repeats()
    if not there:
        return "Nothing of this table has been run yet."
    repeats = f"{most}" if least == most else f"{least} to {most}"
    return f"{there} of {wanted} numbers of ours are there, from {repeats} repeat{'s' if most != 1 else ''} each."


def capped(filled: Filled) -> str:
    """Name the data sets with fewer repeats than the paper."""
    table = filled.table
    fewer = [f"{d.name} {d.repeats}" for d in table.data if d.repeats is not None and d.repeats < table.repeats]
    return f"The paper repeats {table.repeats} times; at most here: {', '.join(fewer)}." if fewer else ""


def made_with(environments: Iterable[tuple[dict[str, Any], int, str, str]]) -> list[str]:
    """Describe code and versions of the outcomes in a store."""
    lines = []
    for facts, count, first, last in environments:
        days = first[:10] if first[:10] == last[:10] else f"{first[:10]} to {last[:10]}"
        versions = ", ".join(
            f"{name} {facts[name]}" for name in ("varifold", "python", "numpy", "scipy", "river") if name in facts
        )
        git = f", commit {facts['git']}" if facts.get("git") else ""
        lines.append(
            f"{count:,} outcomes of {days}: code {facts['code']}{git}; {versions}; {facts['system']}, "
            f"{facts['processors']} processors"
        )
    return lines


def total_time(filled: Iterable[Filled]) -> str:
    """Return the time of all outcomes shown, each counted once."""
    walls = {
        cell: o.wall for f in filled for n in f.numbers.values() for cell, o in zip(n.cells, n.outcomes, strict=True)
    }
    seconds = math.fsum(walls.values())
    return f"{len(walls):,} outcomes shown, {seconds / 60:,.1f} minutes of one processor."

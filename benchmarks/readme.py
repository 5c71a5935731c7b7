"""Measure the figures of README.md: the usual alternatives, on the demo's plant and three real sets.

    python -m benchmarks.readme            # measure, write benchmarks/readme.json, README.md and the picture

Every learner sees the same dicts in the same order, predicts, then learns. Error in %, CPU time in microseconds per
instance. LightGBM is refitted every 500 rows. A test compares README.md with benchmarks/readme.json.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.auto_peers import PEERS, auto, measure

ROOT = Path(__file__).parent.parent
FIGURES = Path(__file__).with_suffix(".json")
PICTURE = ROOT / "docs" / "_static" / "demo.png"
START, END = "<!-- figures: python -m benchmarks.readme -->", "<!-- end of figures -->"
SEED, MOST = 7, 6000
Rows = list[tuple[dict[str, Any], Any]]


def plant() -> Rows:
    from varifold.cli.sensors import plant as make

    made = make(seed=SEED)
    return list(zip(made.rows(), made.labels, strict=True))


def real(name: str, scenario: str) -> Callable[[], Rows]:
    def make() -> Rows:
        from varifold import datasets, streams

        whole = datasets.load(name).block
        some = whole.take(np.random.default_rng(SEED).permutation(len(whole))[:MOST])
        block = streams.prepare(some, scenario, seed=SEED).block
        return list(zip(block.rows(), block.y, strict=True))

    return make


STREAMS: dict[str, Callable[[], Rows]] = {
    "plant of the demo": plant,
    "spambase, half of the values missing": real("spambase", "vfs:0.5"),
    "adult, columns come over time": real("adult", "trapezoidal"),
    "magic04, groups fall silent": real("magic04", "outage"),
}
LEARNERS: dict[str, Callable[[], Any]] = {
    "varifold `auto`": auto,
    '`auto`, `budget="fast"`': lambda: auto("fast"),
    "LightGBM, refit": PEERS["LightGBM"],
    "river ARF": PEERS["ARF"],
    "river Hoeffding adaptive tree": PEERS["HAT"],
    "river scaled logistic regression": PEERS["logistic regression"],
}


def run() -> dict[str, Any]:
    """Measure every cell."""
    cells = {}
    for stream, make in STREAMS.items():
        rows = make()
        for name, learner in LEARNERS.items():
            cells[f"{stream} | {name}"] = measure(learner(), rows)
            print(f"{stream:40} {name:36} {cells[f'{stream} | {name}']}", flush=True)
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    return {"commit": commit, "python": platform.python_version(), "cells": cells}


def table(found: dict[str, Any]) -> str:
    """Format the table in Markdown; the lowest error of a stream is bold."""
    lines = ["| error in %, µs per instance | " + " | ".join(STREAMS) + " |", "| --- |" + " ---: |" * len(STREAMS)]
    lowest = {s: min(found["cells"][f"{s} | {n}"]["error"] for n in LEARNERS) for s in STREAMS}
    for name in LEARNERS:
        shown = []
        for stream in STREAMS:
            cell = found["cells"][f"{stream} | {name}"]
            error = f"{100 * cell['error']:.1f}"
            shown.append(f"{f'**{error}**' if cell['error'] == lowest[stream] else error}, {cell['us']:,.0f} µs")
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def page(text: str, found: dict[str, Any]) -> str:
    """Return README.md with its figures replaced."""
    made = f"{START}\n{table(found)}\n\nMeasured at commit {found['commit']}, Python {found['python']}.\n{END}"
    return re.sub(re.escape(START) + ".*?" + re.escape(END), lambda _: made, text, flags=re.S)


def main() -> None:
    found = run()
    FIGURES.write_text(json.dumps(found, indent=1) + "\n")
    readme = ROOT / "README.md"
    readme.write_text(page(readme.read_text(encoding="utf-8"), found), encoding="utf-8")
    command = shutil.which("varifold")
    if command is None:
        raise SystemExit("the picture needs the command `varifold` on the path: run inside .venv")
    subprocess.run([command, "demo", "--seed", str(SEED), "--plot", str(PICTURE)], check=True)


if __name__ == "__main__":
    main()

"""Keep a record of speed: a few ratios, measured in one run, in `benchmarks/history.csv`, with a picture.

    python -m benchmarks.speed.history [--dry-run]

Every figure is the processor time of one thing over that of another on the same instances, the best of several passes
that take turns: what a busy machine does to one it does to both. A line of the record is (date, commit, machine,
measure, ratio); a commit with changes that are not committed has a `+`. Ratios of different machines are not compared.
A ratio more than 10 % above the last one of the same machine and measure is reported as slower; `--dry-run` compares
and writes nothing.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1]
RECORD = FOLDER / "history.csv"
PICTURE = FOLDER / "history.png"
SLOWER = 1.10
PASSES = 15
LONGEST = 4.0
"""Seconds of passes after which a contender is not run again."""
METHODS = ("arow", "ftrlproximal", "olids", "gaussiannb", "ovfiv", "ocds", "additive")
Run = Callable[[], Any]


@dataclass(frozen=True)
class Entry:
    """One line of the record."""

    date: str
    commit: str
    machine: str
    measure: str
    ratio: float


# ---------------------------------------------------------------- the record


def read_record(path: Path) -> list[Entry]:
    """Return the lines so far, oldest first; none before the first run."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [Entry(**{**line, "ratio": float(line["ratio"])}) for line in csv.DictReader(file)]


def append(path: Path, entries: list[Entry]) -> None:
    """Append lines, after a header if the file is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([field.name for field in fields(Entry)])
        writer.writerows([*astuple(entry)[:-1], f"{entry.ratio:.4f}"] for entry in entries)


def slowdowns(earlier: list[Entry], now: list[Entry]) -> list[tuple[Entry, Entry]]:
    """Return (last, now) of each measure that is more than 10 % slower than the last time on the same machine."""
    last = {(entry.machine, entry.measure): entry for entry in earlier}
    pairs = [(last[entry.machine, entry.measure], entry) for entry in now if (entry.machine, entry.measure) in last]
    return [(old, new) for old, new in pairs if new.ratio > SLOWER * old.ratio]


def machine() -> str:
    """Return the processor and number of cores."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{model} x{os.cpu_count()}"


def commit() -> str:
    """Return the current commit, with a + if files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=FOLDER, check=True, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src", "speed")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def draw(entries: list[Entry], path: Path) -> None:
    """Draw a line per measure over the runs, relative to its machine's first ratio; one panel per machine."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    machines = list(dict.fromkeys(entry.machine for entry in entries))
    figure, panels = pyplot.subplots(len(machines), 1, figsize=(10, 5 * len(machines)), squeeze=False)
    for panel, name in zip(panels[:, 0], machines, strict=True):
        mine = [entry for entry in entries if entry.machine == name]
        panel.set_prop_cycle(color=pyplot.colormaps["tab20"].colors)
        runs = list(dict.fromkeys((entry.date, entry.commit) for entry in mine))
        for measure in dict.fromkeys(entry.measure for entry in mine):
            points = [(runs.index((e.date, e.commit)), e.ratio) for e in mine if e.measure == measure]
            panel.plot([x for x, _ in points], [y / points[0][1] for _, y in points], marker="o", label=measure)
        panel.axhline(1.0, color="grey", linewidth=0.5)
        panel.set_xticks(range(len(runs)), [f"{stamp[:10]}\n{known}" for stamp, known in runs], fontsize=7)
        panel.set_ylabel("ratio over that of the first run")
        panel.set_title(name)
        panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=80, bbox_inches="tight")
    pyplot.close(figure)


# ---------------------------------------------------------------- what is measured


def one_by_one(make: Run, rows: list[Any]) -> Run:
    """Predict and learn dicts."""

    def run() -> None:
        model = make()
        for x, y in rows:
            model.predict_one(x)
            model.learn_one(x, y)

    return run


def loop_in_c(library: Any, block: Any) -> Run:
    """Return a run of the same work as OLVF's, written by hand in C."""
    import ctypes

    from benchmarks.speed.__main__ import address

    held = (block.indptr, block.indices, block.values, np.ascontiguousarray(block.codes))
    sizes = [ctypes.c_int64(len(block)), ctypes.c_int64(block.vocabulary.size)]
    numbers = [ctypes.c_double(value) for value in (0.01, 1e-3, 3.0)]
    return lambda: library.limit_olvf(*sizes, *map(address, held), *numbers)


def contenders(folder: Path) -> tuple[dict[str, Run], list[tuple[str, str, str]]]:
    """Return the runs by name, and the ratios as (measure, numerator, denominator)."""
    from river import linear_model

    import varifold
    from benchmarks.speed.__main__ import bag_of_words, limit, spambase

    runs: dict[str, Run] = {}
    ratios: list[tuple[str, str, str]] = []
    library = limit(folder)
    for title, block, some in (("spambase", spambase(), 1500), ("words", bag_of_words()[:5000], 400)):
        rows = list(zip(block[:some].rows(indicators=True), block[:some].y, strict=True))
        block_run, dicts = f"{title} block", f"{title} dicts"
        runs[block_run] = lambda block=block: varifold.OLVF().run_block(block)
        runs[f"{title} C"] = loop_in_c(library, block)
        runs[dicts] = one_by_one(varifold.OLVF, rows)
        runs[f"{title} river"] = one_by_one(linear_model.LogisticRegression, rows)
        ratios.append((f"{title}: OLVF, block / C loop", block_run, f"{title} C"))
        ratios.append((f"{title}: OLVF, dicts / river LogisticRegression", dicts, f"{title} river"))
        if title == "spambase":
            _add_methods(block, block_run, runs, ratios)
    _add_text(folder, runs, ratios)
    return runs, ratios


def _add_methods(block: Any, unit: str, runs: dict[str, Run], ratios: list[tuple[str, str, str]]) -> None:
    """Add slower methods, compared with OLVF."""
    import varifold

    for name in METHODS:
        runs[name] = lambda name=name: varifold.models[name]().run_block(block)
        ratios.append((f"spambase: {name} / OLVF, block", name, unit))
    part = block[:300]
    runs["auto"] = lambda: varifold.AutoClassifier().run_block(part)
    runs["olvf part"] = lambda: [varifold.OLVF().run_block(part) for _ in range(20)]
    ratios.append(("spambase: auto / 20 OLVF, block", "auto", "olvf part"))


def _add_text(folder: Path, runs: dict[str, Run], ratios: list[tuple[str, str, str]]) -> None:
    """Add reading CSV compared with the standard library's reader, and JSON lines compared with its loads()."""
    import varifold
    from benchmarks.reading.__main__ import generate
    from varifold import streams
    from varifold.base.json_text import read_json

    path = folder / "cells.csv"
    generate(path, 10_000, 50)
    text = path.read_text()
    runs["csv"] = lambda: [len(block) for block in streams.read(path, target="y").blocks()]
    runs["csv module"] = lambda: [len(cells) for cells in csv.reader(io.StringIO(text))]
    rng = np.random.default_rng(0)
    lines = [json.dumps({f"f{j}": float(v) for j, v in enumerate(rng.normal(size=28))}) for _ in range(1000)]

    def learn_lines() -> None:
        model = varifold.AROW()
        for i, line in enumerate(lines):
            x = read_json(line)
            model.predict_one(x)
            model.learn_one(x, i % 2)

    runs["json"] = learn_lines
    runs["json.loads"] = lambda: [json.loads(line) for line in lines]
    ratios.append(("CSV: read / csv.reader", "csv", "csv module"))
    ratios.append(("JSON: predict and learn a line / json.loads", "json", "json.loads"))


def best_times(runs: dict[str, Run]) -> dict[str, float]:
    """Return the processor seconds of the best pass of each; the passes alternate."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(PASSES):
        for name, run in runs.items():
            if sum(times[name]) < LONGEST:
                start = time.process_time()
                run()
                times[name].append(time.process_time() - start)
    return {name: min(taken) for name, taken in times.items()}


def measured() -> list[Entry]:
    """Measure the ratios of this commit on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        runs, ratios = contenders(Path(folder))
        best = best_times(runs)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")
    here, known = machine(), commit()
    return [Entry(now, known, here, name, round(best[one] / best[other], 4)) for name, one, other in ratios]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="compare with the record without writing to it")
    dry = parser.parse_args().dry_run
    earlier, now = read_record(RECORD), measured()
    last = {(entry.machine, entry.measure): entry.ratio for entry in earlier}
    for entry in now:
        before = last.get((entry.machine, entry.measure))
        print(f"  {entry.measure:50}{entry.ratio:9.3f}" + (f"   last {before:.3f}" if before else ""))
    for old, new in slowdowns(earlier, now):
        print(f"SLOWER by {100 * (new.ratio / old.ratio - 1):.0f} % than at {old.commit}: {new.measure}")
    if not dry:
        append(RECORD, now)
        draw([*earlier, *now], PICTURE)


if __name__ == "__main__":
    main()

"""Measure the monitor: false drift alarms, delay until a change is noticed, renames found, missed and wrong.

    python -m benchmarks.monitor [--trials 20] [--rows 6000]

False alarms are counted on streams without change: independent values, values that depend on their predecessors, a
daily cycle, counts, categories; half of the values are absent. Renames are made on purpose in the weather and NHANES
tables (VARIFOLD_DATA): one column gets another name, with or without another unit. *Unrelated* trials end one column
and begin a different one at the same row, which is no rename.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from varifold.monitor import Monitor

Row = dict[Any, Any]


def unchanged(kind: str, n: int, seed: int) -> list[Row]:
    """Return n rows of ten columns of one kind whose distribution does not change, half of the values absent."""
    rng = np.random.default_rng(seed)
    width = 10
    if kind == "independent":
        values = rng.normal(size=(n, width))
    elif kind == "dependent":  # an autoregressive process of order 1
        values = np.zeros((n, width))
        for i in range(1, n):
            values[i] = 0.95 * values[i - 1] + rng.normal(size=width)
    elif kind == "daily cycle":
        values = np.sin(np.arange(n)[:, None] * 2 * np.pi / 96 + np.arange(width)) + 0.3 * rng.normal(size=(n, width))
    elif kind == "counts":
        values = rng.poisson(1.5, size=(n, width)).astype(float)
    else:
        values = rng.choice(np.array(list("aaaabbcd"), dtype=object), size=(n, width))
    present = rng.random((n, width)) < 0.5
    return [{f"c{j}": values[i, j] for j in range(width) if present[i, j]} for i in range(n)]


def false_alarms(n: int, seeds: range) -> None:
    """Print the events on streams without change."""
    print(f"\nstreams without change: events per 100,000 values ({len(seeds)} streams of {n:,} rows, 10 columns each)")
    for kind in ("independent", "dependent", "daily cycle", "counts", "categories"):
        counts: dict[str, int] = {}
        cells = 0
        start = time.process_time()
        for seed in seeds:
            rows = unchanged(kind, n, seed)
            cells += sum(map(len, rows))
            for event in run(rows).events:
                counts[event.kind] = counts.get(event.kind, 0) + len(event.features)
        spent = (time.process_time() - start) / (n * len(seeds)) * 1e6
        shown = ", ".join(f"{key} {1e5 * value / cells:.2f}" for key, value in sorted(counts.items())) or "none"
        print(f"  {kind:12} {shown}   ({spent:.0f} us per row, generating included)")


def run(rows: list[Row]) -> Monitor:
    """Return a monitor that followed the rows."""
    monitor = Monitor()
    for row in rows:
        monitor.learn_one(row)
    return monitor


def delays(seeds: range) -> None:
    """Print how many rows pass until a change of one independent column is noticed."""
    changes: dict[str, Callable[[float], float]] = {
        "shift by 1 deviation": lambda v: v + 1.0,
        "shift by .5": lambda v: v + 0.5,
        "twice as wide": lambda v: 2.0 * v,
        "Celsius to Fahrenheit": lambda v: 1.8 * v + 32.0,
        "stuck": lambda v: 0.25,
    }
    print("\nrows until a change at row 5,000 is noticed (median; missed within 5,000 rows)")
    for name, change in changes.items():
        waits = []
        for seed in seeds:
            rng = np.random.default_rng(1000 + seed)
            values = rng.normal(size=10_000)
            monitor = run([{"x": change(v) if i >= 5000 else v, "y": 1.0} for i, v in enumerate(values.tolist())])
            noticed = [e.detected for e in monitor.events if e.kind in ("drift", "stuck") and e.detected > 5000]
            waits.append(noticed[0] - 5000 if noticed else np.inf)
        print(f"  {name:22} {np.median(waits):6.0f}   missed {np.isinf(waits).sum()} of {len(waits)}")


def table(name: str, rows: int) -> list[Row]:
    """Return rows of a natural table."""
    import os

    import varifold.streams as streams

    files = {"weather": ("weather_aus.csv.gz", "RainTomorrow"), "nhanes": ("nhanes.csv.gz", None)}
    file, target = files[name]
    path = os.path.join(os.environ["VARIFOLD_DATA"], "natural", file)
    found: list[Row] = []
    for x, _ in streams.read(path, target=target, ignore=["Date"] if name == "weather" else ()):
        found.append(x)
        if len(found) == rows:
            break
    return found


def renames(name: str, rows: list[Row], trials: int, seed: int) -> None:
    """Print how many renames are found, missed and wrong."""
    rng = random.Random(seed)
    usable = sorted({c for row in rows for c in row if sum(c in r for r in rows[::20]) > len(rows) / 80})
    conversions: dict[str, Callable[[Any], Any]] = {
        "same unit": lambda v: v,
        "other unit": lambda v: 1.8 * v + 32.0 if isinstance(v, float) else v,
    }
    print(f"\n{name}: {len(rows):,} rows, {len(usable)} columns, {trials} trials each")
    for kind, convert in conversions.items():
        counts = {"found": 0, "missed": 0, "wrong": 0}
        for _ in range(trials):
            chosen = rng.sample(usable, 3)
            cut = rng.randrange(len(rows) // 3, 2 * len(rows) // 3)
            new = {old: f"v2_{rng.randrange(10**6)}" for old in chosen}
            changed = [
                row if i < cut else {new.get(c, c): convert(v) if c in new else v for c, v in row.items()}
                for i, row in enumerate(rows)
            ]
            suggested = {r.old: r.new for r in run(changed).renames}
            counts["found"] += sum(suggested.get(old) == new[old] for old in chosen)
            counts["missed"] += sum(old not in suggested for old in chosen)
            counts["wrong"] += sum(new.get(old) != to for old, to in suggested.items())
        print(f"  renamed, {kind:10} {counts} of {3 * trials}")
    wrong = 0
    for _ in range(trials):
        ended, begun = rng.sample(usable, 2)
        cut = rng.randrange(len(rows) // 3, 2 * len(rows) // 3)
        changed = [{c: v for c, v in row.items() if c != (begun if i < cut else ended)} for i, row in enumerate(rows)]
        wrong += len(run(changed).renames)
    print(f"  unrelated: {wrong} suggested in {trials} trials")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    false_alarms(20_000, range(args.seed, args.seed + 5))
    delays(range(args.seed, args.seed + 10))
    for name in ("weather", "nhanes"):
        renames(name, table(name, args.rows), args.trials, args.seed)


if __name__ == "__main__":
    main()

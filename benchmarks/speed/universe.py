"""Measure what a large feature space costs: time as it grows, bytes per feature, and the time of `import varifold`.

    python -m benchmarks.speed.universe [--features 1000000]

OLVF, dense and sparse, learns and predicts instances of 100 features out of 10^4 and out of 10^6 known ones. For
comparison a bare loop looks up every name twice in a dict of that size: what the machine's caches cost in any case.
Each figure is the best of five passes over 4,000 instances, the two taking turns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Any

import numpy as np

import varifold

PRESENT = 100
SMALL = 10_000
FORMS: dict[str, tuple[dict[str, Any], float]] = {"dense": ({}, 1.25), "sparse, B = .5": ({"B": 0.5}, 2.0)}


def instances(known: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """Generate 4,000 instances with newly built name strings, as a reader would produce them."""
    made = []
    for _ in range(4_000):
        chosen = rng.choice(known, PRESENT, replace=False) if known <= SMALL else np.unique(rng.integers(0, known, 104))
        made.append({f"feature {j}": float(v) for j, v in zip(chosen[:PRESENT], rng.normal(size=PRESENT), strict=True)})
    return made


def settled(params: dict[str, Any], known: int, rng: np.random.Generator) -> tuple[Any, dict[str, float]]:
    """Return a learner that knows all the names, and a dict that holds them."""
    model, table = varifold.OLVF(**params), {}
    order = rng.permutation(known)
    for start in range(0, known, PRESENT):
        x = {f"feature {j}": float(j % 7) for j in order[start : start + PRESENT]}
        model.learn_one(x, start // PRESENT % 2 == 0)
        table.update(x)
    return model, table


def passes(model: Any, table: dict[str, float], rows: list[dict[str, float]]) -> tuple[float, float]:
    """Return microseconds per instance of the learner and of the bare loop."""
    ours = bare = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for i, x in enumerate(rows):
            model.predict_one(x)
            model.learn_one(x, i % 2 == 0)
        middle = time.perf_counter()
        for x in rows:
            for name in x:
                table[name]
            for name in x:
                table[name]
        ours, bare = min(ours, middle - start), min(bare, time.perf_counter() - middle)
    return 1e6 * ours / len(rows), 1e6 * bare / len(rows)


def growth(large: int) -> None:
    print(f"{PRESENT} features present, {SMALL:,} -> {large:,} known; us an instance")
    for name, (params, limit) in FORMS.items():
        rng = np.random.default_rng(0)
        found = []
        for known in (SMALL, large):
            model, table = settled(params, known, rng)
            found.append(passes(model, table, instances(known, rng)))
        ours, bare = found[1][0] / found[0][0], found[1][1] / found[0][1]
        print(f"  {name:15} OLVF {found[0][0]:7.2f} -> {found[1][0]:7.2f} ({ours:.2f}x)", end="   ")
        print(f"dict loop {found[0][1]:6.2f} -> {found[1][1]:6.2f} ({bare:.2f}x)", end="   ")
        print(f"growth over the dict's: {ours / bare:.2f} (required: at most {limit})")
        held = {part: count / large for part, count in model.state_bytes().items()}
        numeric = held["seen"] + held["scaler"] + 16.0
        heap = held["model"] - 16.0 if params else 0.0
        print(f"  {'':15} bytes per feature: numeric {numeric:.1f} (at most 64), names {held['names']:.1f}", end="")
        print(f" and heap {heap:.1f}: {held['names'] + heap:.1f} (required: at most 40)", flush=True)


def imports() -> None:
    """Print import times, each the best of five new processes."""

    def seconds(module: str) -> float:
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        run = [sys.executable, "-c", code]
        return min(float(subprocess.run(run, capture_output=True, text=True, check=True).stdout) for _ in range(5))

    numpy, ours = seconds("numpy"), seconds("varifold")
    print(f"import numpy {numpy:.3f} s, varifold {ours:.3f} s: {ours - numpy:.3f} s over numpy's (required: below 0.3)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=1_000_000, help="features known in the end (default: 10^6)")
    imports()
    growth(parser.parse_args().features)


if __name__ == "__main__":
    main()

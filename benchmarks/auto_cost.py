"""Measure the cost of the default classifier: time per instance, size of a model file, time to dump and to save.

    python benchmarks/auto_cost.py

Instances are predicted, then learned, in blocks; CPU time, the fastest of `--rounds` rounds. Streams: spambase with
half of its values, and numbers drawn at random of which one per class is shifted. To compare two builds run the script
with both on one machine, in turns, and compare ratios.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import varifold
from varifold import streams

SIZES = (10, 100, 1000, 5000)


def shifted(features: int, classes: int, rows: int) -> Any:
    """Generate a block of random numbers; feature c is shifted in class c."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, rows)
    values = rng.normal(size=(rows, features))
    values[np.arange(rows), labels % features] += 2.0
    return varifold.to_block(values, labels.tolist())


def fastest(work: Callable[[], Any], rounds: int) -> float:
    """Return the CPU seconds of the fastest round."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def run(budget: str, block: Any) -> None:
    varifold.AutoClassifier(budget).predict_learn_many(block)


def print_times(rounds: int) -> None:
    """Print the time by stream and budget."""
    spambase = streams.prepare(varifold.datasets.load("spambase").block, "vfs:0.5", seed=0).block[:2500]
    blocks = {
        "spambase, half of the values": spambase,
        "100 features, 26 classes": shifted(100, 26, 600),
        "64 features, 10 classes": shifted(64, 10, 800),
    }
    print(f"{'us per instance':32} {'balanced':>10} {'fast':>10}")
    for name, block in blocks.items():
        us = [1e6 * fastest(lambda b=b, x=block: run(b, x), rounds) / len(block) for b in ("balanced", "fast")]
        print(f"{name:32} {us[0]:10.1f} {us[1]:10.1f}", flush=True)


def print_state(features: int) -> None:
    """Print the size of the file, and the time to write it, as the number of instances grows."""
    rng = np.random.default_rng(0)
    model = varifold.AutoClassifier()
    print(f"\n{f'instances of {features} features':32} {'file, KB':>10} {'dump, ms':>10} {'to_bytes':>10}")
    for step in range(1, SIZES[-1] + 1):
        values = rng.normal(size=features)
        model.learn_one({f"f{j}": float(v) for j, v in enumerate(values)}, bool(values[0] > 0))
        if step in SIZES:
            dump, save = (1e3 * fastest(work, 5) for work in (model._engine.dump, model.to_bytes))
            print(f"{step:32,} {len(model.to_bytes()) / 1e3:10.1f} {dump:10.2f} {save:10.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print_times(args.rounds)
    print_state(30)


if __name__ == "__main__":
    main()

"""Measure what the copula and the forest cost on wide streams, and on streams whose features are replaced permanently.

    python -m benchmarks.speed.wide [--rows 4000] [--only churn present]

``churn``: 30 features present of 60 that exist; in every fifth instance one of the 60 vanishes for ever and a new one
takes its place. Microseconds per instance in each quarter of the stream, and the error over the last half. ``present``:
every feature of 30, 125 and 500, and 500 of 2,000, present; microseconds per instance and nanoseconds per value. All
through blocks, processor time, learning alone.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from varifold import OLVF, ORF3V, OVFM, Block, to_block

ALIVE, HERE, REPLACED = 60, 30, 0.2


def churning(rows: int, seed: int = 0) -> Block:
    """Generate churning features; the label is the sign of a sum with a separate weight for every feature."""
    draw = np.random.default_rng(seed)
    alive, weight = list(range(ALIVE)), draw.normal(size=rows + ALIVE)
    latest = ALIVE
    instances, labels = [], []
    for _ in range(rows):
        if draw.random() < REPLACED:
            alive[int(draw.integers(ALIVE))] = latest
            latest += 1
        chosen = [alive[k] for k in draw.choice(ALIVE, HERE, replace=False)]
        values = draw.normal(size=HERE)
        instances.append({f"s{j}": float(x) for j, x in zip(chosen, values, strict=True)})
        labels.append(bool(values @ weight[chosen] > 0))
    return to_block(instances, labels)


def present(rows: int, here: int, known: int, seed: int = 0) -> Block:
    """Generate instances with `here` of `known` features present."""
    draw = np.random.default_rng(seed)
    weight = draw.normal(size=known)
    instances, labels = [], []
    for _ in range(rows):
        chosen = np.sort(draw.choice(known, here, replace=False))
        values = draw.normal(size=here)
        instances.append({f"s{j}": float(x) for j, x in zip(chosen, values, strict=True)})
        labels.append(bool(values @ weight[chosen] > 0))
    return to_block(instances, labels)


def taken(model: Any, block: Block) -> float:
    """Return microseconds per instance of learning a block."""
    start = time.process_time()
    model.learn_many(block)
    return 1e6 * (time.process_time() - start) / len(block)


def error(model: Any, block: Block) -> float:
    """Return the share of wrong predictions; predict each twentieth of the block before learning it."""
    wrong, step = 0, max(1, len(block) // 20)
    for a in range(0, len(block), step):
        part = block[a : a + step]
        wrong += sum(p != y for p, y in zip(model.predict_many(part), part.y, strict=True)) if model.steps else 0
        model.learn_many(part)
    return wrong / len(block)


def churn(rows: int) -> None:
    block, quarter = churning(rows), rows // 4
    print(f"churning: {HERE} present of {ALIVE}, {REPLACED} replaced an instance; us an instance by quarter\n")
    print("| | 1 | 2 | 3 | 4 | error |\n|---|---|---|---|---|---|")
    for name, make in {
        "OVFM": OVFM,
        "OVFM(max_dense=128)": lambda: OVFM(max_dense=128),
        "OVFM(max_dense=64)": lambda: OVFM(max_dense=64),
        "ORF3V": ORF3V,
        "OLVF": OLVF,
    }.items():
        model = make()
        cells = [f"{taken(model, block[a : a + quarter]):.1f}" for a in range(0, 4 * quarter, quarter)]
        print(f"| {name} | {' | '.join(cells)} | {error(make(), block):.3f} |", flush=True)


def width(rows: int) -> None:
    print("\nfeatures present of those known: us an instance (ns a value)\n")
    sizes = ((30, 30), (125, 125), (500, 500), (500, 2000))
    print("| | " + " | ".join(f"{here} of {known:,}" for here, known in sizes) + " |\n|---|" + "---|" * len(sizes))
    blocks = [present(rows, *size) for size in sizes]
    for make in (ORF3V, OLVF):
        cells = []
        for (here, _), block in zip(sizes, blocks, strict=True):
            model, half = make(), rows // 2
            model.learn_many(block[:half])
            us = taken(model, block[half:])
            cells.append(f"{us:.1f} ({1000 * us / here:.0f})")
        print(f"| {make.__name__} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--only", nargs="*", choices=["churn", "present"], default=["churn", "present"])
    args = parser.parse_args()
    if "churn" in args.only:
        churn(args.rows)
    if "present" in args.only:
        width(args.rows)


if __name__ == "__main__":
    main()

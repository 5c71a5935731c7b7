"""Measure the calibration of the default classifier on streams that had no part in choosing its calibration.

    VARIFOLD_DATA=... python benchmarks/auto_calibration.py [--seeds 0 1] [--sets wbc,splice]

The expected calibration error (ECE): predictions from the 20th instance on in ten bins by the probability of the
predicted label; mean distance between that probability and the share of right predictions, weighted by bin size.
Predict, then learn, at most 2,000 rows: generators of river and sets of river and scikit-learn that
`docs/decisions/0070` does not name for the calibration, and sets of the papers that it does not, complete, with half
of the values and with features that come late. Shown are error, log loss and ECE by stream, and their means.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from auto_ablation import cut
from auto_peers import STREAMS, Rows

from varifold import AutoClassifier, datasets, streams

GENERATED = [
    *(f"Agrawal {i}" for i in (0, 2, 3, 5, 6, 8, 9)),
    *("stagger", "waveform", "random blobs", "phishing", "bananas", "image segments"),
    *("breast_cancer", "digits", "iris", "wine", "pairs of categories", "xor of 2 in 10"),
]
SETS = "australian,wbc,wdbc,ionosphere,splice,dna,kr-vs-kp,a8a,adult,electricity,glioma,dropout,diabetes-risk,abalone"
SCENARIOS = ("none", "vfs:0.5", "trapezoidal")
FIRST, BINS, ROWS = 20, 10, 2000


def rows_of(block: Any) -> Rows:
    """Return the rows of a block as dicts, strings as strings."""
    names = block.vocabulary
    found = []
    for i in range(len(block)):
        part = slice(block.indptr[i], block.indptr[i + 1])
        x: dict[Any, Any] = {}
        for j, value in zip(block.indices[part].tolist(), block.values[part].tolist(), strict=True):
            if names.is_indicator(j):
                column, level = names.level_of(j)
                x[column] = level
            else:
                x[names.name_of(j)] = value
        found.append((x, block.labels.values[block.codes[i]]))
    return found


def streams_of(seed: int, sets: list[str]) -> Iterator[tuple[str, Rows]]:
    for name in GENERATED:
        yield name, STREAMS[name](seed)[:ROWS]
    for name in sets:
        found = cut(datasets.load(name), seed)
        for scenario in SCENARIOS:
            yield f"{name} {scenario}", rows_of(streams.prepare(found, scenario, seed=seed).block)


def judged(rows: Rows) -> tuple[float, float, float]:
    """Return error, log loss and ECE from the 20th instance on."""
    model = AutoClassifier()
    sure, right, loss = [], [], 0.0
    for step, (x, y) in enumerate(rows):
        answer = model.predict_proba_one(x)
        if step >= FIRST and answer:
            best = max(answer, key=lambda label: answer[label])
            sure.append(answer[best])
            right.append(best == y)
            loss -= math.log(max(answer.get(y, 0.0), 1e-6))
        model.learn_one(x, y)
    return 1.0 - float(np.mean(right)), loss / len(right), calibration_error(np.array(sure), np.array(right))


def calibration_error(sure: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> float:
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [abs(sure[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)]
    return float(np.sum(gaps))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sets", default=SETS, help="separated by commas; empty for none")
    args = parser.parse_args()
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in args.seeds:
        for name, rows in streams_of(seed, [s for s in args.sets.split(",") if s]):
            found.setdefault(name, []).append(judged(rows))
            if seed == args.seeds[-1]:
                print(f"{name:28}" + " ".join(f"{v:.4f}" for v in np.mean(found[name], axis=0)), flush=True)
    means = np.array([np.mean(values, axis=0) for values in found.values()])
    print(f"{'mean of ' + str(len(means)) + ' streams':28}" + " ".join(f"{v:.4f}" for v in means.mean(axis=0)))


if __name__ == "__main__":
    main()

"""Compare WindowForest with river's trees and LightGBM, on streams whose label depends on several features together.

    python benchmarks/window_forest.py --seeds 2

Predict, then learn, one instance at a time. Prints the error in % (in brackets that of the last quarter) and the CPU
time an instance in microseconds, both averaged over the seeds. The boosted trees are fitted again every 500 rows on all
rows so far, strings as codes: LightGBM when it is installed, otherwise scikit-learn's histogram gradient boosting.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from river import forest, tree
from river.datasets import ImageSegments, synth

import varifold

Rows = list[tuple[dict[str, Any], Any]]
REFIT = 500


def random_tree(n: int, seed: int) -> Rows:
    rows = synth.RandomTree(seed_tree=seed, seed_sample=seed).take(n)
    return [({k: f"v{v}" if "cat" in k else v for k, v in x.items()}, y) for x, y in rows]


def agrawal(n: int, seed: int) -> Rows:
    return list(synth.Agrawal(classification_function=2 + seed % 8, seed=seed).take(n))


def exclusive_or(n: int, seed: int) -> Rows:
    """Generate the exclusive or of two among ten numbers."""
    rng = random.Random(seed)
    rows = [{f"f{i}": rng.gauss(0.0, 1.0) for i in range(10)} for _ in range(n)]
    return [(x, (x["f0"] > 0) != (x["f1"] > 0)) for x in rows]


def category_pairs(n: int, seed: int) -> Rows:
    """Generate labels that depend on two of five columns with six levels; 5 % of the labels are wrong."""
    rng = random.Random(seed)
    truth = {(a, b): rng.random() < 0.5 for a in "uvwxyz" for b in "uvwxyz"}
    rows = [{f"c{i}": rng.choice("uvwxyz") for i in range(5)} for _ in range(n)]
    return [(x, truth[x["c0"], x["c1"]] != (rng.random() < 0.05)) for x in rows]


def segments(n: int, seed: int) -> Rows:
    rows = list(ImageSegments())
    random.Random(seed).shuffle(rows)
    return rows[:n]


def flips(n: int, seed: int) -> Rows:
    """Generate river's Sine stream with another rule in each quarter."""
    parts = [synth.Sine(classification_function=k, seed=seed + k).take(n // 4) for k in range(4)]
    return [row for part in parts for row in part]


def half_absent(n: int, seed: int) -> Rows:
    """Return the image segments with every value absent half of the time."""
    rng = random.Random(seed)
    return [({k: v for k, v in x.items() if rng.random() < 0.5}, y) for x, y in segments(n, seed)]


STREAMS: dict[str, tuple[Callable[[int, int], Rows], int]] = {
    "random tree": (random_tree, 4000),
    "random tree, long": (random_tree, 20_000),
    "Agrawal": (agrawal, 4000),
    "xor of 2 in 10": (exclusive_or, 4000),
    "pairs of categories": (category_pairs, 4000),
    "image segments": (segments, 2310),
    "segments, half absent": (half_absent, 2310),
    "sine, 3 drifts": (flips, 4000),
}


class Boosted:
    """Gradient boosted trees, refitted every 500 rows on all rows so far; before that the most frequent label."""

    def __init__(self) -> None:
        self.columns: dict[str, int] = {}
        self.codes: dict[Any, int] = {}
        self.rows: list[list[float]] = []
        self.y: list[Any] = []
        self.fitted: Any = None

    def values(self, x: dict[str, Any]) -> list[float]:
        row = [np.nan] * 64
        for name, value in x.items():
            at = self.columns.setdefault(name, len(self.columns))
            row[at] = self.codes.setdefault((name, value), len(self.codes)) if isinstance(value, str) else value
        return row

    def predict_one(self, x: dict[str, Any]) -> Any:
        if self.fitted is None:
            return max(set(self.y), key=self.y.count) if self.y else None
        return self.fitted.predict(np.array([self.values(x)]))[0]

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        self.rows.append(self.values(x))
        self.y.append(y)
        if len(self.y) % REFIT == 0:
            self.fitted = booster().fit(np.array(self.rows), np.array(self.y))


def booster() -> Any:
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier()
    return LGBMClassifier(verbose=-1, n_jobs=1)


LEARNERS: dict[str, Callable[[], Any]] = {
    "windowforest": varifold.WindowForest,
    "window=2000": lambda: varifold.WindowForest(window=2000),
    "trees=30": lambda: varifold.WindowForest(trees=30),
    "river ARF": lambda: forest.ARFClassifier(n_models=10, seed=1),
    "river HAT": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "boosted": Boosted,
}


def run(learner: Any, rows: Rows) -> tuple[float, float, float]:
    """Return the error, the error of the last quarter, and CPU seconds per instance."""
    wrong = np.zeros(len(rows), dtype=bool)
    start = time.process_time()
    for t, (x, y) in enumerate(rows):
        wrong[t] = learner.predict_one(x) != y
        learner.learn_one(x, y)
    spent = time.process_time() - start
    return float(wrong.mean()), float(wrong[-(len(rows) // 4) :].mean()), spent / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=11, help="1 to 9 were looked at while settings were chosen")
    parser.add_argument("--learners", default=",".join(LEARNERS), help="separated by commas")
    parser.add_argument("--streams", default="", help="separated by semicolons; all when empty")
    args = parser.parse_args()
    names = args.learners.split(",")
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    print(f"{'':22}", *(f"{name:>21}" for name in names))
    for stream in args.streams.split(";") if args.streams else STREAMS:
        make, n = STREAMS[stream]
        found = np.array([[run(LEARNERS[name](), make(n, seed)) for name in names] for seed in seeds])
        cells = [f"{100 * e:.1f} ({100 * q:.1f}) {1e6 * s:,.0f} us" for e, q, s in found.mean(axis=0)]
        print(f"{stream:22}", *(f"{cell:>21}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

"""Measure microseconds per instance, predicted and learned as dicts: the default learner compared with river's.

    python benchmarks/auto_speed.py

57 features, 28 present. Required: `balanced` at least 5 times as fast as ARF with 10 trees, `fast` no slower than
logistic regression behind a scaler. Every learner runs in turn, in the same process; the fastest of three rounds is
shown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from river import compose, forest, linear_model, preprocessing

import varifold

LEARNERS: dict[str, Callable[[], Any]] = {
    "auto fast": lambda: varifold.AutoClassifier(budget="fast"),
    "auto balanced": varifold.AutoClassifier,
    "auto best": lambda: varifold.AutoClassifier(budget="best"),
    "river StandardScaler + LogisticRegression": lambda: compose.Pipeline(
        preprocessing.StandardScaler(), linear_model.LogisticRegression()
    ),
    "river ARF(10)": lambda: forest.ARFClassifier(n_models=10, seed=1),
}


def made(rows: int) -> list[tuple[dict[str, float], bool]]:
    rng = np.random.default_rng(0)
    out = []
    for _ in range(rows):
        values = rng.normal(size=57)
        present = rng.permutation(57)[:28]
        out.append(({f"f{j}": float(values[j]) for j in present}, bool(values[0] + values[1] ** 2 > 1.0)))
    return out


def seconds(learner: Any, stream: list[tuple[dict[str, float], bool]]) -> float:
    start = time.perf_counter()
    for x, y in stream:
        learner.predict_one(x)
        learner.learn_one(x, y)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    args = parser.parse_args()
    stream = made(args.rows)
    best = {name: min(seconds(make(), stream) for _ in range(3)) / args.rows * 1e6 for name, make in LEARNERS.items()}
    for name, us in best.items():
        print(f"{name:45} {us:9.1f} us")
    arf, lr = best["river ARF(10)"], best["river StandardScaler + LogisticRegression"]
    print(f"balanced: {arf / best['auto balanced']:.1f} times as fast as ARF(10) (required: 5)")
    print(f"fast: {lr / best['auto fast']:.1f} times as fast as logistic regression (required: 1)")


if __name__ == "__main__":
    main()

"""Compare our regressors with river's and a refit LightGBM, on streams whose features come and go.

    python -m benchmarks.regressors [--seeds 0 1 2] [--rows 2000] [--only auto,LR,...] [--cells FILE]

Predict, then learn, one instance at a time; mean absolute error of every instance but the first. Prints a Markdown
table, the average rank, and how far `AutoRegressor` is behind the best peer. With `--cells` errors are kept in a JSON
file, one per learner, stream and seed, and only those that it does not hold are measured.

Streams: abalone (rings as a number; needs VARIFOLD_DATA), scikit-learn's diabetes, river's TrumpApproval, ChickWeights,
Friedman and FriedmanDrift, and the plant of the demo with a number to predict; each as it is and under five scenarios.
LightGBM is fitted again every 500 rows, river's learners get strings as numbers.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from river import datasets, forest, linear_model, neighbors, preprocessing, rules, tree
from scipy.stats import rankdata

import varifold
from varifold import streams

Rows = list[tuple[dict[str, float], float]]
SCENARIOS = ("none", "vfs:0.25", "vfs:0.5", "vfs:0.75", "trapezoidal", "outage")
REFIT = 500

# ---------------------------------------------------------------- streams


def abalone(seed: int) -> Rows:
    path = Path(os.environ["VARIFOLD_DATA"]) / "abalone" / "abalone.data"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    order = np.random.default_rng(seed).permutation(len(rows))
    found = ((rows[i][0], [float(v) for v in rows[i][1:]]) for i in order)
    return [({"sex": float("MFI".index(s)), **{f"v{j}": v for j, v in enumerate(n[:-1])}}, n[-1]) for s, n in found]


def diabetes(seed: int) -> Rows:
    from sklearn.datasets import load_diabetes

    data = load_diabetes()
    order = np.random.default_rng(seed).permutation(len(data.data))
    return [({f"v{j}": float(v) for j, v in enumerate(data.data[i])}, float(data.target[i])) for i in order]


def plant(seed: int) -> Rows:
    """Generate a plant whose target is the scaled mean of all sensors plus noise, like a laboratory measurement."""
    from varifold.cli.sensors import plant as make

    made = make(n=3000, seed=seed)
    z = (made.readings - np.nanmean(made.readings, axis=0)) / np.nanstd(made.readings, axis=0)
    noise = np.random.default_rng(seed).normal(0.0, 0.5, len(z))
    return list(zip(made.rows(), (50.0 + 8.0 * np.nanmean(z, axis=1) + noise).tolist(), strict=True))


STREAMS: dict[str, Callable[[int], Rows]] = {
    "abalone": abalone,
    "diabetes": diabetes,
    "TrumpApproval": lambda _: [(dict(x), y) for x, y in datasets.TrumpApproval()],
    "ChickWeights": lambda _: [({k: float(v) for k, v in x.items()}, float(y)) for x, y in datasets.ChickWeights()],
    "Friedman": lambda seed: list(datasets.synth.Friedman(seed=seed).take(3000)),
    "FriedmanDrift": lambda seed: list(datasets.synth.FriedmanDrift("gra", position=(700, 1400), seed=seed).take(3000)),
    "plant": plant,
}


def stream(name: str, scenario: str, seed: int, rows: int) -> Rows:
    made = STREAMS[name](seed)[:rows]
    block = varifold.to_block([x for x, _ in made], [y for _, y in made], numeric=True)
    varied = streams.prepare(block, scenario, seed=seed, shuffle=False).block
    return list(zip(varied.rows(), varied.targets.tolist(), strict=True))


# ---------------------------------------------------------------- learners


class Boosted:
    """LightGBM, refitted every 500 rows; the mean before that."""

    def __init__(self) -> None:
        self.columns: dict[str, int] = {}
        self.rows: list[list[float]] = []
        self.y: list[float] = []
        self.fitted: Any = None

    def values(self, x: dict[str, float]) -> list[float]:
        row = [math.nan] * 64
        for name, value in x.items():
            row[self.columns.setdefault(name, len(self.columns))] = value
        return row

    def predict_one(self, x: dict[str, float]) -> float:
        if self.fitted is None:
            return float(np.mean(self.y)) if self.y else 0.0
        return float(self.fitted.predict(np.array([self.values(x)]))[0])

    def learn_one(self, x: dict[str, float], y: float) -> None:
        from lightgbm import LGBMRegressor

        self.rows.append(self.values(x))
        self.y.append(y)
        if len(self.y) % REFIT == 0:
            self.fitted = LGBMRegressor(verbose=-1, n_jobs=1).fit(np.array(self.rows), self.y).booster_


LEARNERS: dict[str, Callable[[], Any]] = {
    "auto": varifold.AutoRegressor,
    "arow": varifold.AROWRegressor,
    "additive": varifold.AdditiveRegressor,
    "olvf": varifold.OLVFRegressor,
    "neighbours": varifold.NeighboursRegressor,
    "forest": varifold.WindowForestRegressor,
    "copula": varifold.CopulaRegressor,
    "fesl": varifold.FESLRegressor,
    "LR": lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
    "KNN": lambda: preprocessing.StandardScaler() | neighbors.KNNRegressor(),
    "HTR": tree.HoeffdingTreeRegressor,
    "AMRules": rules.AMRules,
    "ARF": lambda: forest.ARFRegressor(seed=1),
    "LightGBM": Boosted,
}
PEERS = ("LR", "KNN", "HTR", "AMRules", "ARF", "LightGBM")


def error(learner: Any, rows: Rows) -> float:
    """Return the mean absolute error; NaN if the learner does not accept the stream."""
    total = 0.0
    for step, (x, y) in enumerate(rows):
        try:
            prediction = learner.predict_one(x)
            learner.learn_one(x, y)
        except (ValueError, KeyError, TypeError, ZeroDivisionError, IndexError, AttributeError):
            return math.nan
        total += abs(prediction - y) if step else 0.0
    return total / max(1, len(rows) - 1)


def cell(name: str, data: str, scenario: str, seed: int, rows: int, held: dict[str, float]) -> float:
    """Return the error of a learner on one stream; measure it unless it is cached."""
    key = f"{name} | {data} {scenario} | seed {seed} | {rows} rows"
    if key not in held:
        held[key] = error(LEARNERS[name](), stream(data, scenario, seed, rows))
    return held[key]


def table(names: list[str], seeds: list[int], rows: int, held: dict[str, float], keep: Callable[[], None]) -> None:
    """Print a line per stream, then the average ranks and where `AutoRegressor` is furthest behind."""
    ranks, behind = [], collections.Counter[str]()
    print("| stream | " + " | ".join(names) + " | auto to the best peer |")
    print("| --- |" + " ---: |" * (len(names) + 1))
    for data, scenario in itertools.product(STREAMS, SCENARIOS):
        cells = [[cell(name, data, scenario, seed, rows, held) for name in names] for seed in seeds]
        keep()
        means = np.mean(cells, axis=0)
        ranks.append(rankdata(np.where(np.isnan(means), np.inf, means)))
        line = f"| {data}, {scenario} | " + " | ".join(f"{m:.4g}" for m in means)
        others = [m for name, m in zip(names, means, strict=True) if name in PEERS and m == m]
        if "auto" in names and others:
            behind[f"{data}, {scenario}"] = means[names.index("auto")] / min(others) - 1.0
            line += f" | {behind[f'{data}, {scenario}']:+.1%}"
        print(line + " |", flush=True)
    print("| *average rank* | " + " | ".join(f"{r:.2f}" for r in np.mean(ranks, axis=0)) + " | |")
    worst = sorted(behind.items(), key=lambda item: -item[1])[:5]
    print("\nAutoRegressor furthest behind the best peer: " + "; ".join(f"{name} {lead:+.1%}" for name, lead in worst))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--only", default=",".join(LEARNERS), help="learners to compare, separated by commas")
    parser.add_argument("--cells", type=Path, help="a JSON file of errors measured so far, which is added to")
    args = parser.parse_args()
    held = json.loads(args.cells.read_text()) if args.cells and args.cells.exists() else {}

    def keep() -> None:
        if args.cells:
            args.cells.write_text(json.dumps(held, indent=0))

    table(args.only.split(","), args.seeds, args.rows, held, keep)


if __name__ == "__main__":
    main()

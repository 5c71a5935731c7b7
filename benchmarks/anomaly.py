"""Anomaly detectors on the sets of ADBench: ours, those of river, rcf3 and pysad online, three offline as a ceiling.

    VARIFOLD_DATA=... python -m benchmarks.anomaly [--rows 3000] [--seeds 0,1,2] [--only NAME,...] [--json FILE]

Each set is shuffled and cut to --rows, with at least 20 anomalies; the scenarios are complete data, half of the values,
groups of columns that fall silent for stretches of 100 rows, and columns born on the way. Every row is scored, then
learned; the figure is the AUROC over all rows. Offline methods see all rows first, with means for absent values. Peers
that are not installed are left out. The time is CPU time per row, scoring and learning.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import varifold
from varifold.evaluate import detection_scores

Matrix = NDArray[np.float64]
SCENARIOS = ("complete", "half", "groups", "born")


def data_set(path: Path, seed: int, rows: int, least: int = 20) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return shuffled rows and which of them are anomalies."""
    with np.load(path) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(bool)
    rng = np.random.default_rng([seed, sum(map(ord, path.stem))])
    kept = np.arange(len(X))
    if len(X) > rows:
        odd, usual = np.flatnonzero(y), np.flatnonzero(~y)
        k = min(len(odd), max(least, round(rows * len(odd) / len(X))))
        kept = np.concatenate([rng.choice(odd, k, replace=False), rng.choice(usual, rows - k, replace=False)])
    kept = rng.permutation(kept)
    return X[kept], y[kept]


def varied(X: Matrix, scenario: str, seed: int) -> Matrix:
    """Return the matrix with NaN where the scenario makes a value absent."""
    rng = np.random.default_rng([seed, 7])
    X = X.copy()
    n, p = X.shape
    if scenario == "half":
        X[rng.random((n, p)) < 0.5] = np.nan
    elif scenario == "groups":
        count = min(p, 4)
        group = rng.permutation(p) % count
        for start in range(0, n, 100):
            silent = rng.random(count) < 0.4
            if silent.all():
                silent[rng.integers(count)] = False
            X[start : start + 100, silent[group]] = np.nan
    elif scenario == "born":
        order, first = rng.permutation(p), max(1, p // 3)
        for rank, j in enumerate(order[first:]):
            X[: int(0.75 * n * (rank + 1) / (p - first)), j] = np.nan
    return X


def ours(name: str) -> Callable[[Matrix, int], Matrix]:
    """Return a run of a detector of the library."""

    def run(X: Matrix, seed: int) -> Matrix:
        model: Any = varifold.detectors[name]()
        model = model.clone({"seed": seed}) if hasattr(model, "seed") else model
        scores: Matrix = model.run_block(varifold.to_block(X))[0]
        return scores

    return run


def dicts(X: Matrix) -> Iterator[dict[str, float]]:
    """Yield the present values of each row by name."""
    for row in X:
        yield {f"f{j}": float(v) for j, v in enumerate(row) if v == v}


def of_river(make: Callable[[int], Any]) -> Callable[[Matrix, int], Matrix]:
    """Return a run of a detector of river, which gets the features that are present."""

    def run(X: Matrix, seed: int) -> Matrix:
        model = make(seed)
        scores = []
        for x in dicts(X):
            scores.append(float(model.score_one(x)) if x else 0.0)
            if x:
                model.learn_one(x)
        return np.nan_to_num(np.array(scores))

    return run


def feature_sketch(X: Matrix, seed: int) -> Matrix:
    """Run rcf3's detector for features that come and go."""
    import rcf3

    model = rcf3.FeatureSketch(seed=seed)
    return np.array([model.update_and_score(x) if x else 0.0 for x in dicts(X)])


def pysad_xstream(X: Matrix, seed: int) -> Matrix:
    """Run pysad's xStream by position, zeros for absent values."""
    from pysad.models import xStream

    model = xStream(random_state=seed)
    return np.array([float(model.fit_score_partial(row)) for row in np.nan_to_num(X)])


def filled(X: Matrix) -> Matrix:
    """Replace absent values by the means of their columns."""
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def isolation_forest(X: Matrix, seed: int) -> Matrix:
    """Fit scikit-learn's isolation forest to all rows."""
    from sklearn.ensemble import IsolationForest

    X = filled(X)
    return np.asarray(-IsolationForest(random_state=seed).fit(X).score_samples(X))


def tails(X: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return minus the logarithms of both tails, and of the tail to which a column is skewed."""
    X = filled(X)
    n = len(X)
    left, right = np.empty_like(X), np.empty_like(X)
    for j, column in enumerate(X.T):
        values = np.sort(column)
        left[:, j] = -np.log(np.searchsorted(values, column, "right") / n)
        right[:, j] = -np.log((n - np.searchsorted(values, column, "left")) / n)
    centred = X - X.mean(axis=0)
    return left, right, np.where((centred**3).mean(axis=0) < 0, left, right)


def ecod(X: Matrix, seed: int) -> Matrix:
    """Return the largest of the sums of left, right and skewed tails (Li et al. 2022)."""
    return np.asarray(np.max([part.sum(axis=1) for part in tails(X)], axis=0))


def copod(X: Matrix, seed: int) -> Matrix:
    """Return the sum over columns of the larger of the mean of both tails and the skewed tail (Li et al. 2020)."""
    left, right, skewed = tails(X)
    return np.asarray(np.maximum((left + right) / 2, skewed).sum(axis=1))


def methods() -> dict[str, Callable[[Matrix, int], Matrix]]:
    """Return every method that is installed, by name."""
    from river import anomaly, compose, preprocessing

    found: dict[str, Any] = {name: ours(name) for name in varifold.detectors}
    found["river HalfSpaceTrees"] = of_river(
        lambda seed: compose.Pipeline(preprocessing.MinMaxScaler(), anomaly.HalfSpaceTrees(seed=seed))
    )
    found["river LODA"] = of_river(
        lambda seed: compose.Pipeline(preprocessing.StandardScaler(), anomaly.LODA(seed=seed))
    )
    found["river OneClassSVM"] = of_river(
        lambda seed: compose.Pipeline(preprocessing.StandardScaler(), anomaly.OneClassSVM())
    )
    if importlib.util.find_spec("rcf3"):
        found["rcf3 FeatureSketch"] = feature_sketch
    if importlib.util.find_spec("pysad"):
        found["pysad xStream"] = pysad_xstream
    return {**found, "offline isolation forest": isolation_forest, "offline ECOD": ecod, "offline COPOD": copod}


def main() -> None:
    """Run and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--only", help="methods, separated by commas")
    parser.add_argument("--json", help="file for the AUROC of every cell")
    args = parser.parse_args()
    seeds = [int(seed) for seed in args.seeds.split(",")]
    runs = {name: run for name, run in methods().items() if args.only is None or name in args.only.split(",")}
    paths = sorted((Path(os.environ["VARIFOLD_DATA"]) / "anomaly").glob("*.npz"))
    areas: dict[str, dict[str, dict[str, float]]] = {name: {s: {} for s in SCENARIOS} for name in runs}
    seconds = dict.fromkeys(runs, 0.0)
    rows = 0
    for path in paths:
        for scenario in SCENARIOS:
            found: dict[str, list[float]] = {name: [] for name in runs}
            for seed in seeds:
                X, y = data_set(path, seed, args.rows)
                X = varied(X, scenario, seed)
                rows += len(X)
                for name, run in runs.items():
                    start = time.process_time()
                    scores = run(X, seed)
                    seconds[name] += time.process_time() - start
                    found[name].append(detection_scores(scores, y, np.zeros(len(y))).auroc)
            for name, values in found.items():
                areas[name][scenario][path.stem] = float(np.mean(values))
        print(path.stem, flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps({"areas": areas, "seconds": seconds, "rows": rows}, indent=1))
    print("\n| | " + " | ".join(SCENARIOS) + " | us per row |\n|---|" + "---|" * 5)
    for name, by_scenario in areas.items():
        cells = " | ".join(f"{np.mean(list(by_scenario[s].values())):.3f}" for s in SCENARIOS)
        print(f"| {name} | {cells} | {1e6 * seconds[name] / rows:.0f} |")


if __name__ == "__main__":
    main()

"""Rates of alarms on normal data: overall, in an outage of a group of columns and after births of columns.

    VARIFOLD_DATA=... python -m benchmarks.alarms [--seeds 0,1] [--rows 12000]

The normal rows of the larger sets of ADBench, shuffled. A third of the columns is silent for a sixth of the stream,
another third is born at two thirds of it. Every row is scored by `AutoDetector`, then learned; a row is an alarm if its
p-value is at most the rate. The table has the smallest and the largest share of alarms over any 5,000 rows after the
first 1,000, in rates; the shares within the outage and in as many rows after the births; and the events of the monitor
at the outage.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import varifold
from varifold.monitor import Monitor

SETS = ("campaign", "http", "magic.gamma", "mammography", "shuttle", "smtp")
RATES = (0.01, 0.05)


def normal_rows(path: Path, seed: int, rows: int) -> NDArray[np.float64]:
    """Return shuffled normal rows of a set, with an outage and births; NaN is absent."""
    with np.load(path) as file:
        X = file["X"][file["y"] == 0].astype(np.float64)
    rng = np.random.default_rng([seed, 31])
    X = X[rng.permutation(len(X))[:rows]]
    n, p = X.shape
    order = rng.permutation(p)
    X[n // 3 : n // 2, order[: p // 3]] = np.nan
    X[: 2 * n // 3, order[p // 3 : 2 * (p // 3)]] = np.nan
    return X


def shares(alarms: NDArray[np.bool_], n: int) -> tuple[float, float, float, float]:
    """Return the smallest and largest share over any 5,000 rows, that in the outage and that after the births."""
    totals = np.cumsum(np.concatenate([[0], alarms]))
    windows = (totals[6000:] - totals[1000:-5000]) / 5000
    born = 2 * n // 3
    return windows.min(), windows.max(), alarms[n // 3 : n // 2].mean(), alarms[born : born + n // 6].mean()


def events(X: NDArray[np.float64]) -> tuple[int, int]:
    """Return how many columns the monitor reports as silent in the outage, and the number of events."""
    monitor = Monitor()
    n = len(X)
    monitor.learn_many(varifold.to_block(X))
    monitor.check()
    silent = [e for e in monitor.events if e.kind == "silence" and n // 3 - 200 <= e.step <= n // 2]
    return len({name for e in silent for name in e.features}), len(silent)


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--seeds", default="0,1")
    args = parser.parse_args()
    folder = Path(os.environ["VARIFOLD_DATA"]) / "anomaly"
    print("| set, seed | rate | any 5,000 rows | outage | after births | silent columns, events |")
    print("|---|---|---|---|---|---|")
    for name in SETS:
        for seed in map(int, args.seeds.split(",")):
            X = normal_rows(folder / f"{name}.npz", seed, args.rows)
            _, p = varifold.AutoDetector(seed=seed).run_block(varifold.to_block(X))
            columns, reports = events(X)
            for rate in RATES:
                low, high, outage, born = (share / rate for share in shares(p <= rate, len(X)))
                print(
                    f"| {name}, {seed} | {rate} | {low:.2f} to {high:.2f} | {outage:.2f} | {born:.2f} "
                    f"| {columns}, {reports} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

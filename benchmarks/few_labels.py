"""Compare learning from unlabelled instances with ignoring them, where few labels arrive.

    python -m benchmarks.few_labels [--shares 0.01 0.05 0.1] [--seeds 10 11 12 13 14] [--rows 2000] [--out FILE.csv]

Every instance is predicted and scored; the labels of a share of them, drawn at random, are learned. Prints the error by
stream of both, their difference with its standard error over the seeds, and the mean relative difference. Data sets of
the papers with half of the values absent, some with columns that come over time, natural streams, and drift. Choices
were made with `--development`: other seeds, and without the sets that only the table has.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from time import process_time

import numpy as np

import varifold
from benchmarks.defaults.streams import icu, labelled, registered
from varifold import Block, streams
from varifold.evaluate import prequential

Make = Callable[[int], Block]
DEVELOPMENT = ("spambase", "wdbc", "magic04", "a8a", "svmguide3", "kr-vs-kp", "german", "splice-3class", "frogs")
NATURAL = ("weather", "nhanes", "icu", "football")
ONLY_REPORTED = (
    *("ionosphere", "australian", "wbc", "wpbc", "dna", "diabetes", "credit-a", "dropout", "drybean"),
    *("abalone", "adult", "glioma", "ipd", "electricity-5000"),
)


def drifting(kind: str) -> Callable[[int], Make]:
    """Return a generator of eight numbers, each present in 70 % of the rows, whose classes change over time."""

    def of_rows(rows: int) -> Make:
        return lambda seed: _drifting(kind, rows, seed)

    return of_rows


def _drifting(kind: str, n: int, seed: int) -> Block:
    rng = np.random.default_rng(seed)
    X, time = rng.normal(size=(n, 8)), np.arange(n) / n
    if kind == "hyperplane":  # turns abruptly after every quarter
        y = (X * rng.normal(size=(4, 8))[(4 * time).astype(int)]).sum(axis=1) + 0.3 * rng.normal(size=n) > 0
    elif kind == "blobs":  # three classes that move together
        y = rng.integers(0, 3, n)
        X += 1.2 * rng.normal(size=(3, 8))[y] + 2.0 * time[:, None]
    else:  # twelve clusters of three classes, which stay
        centre = rng.integers(0, 12, n)
        X = 2.0 * rng.normal(size=(12, 8))[centre] + 0.5 * X
        y = rng.integers(0, 3, 12)[centre]
    there = rng.random((n, 8)) < 0.7
    rows = [{f"f{j}": float(X[i, j]) for j in range(8) if there[i, j]} for i in range(n)]
    return varifold.to_block(rows, [str(label) for label in y])


def stream_makers(rows: int, development: bool) -> dict[str, Make]:
    """Return the streams by name."""
    names = DEVELOPMENT if development else (*DEVELOPMENT, *ONLY_REPORTED)
    found = {name: registered(name, "vfs:0.5", rows) for name in names}
    for name in ("spambase", "magic04", "frogs"):
        found[f"{name}, trapezoidal"] = registered(name, "trapezoidal", rows)
    if development:
        found["icu"] = icu(rows)  # of its 8,000 patients no five other parts are left for the report
    found["weather"] = lambda part: labelled("weather_aus", "RainTomorrow", ("Date",), rows, 20_000 * part, 5)
    found["nhanes"] = lambda part: labelled("nhanes", "Diabetes", ("ID", "DiabetesAge"), rows, 3_000 * part)
    found["football"] = lambda part: labelled("football_odds", "FTR", ("date",), rows, 7_000 * part, 2)
    return found | {kind: drifting(kind)(rows) for kind in ("hyperplane", "blobs", "clusters")}


def run(
    makers: dict[str, Make], shares: list[float], seeds: list[int], first: int
) -> Iterator[tuple[str, float, int, str, float]]:
    """Yield (stream, share, seed, variant, error); of natural streams the parts from number `first` on are used."""
    for name, make in makers.items():
        natural = name in NATURAL
        for number, seed in enumerate(seeds):
            block = make(number + first if natural else seed)
            for share in shares:
                prepared = streams.prepare(block, f"labels:{share}", seed=seed, shuffle=False)
                for variant in ("ignore", "learn"):
                    result = prequential(varifold.AutoClassifier(unlabelled=variant), prepared)
                    yield name, share, seed, variant, result.cer


def report(rows: list[tuple[str, float, int, str, float]]) -> None:
    """Print the tables."""
    table = {(name, share, seed, variant): error for name, share, seed, variant, error in rows}
    seeds = sorted({seed for _, _, seed, _, _ in rows})
    for share in sorted({share for _, share, _, _, _ in rows}):
        print(f"\n{share:.0%} of the labels\n\n| stream | ignored | learned | difference | standard error |")
        print("| --- | ---: | ---: | ---: | ---: |")
        relative = []
        for name in dict.fromkeys(name for name, *_ in rows):
            by = {v: 100 * np.array([table[name, share, s, v] for s in seeds]) for v in ("ignore", "learn")}
            gap = by["learn"] - by["ignore"]
            relative.append(by["learn"].mean() / by["ignore"].mean() - 1.0)
            error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
            print(
                f"| {name} | {by['ignore'].mean():.1f} | {by['learn'].mean():.1f} | {gap.mean():+.2f} | {error:.2f} |"
            )
        spread = np.std(relative, ddof=1) / np.sqrt(len(relative))
        print(
            f"\nmean relative difference {100 * np.mean(relative):+.1f} % (standard error {100 * spread:.1f})",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--development", action="store_true", help="the streams and seeds that choices were made with")
    parser.add_argument("--streams", help="only these, separated by semicolons")
    parser.add_argument("--out", type=Path, help="write every error to this CSV file")
    args = parser.parse_args()
    seeds = args.seeds or ([0, 1] if args.development else [10, 11, 12, 13, 14])
    makers = stream_makers(args.rows, args.development)
    if args.streams:
        makers = {name: makers[name] for name in args.streams.split(";")}
    started = process_time()
    rows = []
    with args.out.open("w", newline="") if args.out else nullcontext() as file:
        for row in run(makers, args.shares, seeds, 0 if args.development else 1):
            rows.append(row)
            if file is not None:
                csv.writer(file).writerow(row)
                file.flush()
    report(rows)
    print(f"{process_time() - started:.0f} s of CPU time")


if __name__ == "__main__":
    main()

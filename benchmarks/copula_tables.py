"""Compare the copula family with published figures, and measure its cost.

    python benchmarks/copula_tables.py table2 [--published ovfm_table2.csv] [--repeats 10] [--sets german,wdbc]
    python benchmarks/copula_tables.py ovfiv --published ovfiv_table2.csv [--repeats 3]
    python benchmarks/copula_tables.py speed [--peer openmoa=PYTHON] [--peer gcimpute=PYTHON]
    python benchmarks/copula_tables.py imputation [--peer gcimpute=PYTHON] [--sets german]
    python benchmarks/copula_tables.py recovery [--out FILE.png] | imdb

``table2``: OVFM, OVFM-L and the raw learner alone on the streams of the OVFM paper. ``ovfiv``: the same on those of the
OVFIV paper. ``speed``: instances per second, half absent. ``imputation``: error compared with mean and mode. ``--peer``
runs another library on the same rows in the same run, with a Python that has it (``speed/copula_peers.py``).
``recovery``: distance to a known correlation as instances arrive. ``imdb``: 7,500 words. The data sets are read from
the folder that VARIFOLD_DATA names.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import varifold
from varifold import datasets, streams
from varifold.copula import CopulaImputer
from varifold.report.style import BLUE, GREY, ORANGE, pyplot, quiet, write

SMALL = ("ionosphere", "wdbc", "australian", "credit-a", "wbc", "diabetes", "dna", "german", "synthetic")
SETS = (*SMALL, "splice", "kr-vs-kp", "magic04", "a8a")
SCENARIOS = {"trapezoidal": "mixed+trapezoidal:chunks=5", "capricious": "mixed+capricious:mode=pairs"}
METHODS = {
    "OVFM": lambda: varifold.OVFM(),
    "OVFM-L": lambda: varifold.OVFM(latent_only=True),
    "raw half": lambda: varifold.AROW(),
}
# names of the OVFIV paper that differ from the registry's
OVFIV_SETS = {"adult": "adult-5000", "electricity": "electricity-5000", "credit-a": "credit-a-complete"}
KINDS = ("continuous", "mixed")
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
OVFIV_SCENARIOS = {"informative": "balanced+informative", "non-informative": "balanced+uninformative"}


def published(path: str | None, method: str) -> dict[tuple[str, str], float]:
    if path is None:
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["method"] == method and r["mean"]]
    return {(r["setting"], r["dataset"]): float(r["mean"]) for r in rows}


def error(learner: varifold.VaryingClassifier, block: varifold.Block) -> float:
    codes, _ = learner.run_block(block)
    known = {label: i for i, label in enumerate(block.labels.values)}
    predicted = np.array([known[label] for label in learner.classes])[np.maximum(codes, 0)]
    return float((predicted != block.codes).mean())


def compare(sets: dict[str, str], scenarios: dict[str, str], repeats: int, paper: dict[tuple[str, str], float]) -> None:
    """Print a line per cell; prepare the data set, not its block, since `mixed` converts only its authors' columns.

    The gain is the raw half's error minus OVFM's, with the standard error of the mean.
    """
    print(
        f"{'set':14}{'scenario':17}" + "".join(f"{m:>16}" for m in METHODS) + f"{'gain':>16}{'published':>11}{'off':>8}"
    )
    reached, gains = [], []
    for shown, name in sets.items():
        data = datasets.load(name)
        for setting, scenario in scenarios.items():
            errors = {m: [] for m in METHODS}
            for seed in range(repeats):
                prepared = streams.prepare(data, scenario, seed=seed)
                for m, make in METHODS.items():
                    errors[m].append(error(make(), prepared.block))
            gain = np.array(errors["raw half"]) - np.array(errors["OVFM"])
            gains.append(gain.mean())
            line = "".join(f"{np.mean(e):10.3f} ±{np.std(e):.3f}" for e in errors.values())
            line += f"{gain.mean():+10.4f} ±{gain.std() / np.sqrt(repeats):.3f}"
            value = paper.get((setting, shown))
            if value is not None:
                off = float(np.mean(errors["OVFM"])) - value
                reached.append(round(off, 3) <= 0)
                line += f"{value:11.3f}{off:+8.3f}"
            print(f"{shown:14}{setting:17}{line}", flush=True)
    below = sum(gain > 0 for gain in gains)
    print(
        f"OVFM at or below published in {sum(reached)} of {len(reached)} cells; better than its raw half in {below} of"
    )
    print(f"{below} of {len(gains)}, mean gain {np.mean(gains):+.4f}")


def masked(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (table, hidden cells, whether a column is ordinal) of a data set of numbers, half of them hidden.

    A row keeps one ordinal value at least, and columns that hardly vary (Boolean ones of wdbc) are left out, since
    gcimpute accepts neither.
    """
    block = streams.prepare(datasets.load(name), "mixed" if name == "wdbc" else "none", seed=seed).block
    names = sorted({key for row in block.rows() for key in row}, key=str)
    table = np.array([[row.get(key, np.nan) for key in names] for row in block.rows()], dtype=float)
    ordinal = np.array([len(set(column[~np.isnan(column)].tolist())) <= 14 for column in table.T])
    hidden = np.random.default_rng(seed).random(table.shape) < 0.5
    hidden[hidden[:, ordinal].all(axis=1), np.flatnonzero(ordinal)[0]] = False
    hidden |= np.isnan(table)
    counts = [np.unique(v[~h], return_counts=True)[1] for v, h in zip(table.T, hidden.T, strict=True)]
    varies = np.array([len(c) > 2 or (len(c) == 2 and c.min() >= 20) for c in counts])
    return table[:, varies], hidden[:, varies], ordinal[varies]


def score(table: np.ndarray, hidden: np.ndarray, filled: np.ndarray, ordinal: np.ndarray) -> tuple[float, float]:
    """Return NRMSE of the continuous columns (deviation 1), accuracy of the others; the first 200 rows do not count."""
    late = hidden & ~np.isnan(table)
    late[:200] = False
    scale = np.nanstd(table, axis=0)
    scale[scale == 0] = 1.0
    off = np.where(late, (filled - table) / scale, np.nan)
    right = np.where(late, np.isclose(filled, table), np.nan)
    nrmse = np.sqrt(np.nanmean(off[:, ~ordinal] ** 2)) if (~ordinal).any() else np.nan
    return float(nrmse), float(np.nanmean(right[:, ordinal])) if ordinal.any() else np.nan


def online_fill(table: np.ndarray, hidden: np.ndarray, **parameters: object) -> np.ndarray:
    imputer = CopulaImputer(**parameters)
    filled = np.where(hidden, np.nan, table)
    for i, row in enumerate(filled.copy()):
        x = {j: float(v) for j, v in enumerate(row) if not np.isnan(v)}
        imputer.learn_one(x)
        complete = imputer.transform_one(x)
        filled[i] = [complete.get(j, np.nan) for j in range(table.shape[1])]
    return filled


def common_fill(table: np.ndarray, hidden: np.ndarray, ordinal: np.ndarray) -> np.ndarray:
    """Fill hidden cells with the mean so far, or the most frequent level so far."""
    filled = np.where(hidden, np.nan, table)
    for j in range(table.shape[1]):
        seen: list[float] = []
        for i in range(len(table)):
            if not hidden[i, j]:
                seen.append(table[i, j])
            elif seen:
                filled[i, j] = max(set(seen), key=seen.count) if ordinal[j] else np.mean(seen)
    return filled


def results_of(peers: list[str], what: str, folder: str) -> dict[str, dict[str, Any]]:
    """Return the peers' results for the tables in a folder, by peer and data set."""
    script = Path(__file__).parent / "speed" / "copula_peers.py"
    results = {}
    for peer, _, python in (spec.partition("=") for spec in peers):
        done = subprocess.run([python, script, what, peer, folder], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{peer} did not run:\n{done.stderr}")
        results[peer] = json.loads(done.stdout.splitlines()[-1])
    return results


def imputation(args: argparse.Namespace) -> None:
    tables = {name: masked(name) for name in (args.sets.split(",") if args.sets else ("german", "wdbc", "synthetic"))}
    with tempfile.TemporaryDirectory() as folder:
        for name, (table, hidden, _) in tables.items():
            np.savez(Path(folder) / f"fill-{name}.npz", x=np.where(hidden, np.nan, table))
        results_of(args.peer, "fill", folder)
        found = {name: dict(np.load(path)) for name in tables if (path := Path(folder) / f"filled-{name}.npz").exists()}
    print(f"{'set':12}{'way':26}{'NRMSE':>8}{'ordinal accuracy':>18}")
    for name, (table, hidden, ordinal) in tables.items():
        ways = {
            "copula, mean": online_fill(table, hidden),
            "copula, median": online_fill(table, hidden, statistic="median"),
            **found.get(name, {}),
            "mean or mode": common_fill(table, hidden, ordinal),
        }
        for way, filled in ways.items():
            nrmse, accuracy = score(table, hidden, filled, ordinal)
            print(f"{name:12}{way:26}{nrmse:8.3f}{accuracy:18.3f}", flush=True)


def speed(args: argparse.Namespace) -> None:
    """Time an instance with half of the values absent; for ours, the best of the repeats."""
    own = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("german", "spambase"):
            block = streams.prepare(datasets.load(name).block, "vfs:0.5", seed=0).block
            for m, make in METHODS.items():
                best = min(_seconds(make(), block) for _ in range(args.repeats)) / len(block)
                own[name, m] = 1e3 * best
                print(f"{name:10}{m:10}{1 / best:10,.0f} instances a second, {1e3 * best:.4f} ms each", flush=True)
            names = sorted({key for row in block.rows() for key in row}, key=str)
            x = np.array([[row.get(key, np.nan) for key in names] for row in block.rows()], dtype=float)
            np.savez(Path(folder) / f"speed-{name}.npz", x=x, y=np.array(block.codes))
        for peer, times in results_of(args.peer, "speed", folder).items():
            for name, each in times.items():
                ratio = "does not take these rows" if each is None else f"{each / own[name, 'OVFM']:.0f} times OVFM's"
                print(f"{name:10}{peer:10}{'-' if each is None else f'{each:.3f}'} ms each, {ratio}", flush=True)


def _seconds(learner: varifold.VaryingClassifier, block: varifold.Block) -> float:
    start = time.process_time()
    learner.run_block(block)
    return time.process_time() - start


def recovery(args: argparse.Namespace) -> None:
    """Recover a known correlation: 18 features, all continuous, or a third each Boolean, ordinal and continuous."""
    points = [250, 500, 1000, 2000, 4000, 8000, 16000]
    found = {kind: np.array([recovered(kind, points, seed) for seed in range(args.repeats)]) for kind in KINDS}
    for kind, errors in found.items():
        mean = errors.mean(axis=0)
        slope = np.polyfit(np.log(points), np.log(mean), 1)[0]
        means = "  ".join(f"{n:,}: {e:.3f}" for n, e in zip(points, mean, strict=True))
        print(f"{kind:11} relative Frobenius error by instances {means}; slope on log scales {slope:.2f}", flush=True)
    if args.out:
        plot_recovery(points, found, args.out)


def plot_recovery(points: Sequence[int], errors: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw the distance to the known correlation over instances (name -> runs x points), with the slope of theory."""
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(7, 4))
    quiet(ax)
    for (name, runs), colour in zip(errors.items(), (BLUE, ORANGE), strict=False):
        mean = np.asarray(runs).mean(axis=0)
        ax.loglog(points, mean, color=colour, linewidth=2.4, marker="o")
        ax.annotate(name, (points[-1], mean[-1]), xytext=(8, 0), textcoords="offset points", color=colour, va="center")
        line = mean[0] * np.sqrt(points[0] / np.asarray(points))
        ax.loglog(points, line, color=GREY, linestyle="--", linewidth=1.0)
    ax.minorticks_off()
    ax.set_xticks(list(points), [f"{n:,}" for n in points])
    low, high = ax.get_ylim()
    shown = [tick for tick in TICKS if low <= tick <= high]
    ax.set_yticks(shown, [f"{tick:g}" for tick in shown])
    ax.set_xlabel("instances, half of the values absent (dashed: one over the square root)")
    ax.set_ylabel("relative Frobenius error")
    write(figure, path)


def recovered(kind: str, points: list[int], seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(18, 18))
    truth = root @ root.T
    scale = np.sqrt(np.diag(truth))
    truth /= np.outer(scale, scale)
    x = rng.multivariate_normal(np.zeros(18), truth, size=points[-1])
    if kind == "mixed":
        x[:, :6] = x[:, :6] > rng.normal(scale=0.5, size=6)
        x[:, 6:12] = np.digitize(x[:, 6:12], [-1.0, -0.3, 0.3, 1.0])
    x[rng.random(x.shape) < 0.5] = np.nan
    imputer = CopulaImputer(gamma_min=0.0, window=2000)
    errors = []
    for start, end in zip([0, *points[:-1]], points, strict=True):
        imputer.learn_many(x[start:end])
        names, sigma = imputer.correlation()
        order = np.array(names, dtype=int)
        errors.append(float(np.linalg.norm(sigma - truth[np.ix_(order, order)]) / np.linalg.norm(truth)))
    return errors


def imdb(_: argparse.Namespace) -> None:
    block = streams.prepare(datasets.load("imdb-7500").block, "none", seed=0).block
    learner = varifold.OVFM()
    start = time.process_time()
    wrong = error(learner, block)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"imdb, {len(learner.features):,} words, {len(block):,} reviews: CER {wrong:.3f}")
    print(f"{seconds:.0f} s of processor time, {peak:,.0f} MB")
    print(f"raw learner alone: CER {error(varifold.AROW(), block):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("table2", "ovfiv", "speed", "imputation", "recovery", "imdb"))
    parser.add_argument("--published")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.what == "table2":
        sets = args.sets.split(",") if args.sets else SETS
        compare({s: s for s in sets}, SCENARIOS, args.repeats, published(args.published, "OVFM"))
    elif args.what == "ovfiv":
        printed = published(args.published, "OVFM / feature-classifier")
        sets = args.sets.split(",") if args.sets else sorted({s for _, s in printed if s != "average rank"})
        settings = {k: v for k, v in OVFIV_SCENARIOS.items() if any(k == s for s, _ in printed)}
        compare({s: OVFIV_SETS.get(s, s) for s in sets}, settings, args.repeats, printed)
    else:
        {"speed": speed, "imputation": imputation, "recovery": recovery, "imdb": imdb}[args.what](args)


if __name__ == "__main__":
    main()

"""Do intervals and sets of labels hold the truth as often as requested, inside outages and after drift too?

    python -m benchmarks.intervals [--task regression|labels|both|cases] [--seeds 0 1 2] [--rows 3000] [--coverage 0.9]

Predict, then learn, over the streams of `benchmarks.regressors` (regression) and six data sets of VARIFOLD_DATA
(labels), each as it is and under five scenarios. One line per stream and scenario: coverage; the smallest and largest
coverage of any 500 consecutive rows, of those inside the outage, and of the 500 rows after each drift; the share of
infinite intervals (of sets that hold all labels, and of empty ones); and the mean width and the interval score,

    (high - low) + 2 / alpha (low - y)+ + 2 / alpha (y - high)+        (T. Gneiting, A. Raftery, 2007),

over those of a running quantile of the absolute residuals, as river's conformal wrapper has it, around the same
predictions; below 1 is better. Means over the seeds, extremes over them. A mark shows what leaves these bounds, for a
coverage of .9: C coverage outside .88 to .92; W any window, O the outage, D the rows after a drift outside .85 to .95;
I more than 1 % infinite; S a score above the running quantile's. `AutoRegressor` and `AutoClassifier(budget="fast")`
predict unless --model names another learner. `--task cases` prints three hard cases: Mondays of a machine that is idle
at weekends, the second outage of a decisive sensor, and targets that come late.
"""

from __future__ import annotations

import argparse
import bisect
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import varifold
from benchmarks.regressors import SCENARIOS, STREAMS
from benchmarks.regressors import stream as number_rows
from varifold import datasets, streams
from varifold.base.spec import parse_model

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
WINDOW = 500
DRIFTS = {"FriedmanDrift": (700, 1400)}
LABELS = ("credit-g", "drybean", "kr-vs-kp", "magic04", "spambase", "splice")
OUTAGE = (0.4, 0.7)
COLD = 20  # rows without a score: the running quantile is infinite until it has seen 1 / (1 - coverage) residuals

# ---------------------------------------------------------------- measures


def interval_score(low: Floats, high: Floats, y: Floats, coverage: float) -> Floats:
    below, above = np.maximum(low - y, 0.0), np.maximum(y - high, 0.0)
    return (high - low) + 2.0 / (1.0 - coverage) * (below + above)


def running_quantile(y: Floats, predicted: Floats, coverage: float) -> tuple[Floats, Floats]:
    """Return intervals from the quantile of all absolute residuals so far, with the conformal correction."""
    half = np.full(len(y), np.inf)
    held: list[float] = []
    for step, error in enumerate(np.abs(y - predicted).tolist()):
        rank = math.ceil((len(held) + 1) * coverage)
        if rank <= len(held):
            half[step] = held[rank - 1]
        bisect.insort(held, error)
    return predicted - half, predicted + half


def windows(covered: Bools) -> tuple[float, float]:
    """Return the smallest and largest coverage of any WINDOW consecutive rows, or of all if there are fewer."""
    size = min(WINDOW, len(covered))
    sums = np.concatenate([[0.0], np.cumsum(covered)])
    rates = (sums[size:] - sums[:-size]) / size
    return float(rates.min()), float(rates.max())


def within(covered: Bools, data: str, scenario: str) -> dict[str, list[float]]:
    """Return the coverages of windows: anywhere, inside the outage, after drifts."""
    n = len(covered)
    found = {"any": list(windows(covered))}
    if scenario == "outage":
        found["outage"] = list(windows(covered[int(OUTAGE[0] * n) : int(OUTAGE[1] * n)]))
    if data in DRIFTS:
        found["drift"] = [float(covered[at : at + WINDOW].mean()) for at in DRIFTS[data] if at + WINDOW <= n]
    return found


# ---------------------------------------------------------------- one cell


def regression(model: str, data: str, scenario: str, seed: int, rows: int, coverage: float) -> dict[str, Any]:
    made = number_rows(data, scenario, seed, rows)
    y = np.array([target for _, target in made])
    block = varifold.to_block([x for x, _ in made], y.tolist(), numeric=True)
    predicted, bounds = parse_model(model).having(coverages=(coverage,))().run_intervals(block)
    low, high = bounds[:, 0, 0], bounds[:, 0, 1]
    base_low, base_high = running_quantile(y, predicted, coverage)
    kept = slice(COLD, None)
    covered = (low <= y) & (y <= high)
    score = interval_score(low, high, y, coverage)[kept].mean()
    return {
        "coverage": covered.mean(),
        **within(covered, data, scenario),
        "infinite": (~np.isfinite(high - low)).mean(),
        "width": (high - low)[kept].mean() / (base_high - base_low)[kept].mean(),
        "score": score / interval_score(base_low, base_high, y, coverage)[kept].mean(),
    }


def labels(model: str, data: str, scenario: str, seed: int, rows: int, coverage: float) -> dict[str, Any]:
    some = streams.prepare(datasets.load(data).block, seed=seed).block[:rows]
    block = streams.prepare(some, scenario, seed=seed, shuffle=False).block
    learner = parse_model(model).having(coverages=(coverage,))()
    codes, _, held = learner.run_sets(block)
    place = {label: i for i, label in enumerate(learner.classes)}
    truth = np.array([place[label] for label in block.y])
    covered, size = held[np.arange(len(truth)), 0, truth], held[:, 0].sum(axis=1)
    return {
        "coverage": covered.mean(),
        **within(covered, data, scenario),
        "accuracy": (codes == truth).mean(),
        "size": size.mean(),
        "empty": (size == 0).mean(),
        "all": (size == held.shape[2]).mean(),
        "labels": held.shape[2],
    }


# ---------------------------------------------------------------- hard cases


def weekly(seed: int, weeks: int = 6) -> tuple[list[Any], NDArray[np.int64]]:
    """Generate a machine that is idle at weekends, a row every ten minutes; return the rows and their weekdays."""
    rng = np.random.default_rng(seed)
    rows, state = [], 0.0
    days = np.arange(weeks * 7 * 144) // 144 % 7
    for t, day in enumerate(days):
        clock = 2.0 * np.pi * (t % 144) / 144
        state = 0.98 * state + 0.2 * rng.normal()
        load = 0.0 if day >= 5 else 1.0 + np.sin(clock) + 0.5 * state
        x = {"load": load + 0.02 * rng.normal(), "temp": 20.0 + 5.0 * np.sin(clock) + rng.normal()}
        x["speed"] = 3.0 * load + 0.3 * rng.normal()
        rows.append((x, 5.0 + 0.05 * rng.normal() if day >= 5 else 50.0 + 20.0 * load + 3.0 * rng.normal()))
    return rows, days


def decisive(seed: int, spread: float = 0.1) -> tuple[list[Any], NDArray[np.int64]]:
    """Generate two outages of the sensor that decides the target; return the rows and the number of the outage."""
    rng = np.random.default_rng(seed)
    outages = np.zeros(4000, dtype=np.int64)
    outages[1000:1500], outages[2500:3000] = 1, 2
    rows = []
    for outage in outages:
        v = rng.normal(size=4)
        x = {f"s{j}": float(v[j]) for j in range(4) if j or not outage}
        rows.append((x, float(10.0 * v[0] + v[1] + spread * rng.normal())))
    return rows, outages


def covered_rows(model: str, rows: list[Any], coverage: float, late: int = 0, memos: bool = True) -> Bools:
    """Return which targets are covered, if each is learned `late` rows after its prediction."""
    y = np.array([target for _, target in rows])
    block = varifold.to_block([x for x, _ in rows], y.tolist(), numeric=True)
    order = [[i + 1] + ([late - i - 1] if i >= late else []) for i in range(len(y))]
    schedule = np.array([step for steps in order for step in steps], dtype=np.int64)
    learner = parse_model(model).having(coverages=(coverage,))()
    _, bounds = learner.run_intervals(block, schedule, [None] * len(y) if memos else None)
    return (bounds[:, 0, 0] <= y) & (y <= bounds[:, 0, 1])


def print_cases(model: str, seeds: list[int], coverage: float) -> None:
    """Print coverages on Mondays after idle weekends, in a second outage, and with late targets."""
    for seed in seeds:
        rows, days = weekly(seed)
        covered = covered_rows(model, rows, coverage)[7 * 144 :]
        print(f"seed {seed}: by weekday", *(f"{covered[days[7 * 144 :] == day].mean():.3f}" for day in range(7)))
        rows, outages = decisive(seed)
        covered = covered_rows(model, rows, coverage)
        print(f"  outage first {covered[outages == 1].mean():.3f}, second {covered[outages == 2].mean():.3f}")
        made = number_rows("plant", "none", seed, 2000)
        for memos in (False, True):
            lates = {late: covered_rows(model, made, coverage, late, memos).mean() for late in (0, 3, 20, 100)}
            rates = ", ".join(f"{late} rows {rate:.3f}" for late, rate in lates.items())
            print(f"  late, {'with' if memos else 'without'} memos: {rates}", flush=True)


# ---------------------------------------------------------------- the table


def extremes(cells: list[dict[str, Any]], name: str) -> tuple[float, float] | None:
    found = [rate for cell in cells for rate in cell.get(name, [])]
    return (min(found), max(found)) if found else None


def marks(cells: list[dict[str, Any]]) -> str:
    """Return marks for the bounds that are violated, for a coverage of .9."""
    found = ""
    if not all(0.88 <= cell["coverage"] <= 0.92 for cell in cells):
        found += "C"
    for name, mark in (("any", "W"), ("outage", "O"), ("drift", "D")):
        rates = extremes(cells, name)
        if rates and not (rates[0] >= 0.85 and rates[1] <= 0.95):
            found += mark
    if any(cell.get("infinite", 0.0) > 0.01 for cell in cells):
        found += "I"
    return found + ("S" if np.mean([cell.get("score", 0.0) for cell in cells]) > 1.0 else "")


def line(name: str, cells: list[dict[str, Any]], shown: tuple[str, ...], marked: bool) -> str:
    spans = []
    for part in ("any", "outage", "drift"):
        rates = extremes(cells, part)
        spans.append(f"{rates[0]:.3f}-{rates[1]:.3f}" if rates else " " * 11)
    values = [f"{np.mean([cell[key] for cell in cells]):8.3f}" for key in shown]
    low, high = min(cell["coverage"] for cell in cells), max(cell["coverage"] for cell in cells)
    return f"{name:28} {low:.3f}-{high:.3f}  {'  '.join(spans)} {''.join(values)}  {marks(cells) if marked else ''}"


def table(task: str, args: argparse.Namespace) -> None:
    cell, names = (regression, tuple(STREAMS)) if task == "regression" else (labels, LABELS)
    names = tuple(args.data.split(",")) if args.data else names
    shown = ("infinite", "width", "score") if task == "regression" else ("accuracy", "size", "empty", "all", "labels")
    model = args.model or ("autoregressor" if task == "regression" else "auto:budget=fast")
    heads = "".join(f"{head:>8}" for head in shown)
    print(f"{model:28} {'coverage':11}  {'any window':11}  {'outage':11}  {'after drift':11} {heads}")
    whole: list[dict[str, Any]] = []
    for data in names:
        for scenario in SCENARIOS:
            cells = [cell(model, data, scenario, seed, args.rows, args.coverage) for seed in args.seeds]
            whole += cells
            print(line(f"{data} {scenario}", cells, shown, args.coverage == 0.9), flush=True)
    print(line("all", whole, shown, False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=("regression", "labels", "both", "cases"), default="both")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--data", default="", help="streams, separated by commas; all of the task when not given")
    parser.add_argument("--model", default="", help="a learner by name, as in varifold run")
    args = parser.parse_args()
    if args.task == "cases":
        return print_cases(args.model or "autoregressor", args.seeds, args.coverage)
    for task in ("regression", "labels") if args.task == "both" else (args.task,):
        table(task, args)


if __name__ == "__main__":
    main()

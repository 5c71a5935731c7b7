"""The evolving family against the figures of the CWFE paper, and what the papers do not measure.

    python benchmarks/evolving_tables.py table2 [--published cwfe_table2.csv] [--repeats 10] [--found]
    python benchmarks/evolving_tables.py detection | switches | cost
    python benchmarks/evolving_tables.py picture --out switch.png --repeats 40

``table2``: accuracy and F-measure after the switch, all methods, told phases (or found ones), beside the published
values. ``detection``: are switches found, and only switches? ``switches``: three in a row. ``cost``: time of a round.
The original data sets are read from the folder that VARIFOLD_DATA names.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict

import numpy as np

import varifold
from varifold import Block, datasets, streams

PAPER = {"scale": "none", "fit_intercept": False}
SETS = {
    "Australian": "australian-onehot",
    "Credit-a": "credit-a-complete",
    "Credit-g": "credit-g",
    "Diabetes": "diabetes",
    "German": "german-onehot",
    "Kr-vs-kp": "kr-vs-kp",
    "Splice": "splice",
    "Svmguide3": "svmguide3",
}
METHODS = {
    "NOGD": ("nogd", {}),
    "NPA-d": ("npad", {}),
    "NCW": ("ncw", {}),
    "ROGD-u": ("rogdu", {}),
    "RPA-u": ("rpau", {}),
    "RCW-u": ("rcwu", {}),
    "ROGD-f": ("rogdf", {}),
    "RPA-f": ("rpaf", {}),
    "RCW-f": ("rcwf", {}),
    **{f"{name}-{c}": (name.lower(), {"combine": c}) for name in ("FESL", "PAFE", "CWFE") for c in "cs"},
}


def score(block, codes, labels, start):
    """Accuracy and F-measure of the minority class from a row on."""
    truth = np.array([block.labels.values[c] for c in block.codes], dtype=object)
    said = np.array([labels[c] if c >= 0 else None for c in codes], dtype=object)
    values, counts = np.unique(block.codes, return_counts=True)
    positive = block.labels.values[values[np.argmin(counts)]]
    truth, said = truth[start:], said[start:]
    hit = np.sum((truth == positive) & (said == positive))
    total = np.sum(truth == positive) + np.sum(said == positive)
    return float(np.mean(truth == said)), float(2 * hit / total) if total else 0.0


def evaluate(model, block, start):
    codes, _ = model.run_block(block)
    return score(block, codes, model.classes, start)


def made(name, prepared, overlap, found, **more):
    kind, extra = METHODS[name]
    told = {} if found else {"switch": prepared.scored_from, "overlap": overlap}
    if "combine" in extra and not found:
        told["horizon"] = len(prepared.block) - prepared.scored_from
    return varifold.models[kind](**{**told, **extra, **PAPER, **more})


def table2(arguments):
    published = defaultdict(dict)
    if arguments.published:
        with open(arguments.published) as file:
            for row in csv.DictReader(file):
                published[row["dataset"], row["method"]][row["metric"]] = float(row["mean"])
    setting = {"scale": "standard", "fit_intercept": True} if arguments.defaults else {}
    print("set,method,accuracy,std,published,F,published F")
    for title, name in SETS.items():
        data = datasets.load(name)
        results = defaultdict(list)
        for seed in range(arguments.repeats):
            prepared = streams.prepare(data, "evolvable:overlap=10", seed=seed)
            for method in METHODS:
                model = made(method, prepared, 10, arguments.found, **setting)
                results[method].append(evaluate(model, prepared.block, prepared.scored_from))
        for method, pairs in results.items():
            accuracy, f = np.mean(pairs, axis=0)
            known = published[title, method]
            print(
                f"{title},{method},{accuracy:.3f},{np.std(pairs, axis=0)[0]:.3f},{known.get('accuracy', '')},{f:.3f},"
                f"{known.get('F-measure', '')}",
                flush=True,
            )


WATCHED = [
    "australian",
    "credit-a-complete",
    "credit-g",
    "diabetes",
    "german",
    "ionosphere",
    "kr-vs-kp",
    "svmguide3",
    "wbc",
    "wdbc",
]
QUIET = ["vfs:0.25", "outage", "outage:share=0.6", "outage+vfs:0.1", "none"]


def detection(arguments):
    default = {"scale": "standard", "fit_intercept": True}
    print("scenario,set,runs,found in time,other switches,mean delay,told,found")
    for overlap in (5, 10, 20, 50):
        scenario = f"evolvable:overlap={overlap}+vfs:0.1"
        for name in WATCHED:
            data = datasets.load(name)
            in_time, others, delays, told, found = 0, 0, [], [], []
            for seed in range(arguments.repeats):
                prepared = streams.prepare(data, scenario, seed=seed)
                start = prepared.scored_from
                told.append(
                    evaluate(made("CWFE-c", prepared, overlap, False, **default, horizon=None), prepared.block, start)[
                        0
                    ]
                )
                model = made("CWFE-c", prepared, overlap, True, **default)
                found.append(evaluate(model, prepared.block, start)[0])
                right = [step - start for step in model.switches if start < step <= start + 2 * overlap]
                in_time += bool(right)
                delays += right[:1]
                others += len(model.switches) - bool(right)
            print(
                f"{scenario},{name},{arguments.repeats},{in_time},{others},{np.mean(delays or [np.nan]):.1f},"
                f"{np.mean(told):.3f},{np.mean(found):.3f}",
                flush=True,
            )
    for scenario in QUIET:
        for name in WATCHED:
            data = datasets.load(name)
            false = 0
            for seed in range(arguments.repeats):
                model = varifold.CWFE()
                model.run_block(streams.prepare(data, scenario, seed=seed).block)
                false += len(model.switches)
            print(f"{scenario},{name},{arguments.repeats},,{false},,,", flush=True)


def chained(data, seed, spaces=4, overlap=10):
    """A block whose space is replaced again and again, each a Gaussian mixture of the same [0, 1] columns."""
    block = streams.prepare(data, "none", seed=seed).block
    block = block.take(np.flatnonzero(np.diff(block.indptr) == data.columns))
    rows = list(block.rows())
    names = sorted(rows[0])
    codes = {
        name: {v: i for i, v in enumerate(sorted({r[name] for r in rows}))}
        for name in names
        if isinstance(rows[0][name], str)
    }
    table = np.array([[codes[n][r[n]] if n in codes else r[n] for n in names] for r in rows], dtype=float)
    low, high = table.min(axis=0), table.max(axis=0)
    table = (table - low) / np.where(high > low, high - low, 1.0)
    rng = np.random.default_rng(seed)
    n, d = table.shape
    views = [table @ rng.standard_normal((d, int(0.7 * d))) for _ in range(spaces)]
    bounds = [n * k // spaces for k in range(spaces + 1)]
    dicts = []
    for i in range(n):
        seen = [k for k in range(spaces) if bounds[k] - (overlap if k else 0) <= i < bounds[k + 1]]
        dicts.append({f"s{k} {j}": float(v) for k in seen for j, v in enumerate(views[k][i])})
    return Block.from_dicts(dicts, [block.labels.values[c] for c in block.codes]), bounds


def switches(arguments):
    print("set,method,switches found,error in space 1,2,3,4")
    for name in WATCHED:
        data = datasets.load(name)
        for method in arguments.methods.split(","):
            errors, found = [], []
            for seed in range(arguments.repeats):
                block, bounds = chained(data, seed)
                model = varifold.models[method]()
                codes, _ = model.run_block(block)
                found.append(len(model.switches))
                errors.append(
                    [1 - right(block, codes, model.classes)[bounds[k] : bounds[k + 1]].mean() for k in range(4)]
                )
            print(
                f"{name},{method},{np.mean(found):.1f}," + ",".join(f"{e:.3f}" for e in np.mean(errors, axis=0)),
                flush=True,
            )


def right(block, codes, labels):
    """Whether each answer was."""
    truth = (block.labels.values[c] for c in block.codes)
    return np.array([c >= 0 and labels[c] == y for c, y in zip(codes, truth, strict=True)])


def cost(arguments):
    """Time of a prequential round after the switch at d1 = 60, d2 = 42, the best of several runs."""
    data = datasets.load("splice")
    prepared = streams.prepare(data, "evolvable:overlap=10", seed=0)
    start = prepared.scored_from
    before = prepared.block.take(np.arange(start))
    after = prepared.block.take(np.arange(start, len(prepared.block)))
    times = {}
    for method in METHODS:
        best = np.inf
        for _ in range(arguments.repeats):
            model = made(method, prepared, 10, False)
            model.run_block(before)
            begun = time.process_time()
            model.run_block(after)
            best = min(best, time.process_time() - begun)
        times[method] = best / len(after) * 1e6
    print("method,us a round,instances/s,ratio to FESL-c")
    for method, us in times.items():
        print(f"{method},{us:.2f},{1e6 / us:.0f},{us / times['FESL-c']:.2f}")


PICTURED = {"credit-a-complete": "credit-a", "kr-vs-kp": "kr-vs-kp"}


def picture(arguments):
    """Error around the switch, phases found by the learners, drawn to the file that --out names."""
    from varifold.report.evolving import Switch, plot_switches

    panels = []
    for name, title in PICTURED.items():
        data = datasets.load(name)
        wrong = defaultdict(list)
        for seed in range(arguments.repeats):
            prepared = streams.prepare(data, "evolvable:overlap=10", seed=seed)
            for method in ("CWFE-c", "NCW", "RCW-u", "RCW-f"):
                model = made(method, prepared, 10, True, scale="standard", fit_intercept=True)
                codes, _ = model.run_block(prepared.block)
                wrong[method].append(~right(prepared.block, codes, model.classes))
        panels.append(Switch(f"{title}, mean of {arguments.repeats} streams", wrong, prepared.scored_from, 10))
    plot_switches(panels, arguments.out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("table", choices=["table2", "detection", "switches", "cost", "picture"])
    parser.add_argument("--published")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", default="switch.png", help="where the picture goes")
    parser.add_argument("--methods", default="ncw,rcwu,cwfe,pafe,fesl", help="of the table of switches")
    parser.add_argument("--found", action="store_true", help="let the learners find the phases")
    parser.add_argument("--defaults", action="store_true", help="running scale and intercept instead of neither")
    arguments = parser.parse_args()
    globals()[arguments.table](arguments)

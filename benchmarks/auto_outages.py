"""Measure the default classifier where groups of features fall silent, with absent values and with filled-in ones.

    VARIFOLD_DATA=... python benchmarks/auto_outages.py --seeds 10 [--sets german,wdbc] [--peers] [--forest]

First the plant of `varifold demo`: error over the whole stream and while a group of sensors is silent, of the learner
on the stream as it is and under every way of filling in, with the paired difference over the seeds and, in brackets,
how many standard errors it is (below -2: ahead). `--peers` adds river's scaled logistic regression, Gaussian naive
Bayes and Hoeffding adaptive tree, `--forest` its adaptive random forest, on the first three seeds.

Then streams made of data sets: permuted rows, at most `--rows`, one value in twenty absent, six groups of adjacent
columns, each silent once or twice for 8 to 15 % of the stream. There the columns are the learner without the two
experts that recall absent columns, the learner, and the learner on means filled in.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from river import compose, forest, linear_model, naive_bayes, preprocessing, tree
from river.multiclass import OneVsRestClassifier

import varifold
from varifold import datasets
from varifold.cli.filling import Values, mean_filled, ways
from varifold.cli.sensors import plant

SETS = "german,spambase,wdbc,svmguide3,ionosphere,drybean,diabetes,wine"
GROUPS = 6
PEERS: dict[str, Callable[[], Any]] = {
    "river LR, scaled": lambda: compose.Pipeline(
        preprocessing.StandardScaler(), OneVsRestClassifier(linear_model.LogisticRegression())
    ),
    "river GaussianNB": naive_bayes.GaussianNB,
    "river HAT": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
}
FOREST: dict[str, Callable[[], Any]] = {"river ARF": lambda: forest.ARFClassifier(n_models=10, seed=1)}


def wrong(model: Any, values: Values, columns: list[Any], labels: list[Any]) -> Any:
    """Return which predictions were wrong, each made before its instance was learned."""
    rows = [{n: v for n, v in zip(columns, row, strict=True) if v == v} for row in values.tolist()]
    if isinstance(model, varifold.AutoClassifier):
        predictions = model.predict_learn_many(rows, labels)
    else:
        predictions = []
        for x, y in zip(rows, labels, strict=True):
            predictions.append(model.predict_one(x))
            model.learn_one(x, y)
    return np.array([predicted != y for predicted, y in zip(predictions, labels, strict=True)])


def without_recall() -> varifold.AutoClassifier:
    """Make the default learner without the stack and the recall experts, which use absence and earlier values."""
    model = varifold.AutoClassifier()
    model._names = [name for name in model.report().experts if not name.startswith("recall") and name != "stack"]
    model._engine = model._make_engine()
    return model


def on_plant(seeds: range, peers: dict[str, Callable[[], Any]]) -> None:
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in seeds:
        made = plant(seed=seed)
        silent = np.zeros(len(made.labels), dtype=bool)
        for _, first, end in made.outages():
            silent[first:end] = True
        runs = [(way.name, varifold.AutoClassifier(), way.readings, way.columns) for way in ways(made)]
        runs.append(("without the recalling experts", without_recall(), made.readings, made.names))
        if seed - seeds.start < 3:
            runs += [(name, make(), made.readings, made.names) for name, make in peers.items()]
        for name, model, values, columns in runs:
            errors = wrong(model, values, columns, made.labels)
            found.setdefault(name, []).append((errors.mean(), errors[silent].mean()))
    ours = np.array(found["absent stays absent"])
    title = f"plant, seeds {seeds.start} to {seeds.stop - 1}"
    print(f"{title:32}  error silent  ours less theirs, and in standard errors")
    for name, values in found.items():
        theirs = np.array(values)
        apart = ours[: len(theirs)] - theirs
        line = f"{name:32} {theirs.mean(axis=0)[0]:.4f} {theirs.mean(axis=0)[1]:.4f}"
        if name != "absent stays absent":
            error = apart.std(axis=0, ddof=1) / len(theirs) ** 0.5
            line += "  " + "  ".join(f"{d:+.4f} ({d / e:+.1f})" for d, e in zip(apart.mean(axis=0), error, strict=True))
        print(line, flush=True)


def set_with_outages(name: str, seed: int, rows: int) -> tuple[Values, list[Any], Any]:
    """Return (values, labels, whether a group is silent)."""
    rng = np.random.default_rng(seed)
    block = datasets.load(name).block
    block = block.take(rng.permutation(len(block))[:rows])
    n, d = len(block), int(block.indices.max()) + 1
    values = np.full((n, d), np.nan)
    for i in range(n):
        part = slice(block.indptr[i], block.indptr[i + 1])
        values[i, block.indices[part]] = block.values[part]
    absent, silent = rng.random((n, d)) < 0.05, np.zeros(n, dtype=bool)
    edges = np.linspace(0, d, GROUPS + 1).astype(int)
    for group in range(GROUPS):
        for _ in range(1 + (rng.random() < 0.5)):
            first = rng.uniform(0.1, 0.85)
            time = slice(int(first * n), int((first + rng.uniform(0.08, 0.15)) * n))
            absent[time, edges[group] : edges[group + 1]] = True
            silent[time] = True
    return np.where(absent, np.nan, values), [block.labels.values[c] for c in block.codes], silent


def on_sets(names: list[str], seeds: range, rows: int) -> None:
    print(f"\n{'sets with outages':22} {'without recall':>16} {'auto':>16} {'means filled in':>16}   (error, silent)")
    total = []
    for name in names:
        errors = []
        for seed in seeds:
            values, labels, silent = set_with_outages(name, seed, rows)
            columns = list(range(values.shape[1]))
            found = (
                wrong(without_recall(), values, columns, labels),
                wrong(varifold.AutoClassifier(), values, columns, labels),
                wrong(varifold.AutoClassifier(), mean_filled(values), columns, labels),
            )
            errors.append([(w.mean(), w[silent].mean()) for w in found])
        total.append(np.mean(errors, axis=0))
        print(f"{name:22} " + " ".join(f"   {a:.4f} {b:.4f}" for a, b in total[-1]), flush=True)
    print(f"{'mean':22} " + " ".join(f"   {a:.4f} {b:.4f}" for a, b in np.mean(total, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--sets", default=SETS, help="separated by commas; empty for none")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--forest", action="store_true", help="river's adaptive random forest, which is slow")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    on_plant(seeds, {**(PEERS if args.peers else {}), **(FOREST if args.forest else {})})
    if args.sets:
        on_sets(args.sets.split(","), seeds[:5], args.rows)


if __name__ == "__main__":
    main()

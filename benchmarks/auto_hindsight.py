"""How far are the default learners behind the best of our own single methods, chosen in hindsight for each stream?

    python -m benchmarks.auto_hindsight GROUP ... [--seeds 0 1 2] [--rows 0:8000] [--cells FILE] [--methods a,b]

Predict, then learn, in blocks. Groups of streams:

- `numbers`: natural streams with a number to predict (`benchmarks.natural_rows`), and long synthetic ones;
- `scenarios`: the 42 streams of `benchmarks.regressors`;
- `labels`: natural streams with labels, of 1,000 rows or more;
- `generated`: the streams of `benchmarks.auto_peers` with 1,000 rows or more;
- `kinds`: the streams of `benchmarks.kinds`, one kind of boundary, interaction or label each;
- `small`: 20 small sets (150 to 1,500 rows), half of the values absent.

Prints a line per stream: mean absolute error (numbers), or error in % and log loss (labels), of the default learner and
of the best single method, and by how much the default learner is behind: in % (numbers, log loss) or points (error).
`--rows` cuts natural streams, so that choices are made on a part (development: the first 8,000 rows, 12,000 of the
pedestrians; seeds from 100 on) and reported on the whole or the rest. With `--cells` results are kept in a JSON file,
and only those that it does not hold are measured.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import varifold
from benchmarks import auto_peers, kinds, natural_rows, regressors
from varifold import datasets, streams

Rows = list[tuple[dict[str, Any], Any]]
REGRESSORS = (
    "arowregressor", "additiveregressor", "olvfregressor", "neighboursregressor", "windowforestregressor",
    "copularegressor", "feslregressor", "meanregressor",
)  # fmt: skip
CLASSIFIERS = (
    "additive", "arow", "olvf", "ovfm", "gaussiannb", "nb3", "neighbours", "windowforest", "ftrladp", "ftrlproximal",
    "pa", "ogd", "fesl",
)  # fmt: skip
SMALL = (
    "australian", "credit-a", "credit-g", "dcfht-diabetes", "diabetes-risk", "german", "glioma", "ionosphere", "ipd",
    "svmguide3", "wbc", "wdbc", "wine", "wpbc", "sklearn iris", "sklearn digits", "sklearn breast_cancer",
    "river Phishing", "dcfht-svmguide", "dcfht-wbc",
)  # fmt: skip
LEAST = 1e-6
"""Smallest probability in a log loss."""

# ---------------------------------------------------------------- streams


def long_numbers(name: str, seed: int) -> Rows:
    """Generate 8,000 rows of one of river's streams."""
    from river.datasets import synth

    drift = synth.FriedmanDrift("gra", position=(3000, 6000), transition_window=500, seed=seed)
    made = drift if name == "FriedmanDrift" else synth.Friedman(seed=seed)
    return list(made.take(8000))


def noise(seed: int) -> Rows:
    """Generate targets that depend on nothing."""
    rng = np.random.default_rng(seed)
    rows = [{f"v{j}": v for j, v in enumerate(row)} for row in rng.normal(size=(2000, 10)).tolist()]
    return list(zip(rows, rng.normal(50.0, 9.0, 2000).tolist(), strict=True))


def small(name: str, seed: int) -> Any:
    """Return a small set as a block, permuted, with half of its values absent."""
    kind, _, rest = name.partition(" ")
    if kind == "sklearn":
        rows = auto_peers.sklearn_set(rest)(seed)[:1500]
    elif kind == "river":
        rows = auto_peers.river_set(rest)(seed)[:1500]
    else:
        block = datasets.load(name).block
        permuted = streams.prepare(block, seed=seed).block[:1500]
        return streams.prepare(permuted, "vfs:0.5", seed=seed, shuffle=False).block
    block = varifold.to_block([x for x, _ in rows], [y for _, y in rows])
    return streams.prepare(block, "vfs:0.5", seed=seed).block


def blocks(group: str, seeds: list[int], start: int, stop: int | None) -> dict[str, list[Callable[[], Any]]]:
    """Return by stream of the group the functions that make its blocks, one per seed."""

    def made(rows: Callable[[], Rows], numeric: bool) -> Callable[[], Any]:
        def make() -> Any:
            found = rows()
            return varifold.to_block([x for x, _ in found], [y for _, y in found], numeric=numeric)

        return make

    if group in ("numbers", "labels"):
        numeric = group == "numbers"
        found = {
            name: [made(lambda f=f: f(start, stop), numeric)]
            for name, f in (natural_rows.NUMBERS if numeric else natural_rows.LABELS).items()
        }
        if numeric:
            for name in ("Friedman", "FriedmanDrift"):
                found[f"{name}, long"] = [made(lambda n=name, s=s: long_numbers(n, s), True) for s in seeds]
            found["noise"] = [made(lambda s=s: noise(s), True) for s in seeds]
        return found
    if group == "scenarios":
        pairs = itertools.product(regressors.STREAMS, regressors.SCENARIOS)
        return {
            f"{data}, {how}": [made(lambda d=data, h=how, s=s: regressors.stream(d, h, s, 2000), True) for s in seeds]
            for data, how in pairs
        }
    if group == "generated":
        names = [n for n in auto_peers.STREAMS if n not in ("iris", "wine", "breast_cancer", "random tree, long")]
        return {n: [made(lambda n=n, s=s: auto_peers.STREAMS[n](s), False) for s in seeds] for n in names}
    if group == "kinds":
        return {n: [made(lambda m=make, s=s: m(s), False) for s in seeds] for n, make in kinds.STREAMS.items()}
    return {name: [lambda n=name, s=s: small(n, s) for s in seeds] for name in SMALL}


# ---------------------------------------------------------------- one cell


def measure(method: str, block: Any) -> list[float]:
    """Return the mean absolute error of every row but the first, or error and log loss."""
    learner = varifold.models[method]()
    if block.labels is None or getattr(block, "targets", None) is not None:
        predicted = learner.run_block(block)
        return [float(np.abs(predicted - block.targets)[1:].mean())]
    codes, probabilities = learner.run_block(block)
    place = {label: i for i, label in enumerate(learner.classes)}
    truth = np.array([place[label] for label in block.y])
    right = probabilities[np.arange(len(truth)), truth]
    return [float((codes != truth).mean()), float(-np.log(np.maximum(right, LEAST))[1:].mean())]


def table(group: str, args: argparse.Namespace, cells: dict[str, list[float]], keep: Callable[[], None]) -> None:
    numeric = group in ("numbers", "scenarios")
    default = "autoregressor" if numeric else "auto"
    methods = args.methods.split(",") if args.methods else list(REGRESSORS if numeric else CLASSIFIERS)
    start, stop = args.cut
    behind: list[tuple[float, ...]] = []
    for name, makers in blocks(group, args.seeds, start, stop).items():
        found: dict[str, list[list[float]]] = {}
        for number, make in enumerate(makers):
            seed = args.seeds[number] if len(makers) > 1 else f"rows {start}:{stop or ''}"
            block = None
            for method in [default, *methods]:
                key = f"{method} | {name} | {seed}"
                if key not in cells:
                    block = make() if block is None else block
                    cells[key] = measure(method, block)
                found.setdefault(method, []).append(cells[key])
        keep()
        means = {method: np.mean(values, axis=0) for method, values in found.items()}
        line, gaps = f"| {name} |", []
        for i in range(len(means[default])):
            best = min(methods, key=lambda m: means[m][i])
            ours, theirs = means[default][i], means[best][i]
            points = not numeric and i == 0
            gaps.append(100.0 * (ours - theirs) if points else 100.0 * (ours / theirs - 1.0))
            shown = f" {100 * ours:.2f} | {100 * theirs:.2f} {best}" if points else f" {ours:.4g} | {theirs:.4g} {best}"
            line += f"{shown} | {gaps[-1]:+.2f}{'' if points else ' %'} |"
        behind.append(tuple(gaps))
        print(line, flush=True)
    worst = np.max(np.array(behind), axis=0)
    print(f"| *{group}: furthest behind* | {' | '.join(f'{w:+.2f}' for w in worst)} |\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="+", choices=("numbers", "scenarios", "labels", "generated", "kinds", "small"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", default="0:", help="START:STOP of natural streams")
    parser.add_argument("--methods", help="single methods to compare with, separated by commas")
    parser.add_argument("--cells", type=Path, help="a JSON file of results measured so far, which is added to")
    args = parser.parse_args()
    first, _, last = args.rows.partition(":")
    args.cut = (int(first or 0), int(last) if last else None)
    cells = json.loads(args.cells.read_text()) if args.cells and args.cells.exists() else {}

    def keep() -> None:
        if args.cells:
            args.cells.write_text(json.dumps(cells, indent=0))

    for group in args.groups:
        table(group, args, cells, keep)


if __name__ == "__main__":
    main()

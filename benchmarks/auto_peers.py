"""Compare the default learner with batch boosting and river's learners, on streams with interactions and with drift.

    python benchmarks/auto_peers.py --cache peers.jsonl --seeds 0 1 2 --jobs 2

Predict, then learn, one instance at a time. Prints the error in % averaged over the seeds, the best peer, and how far
`AutoClassifier` is behind it. LightGBM is fitted again every 500 rows, on all rows so far or on the last 1,000, and
predicts the most frequent label before that. Every cell (stream, seed, learner) is written to the cache as soon as it
is known, so that a run can be stopped and resumed. Choices are made on seeds from 100 on; 0 to 2 are for the report.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

Rows = list[tuple[dict[str, Any], Any]]
ROWS, LONG, REFIT = 4000, 60_000, 500
SWITCHES = (1237, 2291, 3163)
"""Where concepts change, no multiple of any interval of a learner."""
BLUR = 150
"""A gradual change lasts about six times this many instances."""
RETURN = 773
"""Length of a concept that returns."""

# ---------------------------------------------------------------- streams


def by_concepts(concepts: list[Iterator[tuple[dict[str, Any], Any]]], kind: str, n: int, seed: int) -> Rows:
    """Generate a sequence of concepts: sudden, gradual (both mixed for a while) or recurring (the first two)."""
    rng = random.Random(seed)
    rows: Rows = []
    for t in range(n):
        if kind == "recurring":
            now = t // RETURN % 2
        elif kind == "sudden":
            now = sum(t >= s for s in SWITCHES)
        else:
            now = sum(rng.random() < 1.0 / (1.0 + math.exp(-(t - s) / BLUR)) for s in SWITCHES)
        rows.append(next(concepts[now % len(concepts)]))
    return rows


def generator(name: str, concept: int, seed: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """Return one of river's generators with one of its concepts."""
    from river.datasets import synth

    made: dict[str, Callable[[], Any]] = {
        "sine": lambda: synth.Sine(classification_function=(seed + concept) % 4, seed=seed + 17 * concept),
        "mixed": lambda: synth.Mixed(classification_function=concept % 2, seed=seed + 17 * concept),
        "stagger": lambda: synth.STAGGER(classification_function=(seed + concept) % 3, seed=seed + 17 * concept),
        "sea": lambda: synth.SEA(variant=(seed + concept) % 4, noise=0.1, seed=seed + 17 * concept),
        "hyperplane": lambda: synth.Hyperplane(seed=seed + 1000 * concept, n_features=10, noise_percentage=0.05),
        "led": lambda: synth.LEDDrift(
            seed=seed + 17 * concept, noise_percentage=0.1, irrelevant_features=True, n_drift_features=2 * concept
        ),
    }
    return iter(made[name]().take(10**9))


def drifting(name: str, kind: str) -> Callable[[int], Rows]:
    def make(seed: int) -> Rows:
        if name == "hyperplane" and kind == "gradual":
            from river.datasets import synth

            return list(
                synth.Hyperplane(seed=seed, n_features=10, n_drift_features=10, mag_change=0.001, sigma=0.1).take(ROWS)
            )
        return by_concepts([generator(name, c, seed) for c in range(len(SWITCHES) + 1)], kind, ROWS, seed)

    return make


def stationary(name: str) -> Callable[[int], Rows]:
    return lambda seed: [row for row, _ in zip(generator(name, 0, seed), range(ROWS), strict=False)]


def synthetic(name: str, **parameters: Any) -> Callable[[int], Rows]:
    def make(seed: int) -> Rows:
        from river.datasets import synth

        return list(getattr(synth, name)(seed=seed, **parameters).take(ROWS))

    return make


def random_tree(seed: int, n: int = ROWS) -> Rows:
    from river.datasets import synth

    rows = synth.RandomTree(seed_tree=seed, seed_sample=seed).take(n)
    return [({k: f"v{v}" if "cat" in k else v for k, v in x.items()}, y) for x, y in rows]


def random_blobs(seed: int) -> Rows:
    from river.datasets import synth

    return list(synth.RandomRBF(seed_model=seed, seed_sample=seed, n_classes=4, n_features=10).take(ROWS))


def agrawal(function: int) -> Callable[[int], Rows]:
    return synthetic("Agrawal", classification_function=function)


def exclusive_or(seed: int) -> Rows:
    """Generate the exclusive or of two among ten numbers."""
    rng = random.Random(seed)
    rows = [{f"f{i}": rng.gauss(0.0, 1.0) for i in range(10)} for _ in range(ROWS)]
    return [(x, (x["f0"] > 0) != (x["f1"] > 0)) for x in rows]


def category_pairs(seed: int) -> Rows:
    """Generate labels that depend on two of five columns with six levels; 5 % of the labels are wrong."""
    rng = random.Random(seed)
    truth = {(a, b): rng.random() < 0.5 for a in "uvwxyz" for b in "uvwxyz"}
    rows = [{f"c{i}": rng.choice("uvwxyz") for i in range(5)} for _ in range(ROWS)]
    return [(x, truth[x["c0"], x["c1"]] != (rng.random() < 0.05)) for x in rows]


def label_flip(seed: int) -> Rows:
    """Generate a linear rule on two of four numbers; labels swap every 1,000 rows, and 5 % of them are wrong."""
    rng = random.Random(seed)
    rows: Rows = []
    for t in range(ROWS):
        x = {f"f{i}": rng.gauss(0.0, 1.0) for i in range(4)}
        y = (x["f0"] + x["f1"] > 0) != (t // 1000 % 2 == 1)
        rows.append((x, y != (rng.random() < 0.05)))
    return rows


def river_set(name: str) -> Callable[[int], Rows]:
    """Return a function that shuffles one of river's data sets."""

    def make(seed: int) -> Rows:
        from river import datasets

        rows = [(dict(x), y) for x, y in getattr(datasets, name)()]
        random.Random(seed).shuffle(rows)
        return rows[:ROWS]

    return make


def sklearn_set(name: str) -> Callable[[int], Rows]:
    """Return a function that shuffles one of scikit-learn's data sets."""

    def make(seed: int) -> Rows:
        from sklearn import datasets

        data = getattr(datasets, f"load_{name}")()
        rows = [
            ({f"f{i}": float(v) for i, v in enumerate(x)}, int(y)) for x, y in zip(data.data, data.target, strict=True)
        ]
        random.Random(seed).shuffle(rows)
        return rows[:ROWS]

    return make


GROUPS: dict[str, dict[str, Callable[[int], Rows]]] = {
    "interactions": {
        "random tree": random_tree,
        **{f"Agrawal {i}": agrawal(i) for i in range(10)},
        "xor of 2 in 10": exclusive_or,
        "pairs of categories": category_pairs,
        "image segments": river_set("ImageSegments"),
        "bananas": river_set("Bananas"),
    },
    "drift": {
        **{
            f"{name}, {kind}": drifting(name, kind)
            for name in ("sine", "mixed", "stagger", "sea", "hyperplane", "led")
            for kind in ("sudden", "gradual", "recurring")
        },
        "label flip": label_flip,
    },
    "stable": {
        **{name: stationary(name) for name in ("sine", "mixed", "stagger", "sea", "hyperplane", "led")},
        "waveform": synthetic("Waveform"),
        "random blobs": random_blobs,
        "phishing": river_set("Phishing"),
        **{name: sklearn_set(name) for name in ("breast_cancer", "digits", "iris", "wine")},
    },
    "long": {"random tree, long": lambda seed: random_tree(seed, LONG)},
}
STREAMS = {name: make for group in GROUPS.values() for name, make in group.items()}

# ---------------------------------------------------------------- learners


class Boosted:
    """LightGBM, refitted every 500 rows on the last `most` rows; before that the most frequent label."""

    def __init__(self, most: int) -> None:
        self.columns: dict[str, int] = {}
        self.codes: dict[Any, int] = {}
        self.rows: collections.deque[list[float]] = collections.deque(maxlen=most)
        self.y: collections.deque[Any] = collections.deque(maxlen=most)
        self.seen = 0
        self.fitted: Any = None

    def values(self, x: dict[str, Any]) -> list[float]:
        row = [math.nan] * 80
        for name, value in x.items():
            at = self.columns.setdefault(name, len(self.columns))
            row[at] = self.codes.setdefault((name, value), len(self.codes)) if isinstance(value, str) else value
        return row

    def predict_many(self, xs: list[dict[str, Any]]) -> list[Any]:
        import numpy as np

        if self.fitted is None:
            counts = collections.Counter(self.y).most_common(1)
            return [counts[0][0] if counts else None] * len(xs)
        return list(self.fitted.predict(np.array([self.values(x) for x in xs])))

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        import numpy as np
        from lightgbm import LGBMClassifier

        self.rows.append(self.values(x))
        self.y.append(y)
        self.seen += 1
        if self.seen % REFIT == 0 and len(set(self.y)) > 1:
            self.fitted = LGBMClassifier(verbose=-1, n_jobs=1).fit(np.array(self.rows), np.array(self.y))

    def run(self, rows: Rows) -> list[bool]:
        """Return whether each prediction is wrong; predict in batches, since the model only changes every 500 rows."""
        wrong: list[bool] = []
        for start in range(0, len(rows), REFIT):
            part = rows[start : start + REFIT]
            if self.fitted is None:  # the most frequent label changes with every row
                for x, y in part:
                    wrong.append(self.predict_many([x])[0] != y)
                    self.learn_one(x, y)
                continue
            predictions = self.predict_many([x for x, _ in part])
            wrong.extend(bool(predicted != y) for predicted, (_, y) in zip(predictions, part, strict=True))
            for x, y in part:
                self.learn_one(x, y)
        return wrong


def arf() -> Any:
    from river import forest

    return forest.ARFClassifier(n_models=10, seed=1)


def hat() -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(seed=1)


def scaled_regression() -> Any:
    import numbers

    from river import compose, linear_model, multiclass, preprocessing

    numeric = compose.SelectType(numbers.Number) | preprocessing.StandardScaler()
    strings = compose.SelectType(str) | preprocessing.OneHotEncoder()
    return (numeric + strings) | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())


def auto(budget: str = "balanced") -> Any:
    from varifold import AutoClassifier

    return AutoClassifier(budget)


PEERS: dict[str, Callable[[], Any]] = {
    "LightGBM": lambda: Boosted(10**9),
    "LightGBM, last 1,000": lambda: Boosted(1000),
    "ARF": arf,
    "HAT": hat,
    "logistic regression": scaled_regression,
}
OWN: dict[str, Callable[[], Any]] = {
    "auto": auto,
    "auto, fast": lambda: auto("fast"),
    "auto, best": lambda: auto("best"),
}
LEARNERS = {**PEERS, **OWN}


def measure(learner: Any, rows: Rows) -> dict[str, float]:
    """Return the error, the error of the last quarter, and CPU microseconds per instance."""
    start = time.process_time()
    wrong = learner.run(rows) if isinstance(learner, Boosted) else prequential(learner, rows)
    spent = time.process_time() - start
    late = wrong[-(len(rows) // 4) :]
    return {"error": sum(wrong) / len(wrong), "last": sum(late) / len(late), "us": 1e6 * spent / len(rows)}


def prequential(learner: Any, rows: Rows) -> list[bool]:
    wrong = []
    for x, y in rows:
        wrong.append(learner.predict_one(x) != y)
        learner.learn_one(x, y)
    return wrong


# ---------------------------------------------------------------- cells

Cell = tuple[str, int, str]


def run_cell(stream: str, seed: int, name: str) -> dict[str, Any]:
    return {"stream": stream, "seed": seed, "learner": name, **measure(LEARNERS[name](), STREAMS[stream](seed))}


def read_cache(path: Path) -> dict[Cell, dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(cell["stream"], cell["seed"], cell["learner"]): cell for cell in found}


def run_missing(cells: list[Cell], args: argparse.Namespace, cache: dict[Cell, dict[str, Any]]) -> None:
    with ProcessPoolExecutor(args.jobs) as pool, args.cache.open("a") as out:
        for found in pool.map(run_cell, *zip(*cells, strict=True)):
            cache[found["stream"], found["seed"], found["learner"]] = found
            out.write(json.dumps(found) + "\n")
            out.flush()


# ---------------------------------------------------------------- tables


def mean(cache: dict[Cell, dict[str, Any]], stream: str, seeds: list[int], name: str, key: str = "error") -> float:
    return sum(cache[stream, seed, name][key] for seed in seeds) / len(seeds)


def print_table(cache: dict[Cell, dict[str, Any]], args: argparse.Namespace) -> None:
    print("| stream |", " | ".join(args.learners), "| best peer | behind |")
    print("|---" * (len(args.learners) + 3) + "|")
    for group, streams in GROUPS.items():
        shown = [stream for stream in streams if stream in args.streams]
        for stream in shown:
            errors = {name: 100 * mean(cache, stream, seeds_of(stream, args), name) for name in args.learners}
            peers = {name: error for name, error in errors.items() if name in PEERS}
            best = min(peers, key=lambda name: peers[name], default="")
            behind = f"{errors[args.learners[-1]] - peers[best]:+.1f}" if peers else ""
            print(f"| {stream} |", " | ".join(f"{error:.1f}" for error in errors.values()), f"| {best} | {behind} |")
        if shown:
            means = [
                sum(100 * mean(cache, s, seeds_of(s, args), name) for s in shown) / len(shown) for name in args.learners
            ]
            print(f"| **{group}, mean** |", " | ".join(f"{value:.2f}" for value in means), "| | |")


def seeds_of(stream: str, args: argparse.Namespace) -> list[int]:
    return args.seeds[:1] if stream in GROUPS["long"] else args.seeds


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("auto_peers.jsonl"), help="file of the cells known so far")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--streams", nargs="+", choices=STREAMS, help="instead of groups")
    parser.add_argument("--learners", nargs="+", default=[*PEERS, "auto"], help="the last is compared with the peers")
    parser.add_argument("--again", nargs="+", default=[], help="learners whose cells are run again")
    args = parser.parse_args()
    args.streams = args.streams or [s for g in args.groups for s in GROUPS[g]]
    return args


def main() -> None:
    args = parse()
    cache = read_cache(args.cache)
    wanted = [(s, seed, name) for s in args.streams for seed in seeds_of(s, args) for name in args.learners]
    missing = [cell for cell in wanted if cell not in cache or cell[2] in args.again]
    if missing:
        run_missing(missing, args, cache)
    print_table(cache, args)


if __name__ == "__main__":
    main()

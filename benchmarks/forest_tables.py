"""Compare ORF3V with its published table, with the speed of river's trees and with true importances; memory in bursts.

    python -m benchmarks.forest_tables table2 --repeats 10
    python -m benchmarks.forest_tables table2 --repeats 10 --river
    python -m benchmarks.forest_tables settings --seed 100 --repeats 5
    python -m benchmarks.forest_tables imdb --repeats 3
    python -m benchmarks.forest_tables speed
    python -m benchmarks.forest_tables openmoa
    python -m benchmarks.forest_tables bursts --plot bursts.png
    python -m benchmarks.forest_tables importances
    python -m benchmarks.forest_tables interactions

Each prints a Markdown table. `openmoa` needs the package of that name (and Java) where it runs. The data sets are read
from the folder that VARIFOLD_DATA names.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import forest, naive_bayes, tree
from scipy import sparse
from scipy.stats import spearmanr

from varifold import ORF3V, datasets
from varifold.base import Block, Labels, Vocabulary, to_block
from varifold.evaluate import repeat
from varifold.streams import prepare

SCENARIOS = {"TDS": "trapezoidal", "VFS": "vfs:0.75"}
PUBLISHED = {
    "ionosphere": (0.227, 0.290),
    "german": (0.303, 0.306),
    "spambase": (0.268, 0.277),
    "magic04": (0.283, 0.341),
    "svmguide3": (0.236, 0.243),
    "wdbc": (0.123, 0.147),
    "a8a": (0.230, 0.239),
    "wine": (0.207, 0.317),
    "frogs": (0.251, 0.266),
    "drybean": (0.507, 0.558),
}
OURS: dict[str, Callable[[], Any]] = {
    "ORF3V": ORF3V,
    "quantile": lambda: ORF3V(thresholds="quantile"),
    "paper vote": lambda: ORF3V(vote="paper"),
    "pairs=20": lambda: ORF3V(pairs=20),
}
PEERS: dict[str, Callable[[], Any]] = {
    "GaussianNB": naive_bayes.GaussianNB,
    "HoeffdingTree": tree.HoeffdingTreeClassifier,
    "ARF(10)": lambda: forest.ARFClassifier(n_models=10, seed=0),
}


def show(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*cells: str) -> None:
    show(*cells)
    show(*("---" for _ in cells))


def cells(names: list[str]) -> Iterator[tuple[str, str, str, float]]:
    """Yield (stream, scenario, data set, published CER)."""
    for i, (short, scenario) in enumerate(SCENARIOS.items()):
        for name in names:
            yield short, scenario, name, PUBLISHED[name][i]


def table2(args: argparse.Namespace) -> None:
    """Print our CER on whole sets; with --river, also ours and river's learners on the same streams of fewer rows."""
    header("stream", "data set", "majority", "published", *OURS)
    reached = dict.fromkeys(OURS, 0)
    for short, scenario, name, published in cells(args.datasets):
        data = datasets.load(name)
        found = {
            k: repeat(make, data, scenario=scenario, repeats=args.repeats, seed=args.seed) for k, make in OURS.items()
        }
        for kind, result in found.items():
            reached[kind] += result.mean("cer") <= published + 0.02
        majority = 1 - found["ORF3V"].results[0].majority_share
        row = (f"{result.mean('cer'):.3f} ± {result.std('cer'):.3f}" for result in found.values())
        show(short, name, f"{majority:.3f}", f"{published:.3f}", *row)
    show("at most published + .02", f"of {2 * len(args.datasets)}", "", "", *reached.values())
    if args.river:
        with_river(args)


def with_river(args: argparse.Namespace) -> None:
    """Compare with river on fewer rows, since its forest needs milliseconds per instance (`--cut`, `--budget`)."""
    learners = {"ORF3V": ORF3V, "pairs=20": OURS["pairs=20"], **PEERS}
    print(f"\nThe same streams for all: at most {args.cut:,} rows of a set, drawn at random, shuffles as given.\n")
    header("stream", "data set", "rows", "shuffles", *learners)
    total = dict.fromkeys(learners, 0.0)
    best = dict.fromkeys(learners, 0)
    for short, scenario, name, _ in cells(args.datasets):
        block = datasets.load(name).block
        rows = np.sort(np.random.default_rng(0).permutation(len(block))[: args.cut])
        times = max(1, min(args.repeats, args.budget // len(rows)))
        means = {
            kind: repeat(make, block.take(rows), scenario=scenario, repeats=times, seed=args.seed).mean("cer")
            for kind, make in learners.items()
        }
        for kind, error in means.items():
            total[kind] += error / (2 * len(args.datasets))
            best[kind] += error <= min(means.values())
        show(short, name, f"{len(rows):,}", times, *(f"{error:.3f}" for error in means.values()))
    show("mean", "", "", "", *(f"{error:.3f}" for error in total.values()))
    show("lowest", f"of {2 * len(args.datasets)}", "", "", *best.values())


NEIGHBOURS: dict[str, dict[str, Any]] = {
    "default": {},
    "J=5": {"J": 5},
    "J=20": {"J": 20},
    "K=5": {"K": 5},
    "K=20": {"K": 20},
    "alpha=.0005": {"alpha": 0.0005},
    "alpha=.01": {"alpha": 0.01},
    "alpha=.1": {"alpha": 0.1},
    "grace=20": {"grace": 20},
    "r=50": {"r": 50},
    "growth=.1": {"growth": 0.1},
    "smoothing=.5": {"smoothing": 0.5},
    "smoothing=2": {"smoothing": 2.0},
    "temper=False": {"temper": False},
    "thresholds=quantile": {"thresholds": "quantile"},
}


def settings(args: argparse.Namespace) -> None:
    """Compare the default with neighbouring settings: mean CER over Table 2's streams, and how often each is lower."""
    header("setting", "mean CER", "streams below the default by .002", "above", "at most published + .02")
    first: Any = None
    for name, parameters in NEIGHBOURS.items():
        found = [
            repeat(lambda p=parameters: ORF3V(**p), datasets.load(d), scenario=s, repeats=args.repeats, seed=args.seed)
            for _, s, d, _ in cells(args.datasets)
        ]
        errors = np.array([f.mean("cer") for f in found])
        first = errors if first is None else first
        reached = sum(e <= p + 0.02 for e, (_, _, _, p) in zip(errors, cells(args.datasets), strict=True))
        show(name, f"{errors.mean():.4f}", (errors < first - 0.002).sum(), (errors > first + 0.002).sum(), reached)


def first_words(block: Block, words: int) -> Block:
    """Keep only the words that occur in most reviews."""
    names = [block.vocabulary.name_of(i) for i in range(1, block.vocabulary.size)]
    cells = sparse.csr_matrix((block.values, block.indices - 1, block.indptr), shape=(len(block), len(names)))
    kept = np.argsort(-np.bincount(cells.indices, minlength=len(names)), kind="stable")[:words]
    return to_block(cells[:, kept], block.y, names=[names[i] for i in kept])


def imdb(args: argparse.Namespace) -> None:
    header("vote", "published", "CER", "seconds, processor", "state, MB", "peak, MB")
    data = first_words(datasets.load("imdb").block, args.words)
    for vote in ("prior", "paper"):
        start = time.process_time()
        found = repeat(lambda vote=vote: ORF3V(vote=vote), data, repeats=args.repeats)
        seconds = (time.process_time() - start) / args.repeats
        state = sum(found.learner.state_bytes().values()) / 1e6
        show(
            vote,
            "0.285",
            f"{found.mean('cer'):.3f} ± {found.std('cer'):.3f}",
            f"{seconds:.1f}",
            f"{state:.0f}",
            f"{(found.results[-1].peak_memory or 0) / 1e6:.0f}",
        )


def timed(make: Callable[[], Any], rows: list[tuple[dict[str, float], int]]) -> float:
    """Return microseconds of processor time to predict and learn one dict; best of three."""
    best = np.inf
    for _ in range(3):
        learner = make()
        start = time.process_time()
        for x, y in rows:
            learner.predict_one(x)
            learner.learn_one(x, y)
        best = min(best, time.process_time() - start)
    return best / len(rows) * 1e6


def speed(args: argparse.Namespace) -> None:
    """Time 28 of 57 features (spambase), dict by dict; then blocks of ten features, all present."""
    stream = prepare(datasets.load("spambase"), "vfs:0.5", seed=0).block
    rows = list(zip(stream.rows(), stream.y, strict=True))[: args.rows]
    header("learner", "us an instance, dicts", "times ORF3V's")
    ours = timed(ORF3V, rows)
    show("ORF3V", f"{ours:.1f}", "1")
    for name, make in {"pairs=20": OURS["pairs=20"], **PEERS}.items():
        theirs = timed(make, rows)
        show(name, f"{theirs:.1f}", f"{theirs / ours:.1f}")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 10))
    block = to_block(X, (X[:, 0] + np.abs(X[:, 1]) > 0.5).tolist())
    for name in ("ORF3V", "pairs=20"):
        best = np.inf
        for _ in range(3):
            learner = OURS[name]()
            start = time.process_time()
            learner.run_block(block)
            best = min(best, time.process_time() - start)
        show(
            f"{name}, blocks of 10 features", f"{best / len(block) * 1e6:.2f}", f"{len(block) / best:,.0f} instances/s"
        )


def openmoa(args: argparse.Namespace) -> None:
    """Compare OpenMOA's ORF3V with ours in one process, predict and learn, half of the features removed."""
    from openmoa.classifier import ORF3VClassifier
    from openmoa.instance import LabeledInstance
    from openmoa.stream import Schema

    header(
        "data set", "openmoa, us an instance", "ORF3V dicts, us", "times", "ORF3V block, us", "openmoa CER", "ORF3V CER"
    )
    for name in ("german", "spambase"):
        stream = prepare(datasets.load(name), "vfs:0.5", seed=0).block
        rows = list(zip(stream.rows(), stream.y, strict=True))
        ids = {feature: i for i, feature in enumerate(sorted({f for x, _ in rows for f in x}, key=str))}
        labels = sorted(set(stream.y), key=str)
        schema = Schema.from_custom(
            [str(f) for f in ids], dataset_name=name, values_for_class_label=[str(y) for y in labels]
        )
        instances = []
        for x, y in rows:
            instance = LabeledInstance.from_array(schema, np.array(list(x.values()), dtype=float), labels.index(y))
            instance.feature_indices = [ids[f] for f in x]
            instances.append(instance)
        learner = ORF3VClassifier(schema)
        start, wrong = time.process_time(), 0
        for instance in instances:
            wrong += learner.predict(instance) != instance.y_index
            learner.train(instance)
        theirs = (time.process_time() - start) / len(rows) * 1e6
        ours = timed(ORF3V, rows)
        learner = ORF3V()
        start = time.process_time()
        codes, _ = learner.run_block(stream)
        block = (time.process_time() - start) / len(rows) * 1e6
        missed = np.mean([learner.classes[c] != y for c, y in zip(codes, stream.y, strict=True)])
        figures = (f"{theirs:.0f}", f"{ours:.1f}", f"{theirs / ours:.0f}", f"{block:.2f}")
        show(name, *figures, f"{wrong / len(rows):.3f}", f"{missed:.3f}")


def lives(total: int, features: int, chunk: int, seed: int = 0) -> Iterator[Block]:
    """Yield blocks of features with exponential life spans (1 % of the stream), about ten present per instance."""
    rng = np.random.default_rng(seed)
    birth = np.sort(rng.uniform(-0.05 * total, total, features))
    death = birth + rng.exponential(0.01 * total, features)
    reach = int(0.05 * features)
    sign = rng.choice([-1.0, 1.0], features)
    vocabulary, labels = Vocabulary(), Labels()
    names = [f"f{j}" for j in range(features)]
    for start in range(0, total, chunk):
        now = np.arange(start, start + chunk)[:, None]
        born = np.searchsorted(birth, now, side="right")
        ids = np.maximum(born - 1 - rng.integers(reach, size=(chunk, 50)), 0)
        alive = (death[ids] > now) & (birth[ids] <= now)
        rows, places = np.nonzero(alive)
        pairs = np.unique(rows * features + ids[rows, places])
        rows, ids = pairs // features, pairs % features
        y = rng.integers(2, size=chunk)
        values = rng.normal(size=len(ids)) + 0.5 * sign[ids] * (2 * y[rows] - 1)
        cells = sparse.csr_matrix((values, (rows, ids)), shape=(chunk, features))
        yield to_block(cells, y.tolist(), names=names, vocabulary=vocabulary, labels=labels)


def resident() -> float:
    """Return the resident size in MB."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096 / 1e6


def bursts(args: argparse.Namespace) -> None:
    learners = {"hoeffding+gap": ORF3V(), "none": ORF3V(prune="none")}
    header("instances", *(f"{what}, prune={p}" for p in learners for what in ("us", "state MB", "forests", "CER")))
    history: dict[str, list[tuple[float, ...]]] = {p: [] for p in learners}
    chunk = args.rows // 40
    for i, block in enumerate(lives(args.rows, args.features, chunk)):
        row = []
        for p, learner in learners.items():
            start = time.process_time()
            codes, _ = learner.run_block(block)
            us = (time.process_time() - start) / chunk * 1e6
            truth = np.array([learner.classes.index(y) for y in block.labels.values])[block.codes]
            state = sum(learner.state_bytes().values()) / 1e6
            found = (us, state, len(learner.importances()), float((codes != truth).mean()))
            history[p].append(((i + 1) * chunk, *found))
            row += [f"{us:.1f}", f"{state:.0f}", f"{found[2]:,}", f"{found[3]:.3f}"]
        if i % 4 == 3:
            show(f"{(i + 1) * chunk:,}", *row)
    if args.plot:
        plot_bursts({p: np.array(h) for p, h in history.items()}, args.plot)


def plot_bursts(history: dict[str, Any], path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (p, h), colour in zip(history.items(), ("#1b6ca8", "#b0b0b0"), strict=True):
        left.plot(h[:, 0] / 1e6, h[:, 2], color=colour, label=f"prune={p!r}")
        right.plot(h[:, 0] / 1e6, h[:, 1], color=colour, label=f"prune={p!r}")
    for axes, what in ((left, "state, MB"), (right, "µs an instance")):
        axes.set(xlabel="instances, millions", ylabel=what, ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    figure.savefig(path, dpi=150)


PARTS: list[Callable[[Any], Any]] = [
    lambda x: np.sin(2 * x),
    np.abs,
    lambda x: x**2,
    lambda x: (x > 0.5) * 1.0,
    lambda x: x,
    lambda x: np.exp(x / 2),
    np.cos,
    lambda x: np.tanh(3 * x),
    lambda x: (np.abs(x) < 0.6) * 1.0,
    lambda x: np.maximum(x, 0.0),
]


def additive(n: int, seed: int, removed: float) -> tuple[Block, Any]:
    """Generate ten non-linear standardised terms, amplitudes .75^k in random order; the truth is their variance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    amplitude = 0.75 ** rng.permutation(10)
    parts = np.stack([part(X[:, j]) for j, part in enumerate(PARTS)], axis=1)
    z = ((parts - parts.mean(0)) / parts.std(0)) @ amplitude + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < removed] = np.nan
    return to_block(X, (z > np.median(z)).tolist()), amplitude**2


def interactions(args: argparse.Namespace) -> None:
    """Measure the error on the exclusive or of two signs among other features, over the second half of the stream."""
    header("features", "removed", "least possible", "ORF3V", *(f"pairs={k}" for k in (5, 10, 20)))
    for features in (2, 5, 10, 20):
        for removed in (0.0, 0.25):
            errors = []
            for pairs in (0, 5, 10, 20):
                found = []
                for seed in range(args.repeats):
                    rng = np.random.default_rng(seed)
                    X = rng.normal(size=(6_000, features))
                    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
                    X[rng.random(X.shape) < removed] = np.nan
                    learner = ORF3V(pairs=pairs)
                    codes, _ = learner.run_block(to_block(X, y.tolist()))
                    found.append(
                        np.mean([learner.classes[c] != v for c, v in zip(codes[3_000:], y[3_000:], strict=True)])
                    )
                errors.append(float(np.mean(found)))
            least = (1 - (1 - removed) ** 2) / 2
            show(features, removed, f"{least:.3f}", *(f"{e:.3f}" for e in errors))


def importances(args: argparse.Namespace) -> None:
    header("removed", "rank correlation, mean", "smallest", "seeds")
    for removed in (0.0, 0.25, 0.5, 0.75):
        found = []
        for seed in range(args.repeats):
            block, truth = additive(20_000, seed, removed)
            model = ORF3V()
            model.learn_many(block)
            weights = model.importances()
            found.append(spearmanr([weights[j] for j in range(10)], truth).statistic)
        show(removed, f"{np.mean(found):.2f}", f"{min(found):.2f}", args.repeats)


def main() -> None:
    parts = {f.__name__: f for f in (table2, settings, imdb, speed, openmoa, bursts, importances, interactions)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--datasets", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="first shuffle")
    parser.add_argument("--river", action="store_true", help="also run river's learners (minutes)")
    parser.add_argument("--cut", type=int, default=3_000, help="most rows of a set with river's learners")
    parser.add_argument("--budget", type=int, default=6_000, help="most rows over all shuffles with river's learners")
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=7_500, help="of IMDB")
    parser.add_argument("--plot", help="picture of `bursts`, as a file")
    args = parser.parse_args()
    args.rows = args.rows or (4_000 if args.part == "speed" else 1_000_000)
    parts[args.part](args)


if __name__ == "__main__":
    main()

"""Compare the default learner with river's learners and our own single methods, on data sets outside the papers.

    python benchmarks/auto_outside.py --repeats 3

Prints the error by set and scenario, and the average rank of every learner. Sets: those that river and scikit-learn
bundle and no paper uses (phishing, bananas, solar-flare, image-segments, digits), and three that scikit-learn makes
(clusters, an additive rule, a ring), at most `--rows` permuted rows of each.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import compose, forest, linear_model, naive_bayes, preprocessing, tree
from river import datasets as river_sets
from river.multiclass import OneVsRestClassifier
from scipy.stats import rankdata
from sklearn.datasets import load_digits, make_classification, make_friedman1, make_gaussian_quantiles

import varifold
from varifold import evaluate, streams

SCENARIOS = ("vfs:0.5", "trapezoidal", "informative")
SINGLE = ("additive", "arow", "olvf", "gaussiannb", "ftrladp", "orf3v", "neighbours")


def logistic() -> Any:
    return compose.Pipeline(preprocessing.StandardScaler(), OneVsRestClassifier(linear_model.LogisticRegression()))


LEARNERS: dict[str, Callable[[], Any]] = {
    "auto": varifold.AutoClassifier,
    "auto fast": lambda: varifold.AutoClassifier(budget="fast"),
    **{name: varifold.models[name] for name in SINGLE},
    "river LR": logistic,
    "river GaussianNB": naive_bayes.GaussianNB,
    "river HoeffdingTree": tree.HoeffdingTreeClassifier,
    "river ARF": lambda: forest.ARFClassifier(n_models=10, seed=1),
}


def sets() -> Iterator[tuple[str, varifold.Block]]:
    for name, made in (
        ("phishing", river_sets.Phishing),
        ("bananas", river_sets.Bananas),
        ("solar-flare", river_sets.SolarFlare),
        ("segments", river_sets.ImageSegments),
    ):
        rows = list(made())
        if name == "solar-flare":
            rows = [(x, y["c-class-flares"] > 0) for x, y in rows]
        yield name, varifold.to_block([x for x, _ in rows], [y for _, y in rows])
    digits = load_digits()
    yield "digits", varifold.to_block(digits.data, digits.target)
    yield "clusters", varifold.to_block(*make_classification(2000, 20, n_informative=8, n_classes=3, random_state=0))
    values, target = make_friedman1(2000, 15, noise=1.0, random_state=0)
    yield "friedman", varifold.to_block(values, target > np.median(target))
    yield "ring", varifold.to_block(*make_gaussian_quantiles(n_samples=2000, n_features=8, n_classes=2, random_state=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--without", default="", help="learners to leave out, separated by commas")
    args = parser.parse_args()
    names = [n for n in LEARNERS if n not in args.without.split(",")]
    ranks = []
    print(f"{'':28}", *(f"{n[:12]:>13}" for n in names))
    for name, block in sets():
        for scenario in SCENARIOS:
            errors = np.zeros((args.repeats, len(names)))
            for seed in range(args.repeats):
                some = block.take(np.random.default_rng(seed).permutation(len(block))[: args.rows])
                prepared = streams.prepare(some, scenario, seed=seed)
                for i, learner in enumerate(names):
                    errors[seed, i] = evaluate.prequential(LEARNERS[learner](), prepared).cer
            mean = errors.mean(axis=0)
            ranks.append(rankdata(mean))
            print(f"{name + ' ' + scenario:28}", *(f"{e:13.4f}" for e in mean), flush=True)
    print(f"{'average rank':28}", *(f"{r:13.2f}" for r in np.mean(ranks, axis=0)))


if __name__ == "__main__":
    main()

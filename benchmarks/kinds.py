"""Streams of one kind each, 2,000 rows: boundaries, interactions, words, labels that are rare or depend on nothing.

`benchmarks.auto_hindsight kinds` compares the default learner with the best single method on them. Choices are made on
seeds from 100 on; 0 to 4 are for the report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rows = list[tuple[dict[str, Any], Any]]
Numbers = np.ndarray[Any, Any]
ROWS = 2000


def pairs(values: Numbers, labels: Numbers) -> Rows:
    """Pair rows of numbers with their labels."""
    rows = ({f"f{j}": v for j, v in enumerate(row)} for row in values.tolist())
    return list(zip(rows, labels.astype(int).tolist(), strict=True))


def normal(seed: int, columns: int, rows: int = ROWS) -> tuple[np.random.Generator, Numbers]:
    """Return a generator, and numbers drawn from it."""
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(rows, columns))


def sklearn_made(name: str, **parameters: Any) -> Callable[[int], Rows]:
    """Return a function that permutes what one of scikit-learn's generators makes."""

    def make(seed: int) -> Rows:
        from sklearn import datasets

        values, labels = getattr(datasets, f"make_{name}")(n_samples=ROWS, random_state=seed, **parameters)
        order = np.random.default_rng(seed).permutation(ROWS)
        return pairs(values[order], np.unique(labels[order], return_inverse=True)[1])

    return make


def radius(seed: int) -> Rows:
    """Generate ten numbers; the label is whether their squares exceed 9.34 in all (scikit-learn's hastie)."""
    from sklearn.datasets import make_hastie_10_2

    values, labels = make_hastie_10_2(ROWS, random_state=seed)
    return pairs(values, labels > 0)


def with_absent(make: Callable[[int], Rows], present: float) -> Callable[[int], Rows]:
    """Return a function that makes a stream of which each value is present with this probability."""

    def thinned(seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        return [({k: v for k, v in x.items() if rng.random() < present} or x, y) for x, y in make(seed)]

    return thinned


def linear(seed: int) -> Rows:
    """Generate twelve numbers with a logistic label."""
    rng, values = normal(seed, 12)
    return pairs(values, values @ rng.normal(size=12) + 0.7 * rng.logistic(size=ROWS) > 0)


def log_normal(seed: int) -> Rows:
    """Generate eight columns with long tails whose logarithms decide."""
    rng, values = normal(seed, 8)
    labels = values @ rng.normal(size=8) + rng.logistic(size=ROWS) > 0
    return pairs(np.exp(1.5 * values), labels)


def rare(seed: int) -> Rows:
    """Generate labels of which 3 % are true."""
    rng, values = normal(seed, 6)
    return pairs(values, values[:, 0] + 0.5 * values[:, 1] ** 2 + 0.5 * rng.normal(size=ROWS) > 3.2)


def covariances(seed: int) -> Rows:
    """Generate three labels that differ in the covariance of six numbers."""
    rng, values = normal(seed, 6)
    mixing, labels = rng.normal(size=(3, 6, 6)), rng.integers(3, size=ROWS)
    return pairs(np.einsum("nij,nj->ni", mixing[labels], values), labels)


def topics(seed: int) -> Rows:
    """Generate counts of 25 words, half of them drawn from one of four topics, by Zipf's law."""
    rng, vocabulary = np.random.default_rng(seed), 2000
    common = 1 / np.arange(1, vocabulary + 1) ** 1.1
    own = common * rng.lognormal(size=(4, vocabulary))
    shares = 0.5 * own / own.sum(axis=1, keepdims=True) + 0.5 * common / common.sum()
    rows: Rows = []
    for _ in range(ROWS):
        topic = int(rng.integers(4))
        words, counts = np.unique(rng.choice(vocabulary, size=25, p=shares[topic]), return_counts=True)
        rows.append(({f"w{i}": float(n) for i, n in zip(words, counts, strict=True)}, topic))
    return rows


def exclusive_or(columns: int, signs: int, rows: int = ROWS, noise: float = 0.0) -> Callable[[int], Rows]:
    """Return a generator of the exclusive or of the signs of the first numbers; a part `noise` of labels is wrong."""

    def make(seed: int) -> Rows:
        rng, values = normal(seed, columns, rows)
        return pairs(values, ((values[:, :signs] > 0).sum(axis=1) % 2 == 1) != (rng.random(rows) < noise))

    return make


def strings(seed: int) -> Rows:
    """Generate the exclusive or of four among eight string columns."""
    bits = np.random.default_rng(seed).integers(2, size=(ROWS, 8))
    return [({f"c{j}": "uv"[v] for j, v in enumerate(row)}, int(row[:4].sum() % 2)) for row in bits]


def checkerboard(seed: int) -> Rows:
    """Generate a board of four by four squares, and three columns that say nothing."""
    rng, noise = normal(seed, 3)
    place = 4 * rng.random((ROWS, 2))
    return pairs(np.hstack([place, noise]), np.floor(place).sum(axis=1) % 2)


def nothing(seed: int) -> Rows:
    """Generate labels that depend on nothing."""
    rng, values = normal(seed, 10)
    return pairs(values, rng.random(ROWS) < 0.4)


STREAMS: dict[str, Callable[[int], Rows]] = {
    "radius in 10": radius,
    "radius in 10, 30 % absent": with_absent(radius, 0.7),
    "quantiles, 2 labels": sklearn_made("gaussian_quantiles", n_features=10, n_classes=2),
    "quantiles, 3 labels": sklearn_made("gaussian_quantiles", n_features=6, n_classes=3),
    "circles": sklearn_made("circles", noise=0.2, factor=0.5),
    "moons": sklearn_made("moons", noise=0.25),
    "blobs": sklearn_made("blobs", centers=5, n_features=4, cluster_std=4.0),
    "hypercube": sklearn_made("classification", n_features=20, n_informative=6, n_redundant=4, n_clusters_per_class=3),
    "hypercube, 5 labels": sklearn_made(
        "classification", n_features=20, n_informative=10, n_classes=5, n_clusters_per_class=1
    ),
    "hypercube, wrong labels": sklearn_made("classification", n_features=15, n_informative=5, flip_y=0.2),
    "covariances": covariances,
    "linear": linear,
    "linear, 40 % absent": with_absent(linear, 0.6),
    "log-normal": log_normal,
    "rare label": rare,
    "topics": topics,
    "xor of 3 in 6": exclusive_or(6, 3),
    "xor of 3 in 6, 4,000 rows": exclusive_or(6, 3, 4000),
    "xor of 3 in 6, wrong labels": exclusive_or(6, 3, 4000, 0.1),
    "xor of 3 in 10, 4,000 rows": exclusive_or(10, 3, 4000),
    "xor of 2 in 15": exclusive_or(15, 2),
    "xor of 4 in 6": exclusive_or(6, 4, 4000),
    "xor of 4 strings": strings,
    "checkerboard": checkerboard,
    "nothing": nothing,
}

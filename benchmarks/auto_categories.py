"""Measure the default classifier on string columns with hundreds of levels, and on words.

    python benchmarks/auto_categories.py [--seeds 0 1 2] [--rows 4000]

Predict, then learn. First streams with a column of 100 to 2,000 levels and eight others; the levels are informative
about the label or not: log loss and area under the ROC curve (error with more than two labels) of
`AutoClassifier` without the column, of the learner with it, and of river's logistic regression without the column
and with it. Then words (a bag of words, coded
1, whose vocabulary grows): the error, compared with ORF3V and NB3 alone. Choices were made on seeds 100 and 101.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from auto_peers import Rows, scaled_regression
from sklearn.metrics import roc_auc_score

import varifold
from varifold import AutoClassifier

WIDE = ("city", "name")


def cities(
    seed: int, n: int, levels: int = 600, effect: float = 1.0, zipf: float = 0.0, labels: int = 2, turn: float = 0.0
) -> Rows:
    """Generate eight numbers and a city; `effect` is the deviation of city scores, `turn` a slope signed by city."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 8))
    share = 1.0 / np.arange(1, levels + 1) ** zipf
    city = rng.choice(levels, size=n, p=share / share.sum())
    own = rng.normal(size=(levels, labels)) * effect
    weights = rng.normal(size=(8, labels)) * np.array([1.0, 0.7, 0.5, 0.3, 0.0, 0.0, 0.0, 0.0])[:, None]
    scores = numbers @ weights + own[city] + rng.gumbel(size=(n, labels))
    scores[:, 1] += turn * np.sign(own[city, 1]) * numbers[:, 4]
    rows = []
    for i in range(n):
        x: dict[str, Any] = {f"n{j}": float(v) for j, v in enumerate(numbers[i])}
        rows.append(({**x, "city": f"c{city[i]}"}, int(scores[i].argmax())))
    return rows


def curved(seed: int, n: int, effect: float = 0.0) -> Rows:
    """Generate four correlated numbers with curved effects and wide string columns, 1,518 levels in total."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 4))
    numbers = hidden @ rng.normal(size=(4, 4))
    kinds, of_kind = rng.integers(0, 6, size=(n, 3)), 0.5 * rng.normal(size=(3, 6))
    city, name, own = rng.integers(0, 600, size=n), rng.integers(0, 900, size=n), effect * rng.normal(size=600)
    odds = 1.2 * np.tanh(1.5 * hidden[:, 0]) + 0.8 * (hidden[:, 1] ** 2 - 1) + 0.5 * hidden[:, 2] + own[city]
    odds += sum(of_kind[j][kinds[:, j]] for j in range(3))
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    rows: Rows = []
    for i in range(n):
        x: dict[str, Any] = {f"n{j}": float(v) for j, v in enumerate(numbers[i])}
        x |= {f"k{j}": f"v{kinds[i, j]}" for j in range(3)}
        rows.append(({**x, "city": f"c{city[i]}", "name": f"p{name[i]}"}, int(y[i])))
    return rows


def words(seed: int, n: int) -> Rows:
    """Generate twenty words of a vocabulary that grows to 6,000; three in ten belong to the label's topic."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for t in range(n):
        y = int(rng.random() < 0.5)
        known = 500 + 5_500 * t // n
        drawn = (known * rng.random(20) ** 3).astype(int)
        topic = rng.random(20) < 0.3
        drawn = np.where(topic, drawn - drawn % 10 + y, drawn)
        rows.append(({f"w{w}": 1.0 for w in drawn}, y))
    return rows


STREAMS: dict[str, Callable[[int, int], Rows]] = {
    "600 cities": cities,
    "600 cities, strong": lambda s, n: cities(s, n, effect=2.0),
    "600 cities, weak": lambda s, n: cities(s, n, effect=0.4),
    "600 cities, noise": lambda s, n: cities(s, n, effect=0.0),
    "Zipf": lambda s, n: cities(s, n, zipf=1.0),
    "Zipf, noise": lambda s, n: cities(s, n, effect=0.0, zipf=1.0),
    "interacting": lambda s, n: cities(s, n, zipf=0.7, turn=1.5),
    "2,000 cities": lambda s, n: cities(s, n, levels=2000, zipf=0.5),
    "100 cities": lambda s, n: cities(s, n, levels=100),
    "five labels": lambda s, n: cities(s, n, zipf=0.5, labels=5),
    "cities and names": lambda s, n: curved(s, n, effect=1.0),
    "cities and names, noise": curved,
}


def narrow(rows: Rows) -> Rows:
    """Return the rows without the wide columns."""
    return [({name: v for name, v in x.items() if name not in WIDE}, y) for x, y in rows]


def judged(model: Any, rows: Rows) -> tuple[float, float, float]:
    """Return error, log loss, and area under the ROC curve (NaN with more than two labels)."""
    wrong, loss, chance, labels = 0, 0.0, [], sorted({y for _, y in rows})
    for x, y in rows:
        probabilities = model.predict_proba_one(x) or dict.fromkeys(labels, 1.0 / len(labels))
        wrong += max(probabilities, key=probabilities.__getitem__) != y
        loss -= math.log(max(probabilities.get(y, 0.0), 1e-3))
        chance.append(probabilities.get(1, 0.0))
        model.learn_one(x, y)
    area = roc_auc_score([y for _, y in rows], chance) if len(labels) == 2 else math.nan
    return wrong / len(rows), loss / len(rows), area


def on_columns(seeds: list[int], n: int) -> None:
    runs: dict[str, Callable[[Rows], tuple[float, float, float]]] = {
        "without": lambda rows: judged(AutoClassifier(), narrow(rows)),
        "auto": lambda rows: judged(AutoClassifier(), rows),
        "river, without": lambda rows: judged(scaled_regression(), narrow(rows)),
        "river": lambda rows: judged(scaled_regression(), rows),
    }
    print(f"{'log loss, AUC (error)':24}" + " ".join(f"{name:>14}" for name in runs))
    losses = []
    for stream, make in STREAMS.items():
        found = np.array([[run(make(seed, n)) for run in runs.values()] for seed in seeds]).mean(axis=0)
        losses.append(found[:, 1])
        cells = [f"{loss:.4f} {area if area == area else error:.4f}" for error, loss, area in found]
        print(f"{stream:24}" + " ".join(f"{cell:>14}" for cell in cells), flush=True)
    print(f"{'mean':24}" + " ".join(f"{loss:7.4f}       " for loss in np.mean(losses, axis=0)))


def on_words(seeds: list[int], n: int) -> None:
    made = {"auto": AutoClassifier, "ORF3V": varifold.ORF3V, "NB3": varifold.NB3}
    found = {name: np.mean([judged(make(), words(seed, n))[0] for seed in seeds]) for name, make in made.items()}
    print("\nwords, error: " + ", ".join(f"{name} {error:.4f}" for name, error in found.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=4000)
    args = parser.parse_args()
    on_columns(args.seeds, args.rows)
    on_words(args.seeds, args.rows)


if __name__ == "__main__":
    main()

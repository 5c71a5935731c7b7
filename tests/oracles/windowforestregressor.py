"""The window forest for regression, in plain Python: the classifier's with means at the nodes and squared errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tests.oracles.windowforest import RIGHT, USUAL, Node, Row, WindowForestOracle, side

Rows = list[tuple[Row, float, float]]


def squares(rows: Rows) -> float:
    """Return the weighted sum of squared deviations of the targets from their mean."""
    y, w = np.array([(y, w) for _, y, w in rows]).T
    return float(np.sum(w * (y - np.average(y, weights=w)) ** 2))


class WindowForestRegressorOracle(WindowForestOracle):
    """Window forest whose nodes hold the targets that reached them, and their weights."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.targets: list[tuple[float, float]] = []
        self.typical = self.squared = 0.0

    def mean(self) -> float:
        y, w = np.array(self.targets).T
        return float(np.average(y, weights=w))

    # ---------------------------------------------------------------- predicting

    def predicted(self, x: Row) -> list[list[tuple[int | None, float]]]:
        """Return for each tree the nodes on the path: key of the split above, and the node's prediction."""
        found = []
        for node in [*self.forest, *self.earlier]:
            predicted, key, path = self.mean(), None, []
            while True:
                y, w = np.array(node.counts).T
                predicted = (w @ y + self.smoothing * predicted) / (w.sum() + self.smoothing)
                path.append((key, float(predicted)))
                if not node.children:
                    break
                key = node.split[0] if node.split else 0
                node = node.children[side(x, node.split)]
            found.append(path)
        return found

    def predict(self, x: Row) -> float:
        if not self.targets:
            return 0.0
        if not self.forest and not self.earlier:
            return self.mean()
        return float(np.dot(self.weights(), [path[-1][1] for path in self.predicted(x)]))

    def scores(self, x: Row) -> list[float]:
        return [self.predict(x)]

    def parts(self, x: Row) -> dict[int, float]:
        """Return the contribution of each column's splits (by slot); the rest of the prediction has the key 0."""
        paths = self.predicted(x)
        found: dict[int, float] = {}
        for weight, path in zip(self.weights() if paths else [], paths, strict=True):
            for (_, before), (key, after) in itertools.pairwise(path):
                found[key // 2] = found.get(key // 2, 0.0) + weight * (after - before)
        found.pop(0, None)
        return {0: self.predict(x) - math.fsum(found.values()), **found}

    # ---------------------------------------------------------------- learning

    def code(self, label: float) -> float:
        return label

    def loss(self, error: float) -> float:
        return min(error / (4 * self.typical), 1.0) if self.typical else float(error > 0)

    def judge(self, x: Row, y: float) -> None:
        if not self.forest and not self.earlier:
            return
        error = abs(y - self.predict(x))
        if self.forest and self.earlier:
            predicted, n = [path[-1][1] for path in self.predicted(x)], len(self.forest)
            self.compare(self.loss(abs(y - np.mean(predicted[:n]))), self.loss(abs(y - np.mean(predicted[n:]))))
        self.watch(self.loss(error))
        if self.judged > 1 and self.typical:
            error = min(error, 10 * self.typical)
        self.typical += max(USUAL, 1 / max(self.judged, 1)) * (error - self.typical)

    def variance(self, loss: float, rate: float) -> float:
        self.squared += rate * (loss * loss - self.squared)
        return max(self.squared - self.usual**2, 0.0)

    def learn(self, x: Row, label: float, w: float) -> None:
        self.targets.append((label, w))
        super().learn(x, label, w)

    def join(self, node: Node, y: float, w: float) -> None:
        node.counts.append((y, w))  # type: ignore[arg-type]

    # ---------------------------------------------------------------- growing

    def fewest(self) -> int:
        return self.min_leaf

    def new_node(self) -> Node:
        return Node([])

    def counted(self, rows: Rows) -> Any:
        return [(y, w) for _, y, w in rows]

    def begin(self) -> None:
        super().begin()
        self.at_root = squares(self.pending[0][1])

    def differ(self, rows: Rows, counts: Any) -> bool:
        self.of_node = squares(rows) / sum(w for _, _, w in rows)
        return len({y for _, y, _ in rows}) > 1

    def tie(self, rows: Rows, total: Any) -> float:
        return self.of_node * sum(w for _, w in total)

    def worth(self, gain: float) -> float:
        return gain / self.at_root

    def gain(self, rows: Rows, split: Any, total: Any) -> float:
        """Return the decrease of the squared error."""
        right = [row for row in rows if side(row[0], split) == RIGHT]
        left = [row for row in rows if side(row[0], split) != RIGHT]
        return squares(rows) - squares(left) - squares(right)

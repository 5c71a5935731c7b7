"""AROW over values, levels and absence of the columns seen last, from its definition, on explicit dicts of inputs."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from tests.oracles.harness import ONE

OCTILES = [round(NormalDist().inv_cdf(j / 8), 4) for j in range(1, 8)]


class Recall:
    """A twin for any number of labels; instances map names to scaled values, `column=level` to 1."""

    takes_order = True

    def __init__(self, r: float, binned: bool = False, memory: float = 0.0, most: int = 64) -> None:
        self.r, self.binned, self.most = r, binned, most
        self.ceiling = memory / r if memory else np.inf
        self.labels: list[Any] = []
        self.problems: list[dict[Any, list[float]]] = [{}]
        self.levels: dict[Any, tuple[float, float]] = {}
        self.seen: list[Any] = []
        self.noted: set[Any] = set()
        self.age: dict[Any, int] = {}
        self.names: set[Any] = set()

    def meet(self, y: Any) -> None:
        if y in self.labels:
            return
        self.labels.append(y)
        if len(self.labels) == 3:
            (held,) = self.problems
            self.problems = [{k: [-m, p] for k, (m, p) in held.items()}, {k: [*v] for k, v in held.items()}, {}]
        elif len(self.labels) > 3:
            self.problems.append({})

    def parts(self, what: tuple[Any, ...], x: float) -> dict[Any, float]:
        return {what: x, (*what, sum(x > edge for edge in OCTILES)): 1.0} if self.binned else {what: x}

    def inputs(self, x: dict[Any, float], learning: bool = False) -> dict[Any, float]:
        phi: dict[Any, float] = {}
        columns = {column(name) for name in x} | self.noted
        for name, value in x.items():
            phi |= self.parts((name, "value"), value) if numeric(name) else {(name, "value"): value}
        for name in self.seen[: self.most]:
            if name in x:
                level, slow = moved(self.levels[name], x[name])
                phi |= self.parts((name, "level"), level) | {(name, "slow"): slow}
            elif name not in columns:
                age = self.age[name] + (not learning)
                silence = age / (age + 10)
                phi |= {(name, "absence"): 1.0, (name, "silence"): silence}
                if name in self.levels:
                    level, slow = self.levels[name]
                    phi |= self.parts((name, "value"), level) | self.parts((name, "level"), level)
                    phi |= {(name, "slow"): slow, (name, "faded"): level * silence}
        return phi

    def scores(self, x: dict[Any, float]) -> dict[Any, float]:
        if len(self.labels) < 2:
            return dict.fromkeys(self.labels, 0.0)
        phi = self.inputs(x)
        found = [sum(w.get(k, (0.0,))[0] * v for k, v in phi.items()) for w in self.problems]
        return dict(zip(self.labels, found if len(found) > 1 else [-found[0], found[0]], strict=True))

    def touch(self, x: dict[Any, float], order: dict[Any, int]) -> None:
        """Note that the columns of the instance were seen."""
        self.names |= set(x) - {ONE}
        for name in sorted({column(n) for n in x} - {ONE}, key=lambda n: order.get(n, 0)):
            if name in x:
                self.levels.setdefault(name, (x[name], x[name]))
            self.seen = [name, *(n for n in self.seen if n != name)]
            self.age[name] = 0

    def learn_unlabelled(self, x: dict[Any, float], w: float, order: dict[Any, int]) -> None:
        """Remember values and ages."""
        self.touch(x, order)
        self.move(x)

    def move(self, x: dict[Any, float]) -> None:
        """Update the levels with the values present."""
        for name in set(x) & set(self.levels):
            self.levels[name] = moved(self.levels[name], x[name])

    def learn(self, x: dict[Any, float], y: Any, w: float, fresh: set[Any], order: dict[Any, int]) -> None:
        self.touch(x, order)
        phi = self.inputs(x, True)
        for label, held in zip(self.labels[-len(self.problems) :], self.problems, strict=True):
            wanted = label if len(self.problems) > 1 else self.labels[min(1, len(self.labels) - 1)]
            sign = 1.0 if y == wanted and len(self.labels) > 1 else -1.0
            self.step(held, phi, sign, self.r / w)
        self.move(x)

    def pass_time(self) -> None:
        """Increase the ages before one more instance is learned."""
        self.age = {name: age + 1 for name, age in self.age.items()}

    def step(self, held: dict[Any, list[float]], phi: dict[Any, float], y: float, r: float) -> None:
        """Do the diagonal step of AROW."""
        loss = 1.0 - y * sum(held.get(k, (0.0,))[0] * v for k, v in phi.items())
        if loss <= 0:
            return
        variance = {k: 1.0 / (1.0 + held.get(k, (0.0, 0.0))[1]) for k in phi}
        beta = 1.0 / (sum(v * v * variance[k] for k, v in phi.items()) + r)
        for k, v in phi.items():
            mean, precision = held.get(k, (0.0, 0.0))
            held[k] = [mean + beta * loss * y * variance[k] * v, min(precision + v * v / r, self.ceiling)]

    def forget(self, name: Any) -> None:
        self.names.discard(name)
        gone = {name} if column(name) in {column(n) for n in self.names} else {name, column(name)}
        self.seen = [n for n in self.seen if n not in gone]
        for n in gone:
            self.levels.pop(n, None)
        for i, held in enumerate(self.problems):
            self.problems[i] = {k: v for k, v in held.items() if k[0] not in gone}


def column(name: Any) -> Any:
    """Return the column of a feature."""
    return name.split("=")[0] if isinstance(name, str) else name


def numeric(name: Any) -> bool:
    return name != ONE and column(name) == name


def moved(levels: tuple[float, float], x: float) -> tuple[float, float]:
    """Return both running means after one more value."""
    level, slow = levels
    return level + 0.6 * (x - level), slow + 0.15 * (x - slow)

"""`AskPolicy`: decide, instance by instance, whether to request a label, within a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from varifold.ask.estimate import Estimate, WeightedMean
from varifold.base.estimator import Name
from varifold.base.params import Integer, OneOf, Real, validate

__all__ = ["POLICIES", "AskPolicy"]

_WINDOW = 200
"""Instances among which one is compared, at least."""
_MOST_NAMES = 200_000

Probabilities = Mapping[Any, float]


def _margin(probabilities: Probabilities) -> float:
    """Return 1 less the distance between the two most probable labels."""
    first, second = sorted([*probabilities.values(), 0.0, 0.0])[-1:-3:-1]
    return 1.0 - (first - second)


def _entropy(probabilities: Probabilities) -> float:
    """Return the entropy as a share of the largest possible."""
    positive = [p for p in probabilities.values() if p > 0.0]
    return -sum(p * math.log(p) for p in positive) / math.log(max(2, len(probabilities)))


_UNCERTAINTY: dict[str, Callable[[Probabilities], float]] = {"margin": _margin, "entropy": _entropy}
POLICIES = ("mixed", "margin", "entropy", "novelty", "random")
"""Names of the policies."""


class AskPolicy:
    """Request labels where they are worth most, and no more of them than the budget allows.

    The worth of a label is compared with that of the latest instances; the higher it ranks, the more likely it is
    requested. A share of the budget goes to instances drawn at random: it finds changes where the classifier is sure
    and wrong. Since the probability of every request is known, the error among all instances can be estimated.

    Parameters
    ----------
    budget
        Share of the instances whose label may be requested, in (0, 1]. Over any n instances at most budget * n + burst
        labels are requested.
    by
        Worth of a label. ``"margin"``: the two most probable labels are close. ``"entropy"``: no label is probable.
        ``"novelty"``: features that no labelled instance had. ``"mixed"``: margin plus novelty. ``"random"``: all the
        same.
    explore
        Share of the budget for instances drawn at random, in (0, 1].
    burst
        Labels that may be saved up, >= 1. The stream begins with as many: the first `burst` instances are requested.
    seed
        Seed of the draws; they are hashes of the step.

    Examples
    --------
    >>> import random
    >>> from varifold import AROW
    >>> from varifold.ask import AskPolicy
    >>> model, policy, rng = AROW(), AskPolicy(budget=0.05), random.Random(1)
    >>> for step in range(4000):
    ...     x = {"heat": rng.gauss(0, 1), "noise": rng.gauss(0, 1)}
    ...     if policy.should_ask(model, x):
    ...         y = x["heat"] > 0  # a person would look at it
    ...         policy.score(model.predict_one(x) == y)
    ...         model.learn_one(x, y)
    >>> policy.seen, policy.asked <= 210
    (4000, True)
    >>> policy.estimate().error < policy.estimate().plain
    True

    """

    def __init__(
        self, budget: float = 0.05, by: str = "mixed", explore: float = 0.2, burst: int = 10, seed: int = 0
    ) -> None:
        validate(
            "AskPolicy",
            {
                "budget": Real(0, 1, open_low=True),
                "by": OneOf(*POLICIES),
                "explore": Real(0, 1, open_low=True),
                "burst": Integer(1),
                "seed": Integer(0),
            },
            {"budget": budget, "by": by, "explore": explore, "burst": burst, "seed": seed},
        )
        self.budget = budget
        self.by = by
        self.explore = explore
        self.burst = burst
        self.seed = seed
        self.seen = 0
        self.asked = 0
        self._credit = float(burst)
        self._latest = np.zeros(max(_WINDOW, math.ceil(20.0 / budget)))
        self._names: dict[Name, None] = {}
        self._probability: float | None = None
        self._errors = WeightedMean()

    def clone(self) -> AskPolicy:
        """Return a new policy with the same parameters."""
        return AskPolicy(self.budget, self.by, self.explore, self.burst, self.seed)

    def should_ask(self, learner: Any, x: Mapping[Name, Any]) -> bool:
        """Return whether to request the label of an instance; the learner is not changed."""
        worth = self._worth(learner, x)
        rank = self._rank(worth)
        self._credit = min(float(self.burst), self._credit + self.budget)
        self._latest[self.seen % len(self._latest)] = worth
        self.seen += 1
        if self._credit < 1.0:
            return False
        probability = self._chance(rank)
        if _draw(self.seen, self.seed) >= probability:
            return False
        self._credit -= 1.0
        self.asked += 1
        self._probability = probability
        self._remember(x)
        return True

    def score(self, right: bool) -> None:
        """Record whether the prediction for the instance requested last was right, before it is learned."""
        if self._probability is not None:
            self._errors.add(0.0 if right else 1.0, self._probability)
            self._probability = None

    def estimate(self) -> Estimate:
        """Estimate the error among all instances from the labels scored so far."""
        return self._errors.estimate()

    def _chance(self, rank: float) -> float:
        """Return the probability of a request: about 1 at the top rank, small but not 0 at the bottom.

        Over uniform ranks its mean is the budget: a share `explore` of it is constant, the rest is a power of the rank.
        """
        if self.asked < self.burst or self.budget == 1.0:
            return 1.0
        share = self.budget * (0.5 + self._credit / self.burst)  # request more while labels are saved up
        power = max(0.0, 1.0 / max((1.0 - self.explore) * self.budget, 1e-9) - 1.0)
        chance: float = share * (self.explore + (1.0 - self.explore) * (power + 1.0) * rank**power)
        return min(1.0, chance)

    def _worth(self, learner: Any, x: Mapping[Name, Any]) -> float:
        if self.by == "random":
            return 0.0
        worth = 0.0
        if self.by != "novelty":
            probabilities = learner.predict_proba_one(x)
            worth = _UNCERTAINTY.get(self.by, _margin)(probabilities) if len(probabilities) > 1 else 1.0
        if self.by in ("mixed", "novelty"):
            present = [name for name, value in x.items() if value is not None and value == value]
            worth += sum(name not in self._names for name in present) / max(1, len(present))
        return worth

    def _rank(self, worth: float) -> float:
        """Return the share of the latest instances that are worth less; a tie is broken at random."""
        latest = self._latest[: min(self.seen, len(self._latest))]
        if not len(latest):
            return 1.0
        ties = int((latest == worth).sum())
        return (int((latest < worth).sum()) + _draw(self.seen, self.seed + 1) * (ties + 1)) / (len(latest) + 1)

    def _remember(self, x: Mapping[Name, Any]) -> None:
        for name in x:
            self._names[name] = None
        while len(self._names) > _MOST_NAMES:
            del self._names[next(iter(self._names))]


def _draw(step: int, seed: int) -> float:
    """Return a number in [0, 1), a hash of step and seed (splitmix64)."""
    z = (step * 0x9E3779B97F4A7C15 + (seed + 1) * 0xD1342543DE82EF95) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) / 2.0**64

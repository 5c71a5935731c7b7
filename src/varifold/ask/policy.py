"""`AskPolicy`: decide, instance by instance, whether to request a label, within a budget."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from varifold.ask.estimate import ErrorEstimator, Estimate
from varifold.ask.worth import Instance, Probabilities, Regions, entropy, expected_gradient, margin
from varifold.base.params import Integer, OneOf, Real, validate
from varifold.errors import ParameterError

__all__ = ["POLICIES", "AskPolicy", "Decision"]

POLICIES = ("mixed", "margin", "entropy", "change", "novelty", "variable", "split", "paa", "random")
"""Names of the policies."""
_WITHOUT_PROBABILITIES = ("novelty", "random")
_WITH_REGIONS = ("mixed", "change", "novelty")
_THRESHOLDS = ("variable", "split")
_THRESHOLD_STEP = 0.01
_SMALLEST_TUNING, _LARGEST_TUNING = 1e-100, 1e100
_LARGEST_WINDOW = 2_000
_ADVANCE = 1_000
"""Instances whose budget by worth is spent at the start, when labels are worth most."""
_TOP = 0.5
"""Chance of the instance that is worth most, at the usual pace."""


class Decision(NamedTuple):
    """Whether the label of an instance is requested, and why."""

    ask: bool
    chance: float
    """Probability of the request, as it was before the draw."""
    worth: float
    drawn: float
    """Probability with which the instance was drawn whatever its worth; 0 if it was not."""
    paid: bool
    """Whether a saved label was spent; draws have a budget of their own."""
    tuning: float
    """Threshold or smoothing constant of the policies that have one, after the decision."""


class AskPolicy:
    """Request labels where they are worth most, and no more of them than the budget allows.

    The worth of a label is compared with that of the latest instances; the higher it ranks, the more likely it is
    requested. A share of the budget goes to instances drawn at random: it finds changes where the classifier is sure
    and wrong. Since the probability of every request is known, the error among all instances can be estimated.

    Parameters
    ----------
    budget
        Share of the instances whose label is requested, in (0, 1]. The first `burst` + 1000 * (1 - explore) * budget
        instances are requested, and fewer of the next thousand. Over any 1,000 instances no more than 1000 * budget +
        `burst` + 2 labels are requested, and after the first thousand no fewer than 1000 * budget - `burst` - 2.
    by
        Worth of a label. ``"margin"``: the two most probable labels are close. ``"entropy"``: no label is probable.
        ``"change"``: the classifier is expected to change much (a long expected gradient). ``"novelty"``: values in
        regions where no label was requested. ``"mixed"``: margin and novelty. ``"variable"`` and ``"split"``: the
        variable threshold of Žliobaitė et al., randomised, and with a share at random. ``"paa"``: the chance of
        passive-aggressive active learning. ``"random"``: all the same.
    explore
        Share of the budget for instances drawn at random, in (0, 1].
    burst
        Labels that may be saved up, >= 1.
    seed
        Seed of the draws; they are hashes of the step.

    Notes
    -----
    *Deviations from the papers.* All policies share the budget, which bounds every window; those of the papers bound
    the mean. The variable threshold changes only while the budget allows a request, as in its paper. The smoothing
    constant of ``"paa"`` follows the budget instead of being a parameter, and the margin is that of probabilities.

    *Cost.* One prediction, and for ``"mixed"``, ``"change"`` and ``"novelty"`` a few operations per feature.

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
    >>> policy.seen, 190 <= policy.asked <= 210
    (4000, True)
    >>> policy.estimate().error < policy.estimate().plain
    True

    References
    ----------
    I. Žliobaitė, A. Bifet, B. Pfahringer, G. Holmes. Active learning with drifting streaming data. IEEE Transactions on
    Neural Networks and Learning Systems 25(1), 2014.

    J. Lu, P. Zhao, S. Hoi. Online passive-aggressive active learning. Machine Learning 103(2), 2016.

    """

    def __init__(
        self, budget: float = 0.05, by: str = "mixed", explore: float = 0.2, burst: int = 8, seed: int = 0
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
        self.last: Decision | None = None
        """Decision about the latest instance."""
        self._credit = float(burst)
        self._window = min(_LARGEST_WINDOW, max(200, math.ceil(20.0 / budget)))
        self._latest: deque[float] = deque()
        self._sorted: list[float] = []
        self._regions = Regions()
        self._tuning = 1.0 if by in _THRESHOLDS else budget
        self.confidence: float | None = None
        """Probability of the label predicted for the latest instance."""
        self._outcomes = ErrorEstimator()

    @property
    def params(self) -> dict[str, Any]:
        """Parameters by name."""
        return {name: getattr(self, name) for name in ("budget", "by", "explore", "burst", "seed")}

    @property
    def start(self) -> int:
        """Number of the first instances that are requested whatever they are worth."""
        return self.burst + round(_ADVANCE * self._rate)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make a policy of ``BUDGET[:BY]``, such as ``0.05:margin``."""
        budget, _, by = text.partition(":")
        try:
            return cls(float(budget), by=by or POLICIES[0])
        except ValueError as error:
            raise ParameterError(f"{text!r} is not of the form BUDGET[:POLICY]: {error}") from None

    def clone(self) -> AskPolicy:
        """Return a new policy with the same parameters."""
        return AskPolicy(**self.params)

    def should_ask(self, learner: Any, x: Instance) -> bool:
        """Return whether to request the label of an instance; the learner is not changed."""
        wanted = self.by not in _WITHOUT_PROBABILITIES
        return self.decide(x, learner.predict_proba_one(x) if wanted else {}).ask

    def decide(self, x: Instance, probabilities: Probabilities) -> Decision:
        """Decide about an instance whose labels have been predicted with these probabilities."""
        starting = self.asked < self.start
        worth = self.worth(x, probabilities)
        value = 1.0 if starting else self._value_chance(self._rank(worth), probabilities)
        size, at_random = self._stratum()
        by_value = _hash(self.seen, self.seed) < value
        chance = 1.0 - (1.0 - 1.0 / size) * (1.0 - value)
        drawn = 1.0 if starting else float(at_random) / size
        paid = by_value and not at_random
        tuning = self._tuned(value, requested=by_value)
        decision = Decision(by_value or at_random, chance, worth, drawn, paid, tuning)
        self.confidence = max(probabilities.values(), default=None)
        self.repeat(x, decision)
        return decision

    def repeat(self, x: Instance, decision: Decision) -> None:
        """Apply a decision that was made before, when the same instance was predicted: for recovery from a log."""
        self.seen += 1
        self.asked += decision.ask
        self._credit += self._rate - decision.paid  # at most `burst` and a bit: a full one is spent at once
        self._tuning = decision.tuning
        self._latest.append(decision.worth)
        insort(self._sorted, decision.worth)
        if len(self._latest) > self._window:
            del self._sorted[bisect_left(self._sorted, self._latest.popleft())]
        if self.by in _WITH_REGIONS:
            self._regions.observe(x)
            if decision.ask:
                self._regions.request(x)
        self.last = decision

    def score(self, right: bool, chance: float | None = None, confidence: float | None = None) -> None:
        """Record whether the prediction of a requested instance was right, before its label is learned.

        Without a chance it is the instance decided last; an instance that was not requested is not counted.
        """
        if chance is None:
            if self.last is None or not self.last.ask:
                return
            chance, confidence = self.last.chance, self.confidence
        self._outcomes.add(right, chance, confidence)

    def estimate(self) -> Estimate:
        """Estimate error and calibration among all instances from the labels scored so far."""
        return self._outcomes.estimate()

    # ------------------------------------------------------------------ chances

    @property
    def _rate(self) -> float:
        """Share of the instances that may be requested by worth."""
        return (1.0 - self.explore) * self.budget

    def _stratum(self) -> tuple[int, bool]:
        """Return the number of instances of which one is drawn at random, and whether it is this one."""
        share = self.explore * self.budget
        if self.budget == 1.0:
            return 1, True
        number = math.floor(self.seen * share)
        first, end = math.ceil(number / share), math.ceil((number + 1) / share)
        if not first <= self.seen < end:  # a boundary, rounded
            return 1, True
        return end - first, self.seen == first + int(_hash(number, self.seed + 2) * (end - first))

    def _value_chance(self, rank: float, probabilities: Probabilities) -> float:
        """Return the probability of a request by worth."""
        available = self._credit + self._rate
        if available < 1.0:
            return 0.0
        if available >= self.burst:
            return 1.0  # a label saved any longer would be lost
        if self.by in _THRESHOLDS:
            ratio = max(probabilities.values(), default=0.0) / self._tuning
            if self.by == "split":
                return float(ratio < 1.0)
            return 0.5 * math.erfc((ratio - 1.0) / math.sqrt(2.0))  # the threshold times a normal number of mean 1
        pace = 0.5 + available / self.burst  # request more while labels are saved up
        if self.by == "paa":
            return min(1.0, pace * self._tuning / (self._tuning + 1.0 - margin(probabilities)))
        # a power of the rank whose mean, over uniform ranks, is pace * rate
        chance: float = pace * _TOP * rank ** max(0.0, _TOP / max(self._rate, 1e-9) - 1.0)
        return min(1.0, chance)

    def _tuned(self, value: float, *, requested: bool) -> float:
        """Return the threshold, or the smoothing constant that makes the mean chance the budget."""
        tuning = self._tuning
        if self.by in _THRESHOLDS and (requested or self._credit + self._rate >= 1.0):
            tuning *= 1.0 - _THRESHOLD_STEP if requested else 1.0 + _THRESHOLD_STEP
        if self.by == "paa" and 0.0 < value < 1.0 and self._rate > 0.0:
            tuning *= math.exp(0.02 * (1.0 - value / self._rate))
        return min(_LARGEST_TUNING, max(_SMALLEST_TUNING, tuning))

    def worth(self, x: Instance, probabilities: Probabilities) -> float:
        """Return the worth of the label of an instance; comparable only within one policy."""
        if self.by == "random":
            return 0.0
        if self.by == "novelty":
            return self._regions.novelty(x)
        unsure = _UNCERTAINTY.get(self.by, margin)(probabilities) if len(probabilities) > 1 else 1.0
        if self.by == "change":
            return unsure * self._regions.length(x)
        return unsure + self._regions.novelty(x) if self.by == "mixed" else unsure

    def _rank(self, worth: float) -> float:
        """Return the share of the latest instances that are worth less; a tie is broken at random."""
        less = bisect_left(self._sorted, worth)
        ties = bisect_right(self._sorted, worth) - less
        return (less + _hash(self.seen, self.seed + 1) * (ties + 1)) / (len(self._sorted) + 1)

    # ------------------------------------------------------------------ storage

    def dump(self) -> dict[str, Any]:
        """Return parameters and state as JSON."""
        regions = {"moments": self._regions.moments, "requested": self._regions.requested}
        state = {"seen": self.seen, "asked": self.asked, "credit": self._credit, "tuning": self._tuning}
        return {"params": self.params, **state, "latest": list(self._latest), **regions, "sums": self._outcomes.dump()}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Self:
        """Restore what dump() returned."""
        policy = cls(**state["params"])
        policy.seen, policy.asked = state["seen"], state["asked"]
        policy._credit, policy._tuning = state["credit"], state["tuning"]
        policy._latest, policy._sorted = deque(state["latest"]), sorted(state["latest"])
        policy._regions.moments = {name: list(moments) for name, moments in state["moments"].items()}
        policy._regions.requested = {name: dict(counts) for name, counts in state["requested"].items()}
        policy._outcomes.fill(state["sums"])
        return policy


_UNCERTAINTY = {"entropy": entropy, "change": expected_gradient}


def _hash(step: int, seed: int) -> float:
    """Return a number in [0, 1), a hash of step and seed (splitmix64)."""
    z = (step * 0x9E3779B97F4A7C15 + (seed + 1) * 0xD1342543DE82EF95) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) / 2.0**64

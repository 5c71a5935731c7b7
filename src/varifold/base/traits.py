"""Capabilities and cost of a learner, and facts about one feature, as typed records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Traits:
    """Capabilities of a learner with its current parameters and state."""

    multiclass: Literal["native", "one-vs-rest", "none"]
    """How more than two labels are learned; ``"none"`` for a regressor or detector."""
    cost: str
    """Cost per instance in terms of the present and the known features."""
    bounded_memory: bool
    """Whether the state stays bounded for any number of features (``max_features`` is set)."""
    uses_absence: bool
    """Whether the learner uses the absence of a feature as information."""
    randomized: bool
    uses_values: bool = True
    """Whether the learner uses the values of features, and not only their presence."""
    unlabelled: Literal["learned", "ignored"] = "ignored"
    """What becomes of an instance without a label (or target): `learn_one(x, None)` learns from it or does nothing."""
    merging: Literal["exact", "approximate"] | None = None
    """How `varifold.merge` combines such learners; None: it cannot, but `varifold.Vote` can combine classifiers."""
    notes: tuple[str, ...] = ()
    """Notes for the user on the current state, for instance that a cheaper method is in use."""
    task: Literal["classification", "regression", "detection"] = "classification"


@dataclass(frozen=True, slots=True)
class Feature:
    """Statistics of one feature in a learner."""

    first_seen: int
    last_seen: int
    count: int
    weight: float
    """Sum over labels of the absolute weights, or the method's own measure of importance."""
    role: str = ""
    """How the method uses the feature ('old', 'mapped', 'latent', ...); empty if all are used alike."""
    column: str | int | None = None
    """Column of strings of which the feature is a value; None for a feature that is its own column."""

    def share(self, steps: int) -> float:
        """Return the share of the steps since it was first seen in which the feature was present."""
        return self.count / max(1, steps - self.first_seen + 1)

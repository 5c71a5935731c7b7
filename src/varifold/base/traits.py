"""What a learner can do and what it costs, as types instead of strings to parse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Traits:
    """Capabilities of a learner as it stands now."""

    multiclass: Literal["native", "one-vs-rest"]
    cost: str
    """Cost of an instance, in words of features present and known."""
    bounded_memory: bool
    """Whether the state stays bounded however many features the stream brings (``max_features`` is set)."""
    uses_absence: bool
    """Whether it is information to the learner that a feature is absent."""
    randomized: bool
    uses_values: bool = True
    """Whether it looks at the values of features, not at their presence alone."""
    notes: tuple[str, ...] = ()
    """What the learner wants its user to know now, a fallback it took for instance."""


@dataclass(frozen=True, slots=True)
class Feature:
    """What is known of one feature."""

    first_seen: int
    last_seen: int
    count: int
    weight: float
    """Size of what the method holds for it: the sum over labels of absolute weights, or the method's own measure."""
    role: str = ""
    """The part it plays, in methods that tell ('old', 'mapped', 'latent', ...)."""

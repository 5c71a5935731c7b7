"""Parameters shared by the learners on a Gaussian copula."""

from __future__ import annotations

from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer, Real
from varifold.copula._latent import Copula

COPULA: dict[str, Constraint] = {
    "window": Integer(2, 100_000),
    "batch": Integer(1, 100_000),
    "levels": Integer(1),
    "sweeps": Integer(1, 1000),
    "c": Real(0, open_low=True),
    "gamma_min": Real(0, 1),
}
"""Constraints of the parameters of a copula."""


def copula_of(learner: object, max_dense: int) -> Copula:
    """Create a copula with a learner's parameters, of at most `max_dense` columns."""
    return Copula(**settings_of(learner), max_dense=max_dense)


def settings_of(learner: object) -> dict[str, Any]:
    """Return a learner's parameters of its copula."""
    return {name: getattr(learner, name) for name in COPULA}


@declared
class CopulaParameters:
    """Declare the copula's parameters: a mixin, listed before the base class. Each learner declares `max_dense`."""

    _parameters: ClassVar[dict[str, Constraint]] = COPULA

    window: int = 200
    batch: int = 20
    levels: int = 14
    sweeps: int = 2
    c: float = 5.0
    gamma_min: float = 0.05

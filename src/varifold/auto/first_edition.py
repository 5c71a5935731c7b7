"""The experts of the first edition: model files that name no edition hold these, and go on with them."""

from __future__ import annotations

from typing import Any

from varifold.base.registry import models
from varifold.copula._gaussian import GaussianModel
from varifold.copula._latent import Copula
from varifold.copula._ovfm import OVFMModel
from varifold.linear._additive import AdditiveRule
from varifold.linear._arow import AROWRule
from varifold.naive_bayes._frequency import FrequencyModel
from varifold.naive_bayes._gaussiannb import GaussianNBModel
from varifold.naive_bayes._presence import PresenceModel
from varifold.neighbours._neighbours import NeighboursModel

Expert = tuple[str, Any, int, int, int, float, float, float]

EVERYTHING, COLUMNS, BOUNDED = range(3)
"""What an expert sees, as in `_categories.pxd`."""
NEVER, LATE, EARLY = range(3)
"""When an expert may be paused, as in `_experts.pxd`; more than EARLY is also the side of its matrices per label."""

SECOND_COMBINATION: dict[str, Any] = {"first_pause": 500, "most_cells": 0}
"""How those of the second edition are combined, as far as it is not as today."""
COMBINATION: dict[str, Any] = {
    **SECOND_COMBINATION,
    **{"guard": 1.0, "guard_full": 0.0, "last_prior": 0.0, "watches": False},
}
"""How those of the first are."""


def first_experts(budget: str) -> list[Expert]:
    """(name, model, what it sees, may be paused, most slots or 0; to start with: temperature, part in the
    stack, variance of that part).
    """
    if budget == "fast":
        return [
            ("linear", AROWRule(10.0), EVERYTHING, False, 0, 2.0, 0.8, 1.5),
            ("additive", AdditiveRule(30.0, 20_000), EVERYTHING, False, 0, 2.0, 0.8, 0.8),
            ("additive, recent", AdditiveRule(30.0, 20_000, 300.0), EVERYTHING, True, 0, 2.0, 0.6, 0.8),
            ("naive Bayes", GaussianNBModel(1.0), EVERYTHING, False, 0, 0.5, 0.07, 0.02),
            ("presence", PresenceModel(), COLUMNS, False, 0, 1.0, 0.1, 0.5),
            ("class frequencies", FrequencyModel(), EVERYTHING, False, 0, 1.0, -0.2, 1.2),
        ]
    latent = OVFMModel(Copula(max_dense=64), AdditiveRule(30.0, 0), AROWRule(10.0, 65), latent_only=True)
    experts: list[Expert] = [
        ("linear", AROWRule(10.0), EVERYTHING, False, 0, 2.0, -0.3, 1.0),
        ("additive", AdditiveRule(30.0, 20_000), EVERYTHING, False, 0, 2.0, 0.35, 0.8),
        ("additive, recent", AdditiveRule(30.0, 20_000, 300.0), EVERYTHING, True, 0, 2.0, 0.2, 0.8),
        ("naive Bayes", GaussianNBModel(1.0), EVERYTHING, False, 0, 0.5, 0.03, 0.02),
        ("presence", PresenceModel(), COLUMNS, False, 0, 1.0, 0.1, 0.5),
        ("class frequencies", FrequencyModel(), EVERYTHING, False, 0, 1.0, -0.4, 1.6),
        ("linear, full", AROWRule(10.0, 128), EVERYTHING, True, 0, 2.0, 0.2, 0.8),
        ("neighbours", NeighboursModel(5, 500), EVERYTHING, True, 0, 1.0, 0.1, 0.06),
        ("latent", latent, EVERYTHING, True, 1_024, 2.0, 1.3, 2.8),
        ("evolving map", made("cwfe", max_dense=128), EVERYTHING, True, 1_024, 2.0, -0.15, 0.5),
        ("forest", made("orf3v"), EVERYTHING, True, 1_024, 1.0, 0.2, 0.2),
        ("Gaussian", GaussianModel(65), EVERYTHING, True, 1_024, 0.3, 0.08, 0.04),
    ]
    if budget == "best":
        experts.append(("neighbours, many", NeighboursModel(10, 1_000), EVERYTHING, True, 0, 1.0, 0.1, 0.06))
        experts.append(("additive, bold", AdditiveRule(10.0, 20_000), EVERYTHING, True, 0, 2.0, 0.0, 0.5))
    return experts


def made(name: str, **parameters: Any) -> Any:
    """The compiled model of a method of another family."""
    method: Any = models[name]
    return method(**parameters)._model()

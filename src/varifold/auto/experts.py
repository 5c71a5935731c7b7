"""Experts of the default learners: one table for the classifier, one for the regressor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from varifold._engine.models.model import Model
from varifold._engine.models.regression import RegressionModel
from varifold.auto._categories import CategoriesModel
from varifold.auto._groups import GroupsModel
from varifold.auto._restarting import RestartingModel
from varifold.copula._copularegressor import CopulaRegression, TargetCopula
from varifold.copula._gaussian import GaussianModel
from varifold.copula._latent import Copula
from varifold.copula._ovfm import OVFMModel
from varifold.forest._windowforest import WindowForestModel
from varifold.forest._windowforestregressor import WindowForestRegression
from varifold.linear._additive import AdditiveRule
from varifold.linear._additiveregressor import AdditiveRegression
from varifold.linear._arow import AROWRule
from varifold.linear._arowregressor import AROWRegression
from varifold.linear._ogd import OGDRule
from varifold.linear._ogdregression import OGDRegression
from varifold.linear._recall import RecallRule
from varifold.linear._tracking import TrackingRegression
from varifold.naive_bayes._frequency import FrequencyModel
from varifold.naive_bayes._gaussiannb import GaussianNBModel
from varifold.naive_bayes._presence import PresenceModel
from varifold.neighbours._neighbours import NeighboursModel
from varifold.neighbours._neighboursregressor import NeighboursRegression


@dataclass(frozen=True, kw_only=True)
class Expert:
    """One member of a mixture: its model, the part of an instance that it sees, and its start in the combination."""

    name: str
    model: Callable[[], Model]
    """Function that creates a new model."""
    sees: Literal["everything", "columns", "bounded"] = "everything"
    """All features; only which columns are present; or, of string columns with many levels, the frequent levels and one
    number for the others (classifier only).
    """
    pausing: Literal["never", "late", "early"] = "never"
    """When an expensive expert that is of no use may be paused: after 500 (late) or 200 (early) instances, or up to
    1,000 while the labels are hardly explained. An expert that may be paused is also disabled beyond 256 labels. The
    regressor pauses none.
    """
    max_columns: int | None = None
    """Number of columns (in the regressor: of features) beyond which the expert is disabled."""
    matrix_side: int | None = None
    """If the model has a matrix per label: its maximum number of rows."""
    counts_labels: bool = False
    """Whether its probabilities contain the shares of the labels, so that it can judge a label that was learned once
    (classifier only).
    """
    temperature: float = 1.0
    """First factor on the expert's logits. The regressor has no temperatures."""
    stack_weight: float = 0.0
    """First weight in the stack."""
    stack_variance: float = 1.0
    """Variance of that weight."""


def classifier_experts(budget: str, window: int = 20_000) -> tuple[Expert, ...]:
    """List the experts of `AutoClassifier`; the window forest holds at most `window` instances."""
    if budget == "fast":
        starts = _FAST_STARTS
        return tuple(
            replace(expert, stack_weight=starts[expert.name][0], stack_variance=starts[expert.name][1])
            for expert in _CLASSIFIER
            if expert.name in starts
        )
    forest = partial(_window_forest, 30 if budget == "best" else 10, window)
    return tuple(
        replace(expert, model=forest) if expert.name == "window forest" else expert
        for expert in _CLASSIFIER
        if budget == "best" or expert.name not in _BEST_ONLY
    )


def regressor_experts(window: int = 10_000) -> tuple[Expert, ...]:
    """List the experts of `AutoRegressor`; the window forest holds at most `window` instances."""
    forest = partial(_regression_forest, window)
    return tuple(replace(expert, model=forest) if expert.name == "window forest" else expert for expert in _REGRESSOR)


def _latent() -> Model:
    """Return AROW on the latent scores of a copula, without OVFM's expert on the values themselves."""
    return OVFMModel(Copula(max_dense=64), AdditiveRule(30.0, 0), AROWRule(10.0, 65), latent_only=True)


def _copula() -> RegressionModel:
    return CopulaRegression(TargetCopula(window=500, max_dense=65), learn_unlabelled=True)


def _window_forest(trees: int, window: int) -> Model:
    """Return a forest over a window that stops growing at 100,000 values (1.2 MB), but not below 1,000 instances.

    Instances of at most 12 values fill the whole window: they need little memory, and long streams gain most from it.
    """
    return WindowForestModel(
        trees=trees,
        window=window,
        columns=2.0,
        cuts=16,
        min_leaf=2,
        smoothing=1.0,
        seed=0,
        numbers=100_000,
        narrow=12.0,
    )


def _regression_forest(window: int) -> RegressionModel:
    return WindowForestRegression(
        trees=10, window=window, columns=2.0, cuts=8, min_leaf=1, smoothing=1.0, seed=0, numbers=100_000
    )


# fmt: off
_CLASSIFIER = (
    Expert(name="linear", model=lambda: RestartingModel(lambda: AROWRule(10.0)),
           temperature=2.0, stack_weight=-0.3, stack_variance=1.0),
    Expert(name="linear, recent", model=lambda: AdditiveRule(3.0, 0, 100.0),
           temperature=2.0, stack_weight=0.0, stack_variance=0.5),
    Expert(name="additive", model=lambda: RestartingModel(lambda: AdditiveRule(30.0, 20_000)), sees="bounded",
           temperature=2.0, stack_weight=0.35, stack_variance=0.8),
    Expert(name="naive Bayes", model=lambda: RestartingModel(lambda: GaussianNBModel(1.0)), sees="bounded",
           counts_labels=True, temperature=0.5, stack_weight=0.03, stack_variance=0.02),
    Expert(name="presence", model=PresenceModel, sees="columns", counts_labels=True,
           temperature=1.0, stack_weight=0.1, stack_variance=0.5),
    Expert(name="class frequencies", model=lambda: RestartingModel(FrequencyModel), counts_labels=True,
           temperature=1.0, stack_weight=-0.4, stack_variance=1.6),
    Expert(name="linear, full", model=lambda: AROWRule(10.0, 128), sees="bounded", pausing="early",
           temperature=2.0, stack_weight=0.2, stack_variance=0.8),
    Expert(name="neighbours", model=lambda: NeighboursModel(5, 500, single=True), sees="bounded", pausing="early",
           counts_labels=True, temperature=1.0, stack_weight=0.1, stack_variance=0.06),
    Expert(name="latent", model=_latent, sees="bounded", pausing="early", max_columns=1_024, matrix_side=64,
           temperature=2.0, stack_weight=1.3, stack_variance=2.8),
    Expert(name="Gaussian", model=lambda: GaussianModel(65), sees="bounded", pausing="early", max_columns=1_024,
           matrix_side=64, counts_labels=True, temperature=0.3, stack_weight=0.08, stack_variance=0.04),
    Expert(name="window forest", model=partial(_window_forest, 10, 20_000), sees="bounded", pausing="early",
           counts_labels=True, temperature=1.0, stack_weight=0.3, stack_variance=0.1),
    Expert(name="recall", model=lambda: RecallRule(10.0), pausing="late",
           temperature=2.0, stack_weight=0.0, stack_variance=0.3),
    Expert(name="recall, additive", model=lambda: RecallRule(30.0, True, 150.0), pausing="late",
           temperature=2.0, stack_weight=0.0, stack_variance=0.3),
    Expert(name="categories", model=lambda: CategoriesModel(10.0),
           temperature=1.0, stack_weight=0.0, stack_variance=0.5),
    Expert(name="groups", model=lambda: GroupsModel(OGDRule(10.0)),
           temperature=1.0, stack_weight=0.0, stack_variance=0.5),
    Expert(name="neighbours, many", model=lambda: NeighboursModel(10, 1_000, single=True), sees="bounded",
           pausing="early", counts_labels=True, temperature=1.0, stack_weight=0.1, stack_variance=0.06),
    Expert(name="additive, bold", model=lambda: AdditiveRule(10.0, 20_000), sees="bounded", pausing="early",
           temperature=2.0, stack_weight=0.0, stack_variance=0.5),
)
"""Weights and variances are means over the stacks of the development streams (docs/decisions/0076)."""
# fmt: on

_FAST_STARTS = {
    "linear": (0.8, 1.5),
    "linear, recent": (0.0, 0.5),
    "additive": (0.8, 0.8),
    "naive Bayes": (0.07, 0.02),
    "presence": (0.1, 0.5),
    "class frequencies": (-0.2, 1.2),
    "categories": (0.0, 0.5),
}
"""Experts of ``budget="fast"``; their stack weights and variances differ because the others are missing."""

_BEST_ONLY = ("neighbours, many", "additive, bold")

_REGRESSOR = (
    Expert(name="linear", model=lambda: AROWRegression(AROWRule(1.0)), stack_weight=0.1),
    Expert(name="linear, full", model=lambda: AROWRegression(AROWRule(1.0, 128)), stack_weight=0.1),
    Expert(name="additive", model=lambda: AdditiveRegression(AdditiveRule(10.0, 20_000)), stack_weight=0.1),
    Expert(name="tracking", model=lambda: TrackingRegression(0.2, 0.2), stack_weight=0.1),
    Expert(name="tracking, slow", model=lambda: TrackingRegression(0.03, 0.1), stack_weight=0.1),
    Expert(name="gradient", model=lambda: OGDRegression(OGDRule(1.0)), stack_weight=0.1),
    Expert(name="presence", model=lambda: AROWRegression(AROWRule(1.0)), sees="columns", stack_weight=0.1),
    Expert(name="neighbours", model=lambda: NeighboursRegression(5, 500), stack_weight=0.1),
    Expert(name="window forest", model=partial(_regression_forest, 10_000), stack_weight=0.1),
    Expert(name="copula", model=_copula, max_columns=1_024, stack_weight=0.1),
    Expert(name="mean", model=RegressionModel, stack_weight=0.1),
)
"""The stacks start near the mean of the experts."""

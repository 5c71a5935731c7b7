"""OVFIV: online learning with informative variation of the feature space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from varifold._engine.engine import Engine
from varifold._engine.models.model import Model
from varifold._engine.models.python_rule import PythonModel
from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.estimator import undisturbed
from varifold.base.nested import Learner, make_learner
from varifold.base.params import AnyOf, Boolean, Constraint, Integer, OneOf, Real
from varifold.base.python_rule import PythonRule
from varifold.errors import ParameterError
from varifold.linear._majority_bias import MajorityBias
from varifold.variation._ovfiv import OVFIVModel

_RATES = {"adaptive": "anytime", "optimal": "horizon"}


def _without_majority_bias(model: Model) -> Model:
    """Remove the majority bias from a model, as the variation learner already has a bias towards that class."""
    return model.rule if isinstance(model, MajorityBias) else model


@declared
class OVFIV(VaryingClassifier):
    """Any learner, mixed with a sparse learner that sees only which features are absent.

    Choose it when absence may itself be a sign: a test not ordered, a sensor that fails under load. Exponential weights
    mix the two, so that where absence carries no information the mixture soon follows the base learner alone.

    Parameters
    ----------
    base
        The learner on the values: a registered name, a specification like ``"arow:r=1"``, or a classifier. One of this
        library stays compiled, and has no `majority_bias` here; one of river's is called instance by instance.
    eta
        Rate η of the mixture weights: a number (OVFIV), ``"optimal"`` = √(8 ln 2 / horizon) (OVFIV-co) or
        ``"adaptive"`` = √(8 ln 2 / t) (OVFIV-ca).
    horizon
        Instances to come, for ``eta="optimal"``.
    lam
        Strength λ of the ℓ1 penalty of the variation learner (>= 0); a larger one uses fewer absences.
        In OLVF, OLSF and OLIDS `lam` is the radius of a projection.
    alpha, beta, L2
        Rate and ℓ2 penalty of the variation learner (FTRL-Proximal).
    encode
        ``"absence"`` gives weights to the columns absent, as the paper, at O(known) a round; ``"presence"`` to those
        present, the same functions at O(present); ``"auto"`` starts with absence and goes over to presence, without a
        change in what is learned so far, once less than a tenth of the known columns are present.
    bias
        Whether the variation learner has an unpenalised bias; the paper's has none. Without it ``encode="auto"`` stays
        with absence.
    mix
        ``"probability"`` mixes probabilities, judged by their square error; ``"score"`` the two scores as they come,
        judged by (f - y)² with y = ±1: eq. 7 and 8 to the letter. A base whose scores grow beyond ±1 is then punished
        for being sure.
    prior
        Weight α of the base learner before any loss is known, between 0 and 1; 1/2 is no preference.
    scale, fit_intercept, clip
        See `VaryingClassifier`; None takes the base learner's.
    max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    `explain_one` lists the absences that contribute as ``"name (absent)"``; margins are 2 p - 1, p the mixed
    probability, or with ``mix="score"`` the mixed scores.

    *Deviations from the paper.* Probabilities are mixed, judged by the square loss, which keeps the losses in [0, 1]
    as the theorems require. The text mixes "predictions" and does not state their range; mixing unbounded scores
    (``mix="score"``) errs by .09 more on average than the printed tables, so that theirs must be bounded. Probabilities
    of a margin learner are the logistic of its margin. The recursion for z has a minus (the
    printed plus contradicts its definition). The variation learner has an unpenalised bias and a rate per coordinate.
    Absence is that of columns: the indicators of one column are absent together. With more than two labels there is one
    variation learner a label.

    *Cost.* That of the base learner, and O(known) with ``"absence"`` or O(present) with ``"presence"``.

    Examples
    --------
    >>> from varifold import OVFIV
    >>> model = OVFIV(encode="absence")
    >>> for step in range(200):
    ...     ill = step % 2 == 0
    ...     x = {"age": 30 + step % 40, "pulse": 60 + step % 30}
    ...     if ill and step % 8:
    ...         x["x-ray"] = 1.0  # ordered for those who look ill
    ...     model.learn_one(x, ill)
    >>> model.predict_one({"age": 50, "pulse": 70}), model.predict_one({"age": 50, "pulse": 70, "x-ray": 1.0})
    (False, True)
    >>> "x-ray (absent)" in model.explain_one({"age": 50, "pulse": 70})
    True

    References
    ----------
    P. Qin, L. Song. Online learning in varying feature spaces with informative variation. IIP 2024; here a longer text
    under review.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "base": Learner(),
        "eta": AnyOf(Real(0, open_low=True), OneOf("optimal", "adaptive")),
        "horizon": AnyOf(Integer(1), None),
        "lam": Real(0),
        "alpha": Real(0, open_low=True),
        "beta": Real(0),
        "L2": Real(0),
        "encode": OneOf("auto", "absence", "presence"),
        "bias": Boolean(),
        "mix": OneOf("probability", "score"),
        "prior": Real(1e-6, 1 - 1e-6),
        "scale": AnyOf(OneOf("standard", "robust", "minmax", "none"), None),
        "fit_intercept": AnyOf(Boolean(), None),
        "clip": AnyOf(Real(0, open_low=True), None),
    }
    _paper: ClassVar[dict[str, Any]] = {
        "base": "ftrladp:paper",
        "encode": "absence",
        "bias": False,
    }
    _cost = "the base learner's; with encode='absence' O(known), with 'presence' O(present) more"
    _uses_absence = True

    base: Any = "ftrladp"
    eta: float | str = "adaptive"
    horizon: int | None = None
    lam: float = 1.0
    alpha: float = 0.1
    beta: float = 1.0
    L2: float = 0.0
    encode: str = "auto"
    bias: bool = True
    mix: str = "probability"
    prior: float = 0.5
    _: KW_ONLY
    scale: str | None = None  # type: ignore[assignment]  # None: as the base learner
    fit_intercept: bool | None = None  # type: ignore[assignment]
    clip: float | None = None  # type: ignore[assignment]

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"base": "arow:r=1", "encode": "presence", "eta": 0.05}
        yield {"bias": False, "prior": 0.9}
        yield {"mix": "score", "base": "pa", "encode": "absence"}
        yield {"eta": "optimal", "horizon": 500, "encode": "absence", "lam": 0.0}

    def _make_engine(self) -> Engine:
        if (self.eta == "optimal") != (self.horizon is not None):
            raise ParameterError(
                f"eta={self.eta!r} with horizon={self.horizon!r}: eta='optimal' needs the number of instances to come "
                "as horizon, and only it does"
            )
        base = make_learner(self.base)
        if isinstance(base, OVFIV):
            raise ParameterError("the base of OVFIV is a learner that it weighs by presence, not OVFIV; choose another")
        native = isinstance(base, VaryingClassifier) and not isinstance(base, PythonRule)
        if native and base.max_features is not None:
            raise ParameterError("the base learner shares the features of OVFIV: give max_features to OVFIV itself")
        if native and (base.objective != "accuracy" or base.costs is not None):
            raise ParameterError("the predictions are those of OVFIV: give objective or costs to OVFIV itself")
        if native and base.coverages:
            raise ParameterError("the sets are those of OVFIV: give coverages to OVFIV itself")
        inherited: dict[str, tuple[Any, Any]] = {
            "scale": (self.scale, base.scale if native else "none"),
            "intercept": (self.fit_intercept, base.fit_intercept if native else False),
            "clip": (self.clip, base.clip if native else 3.0),
        }
        used = {name: theirs if own is None else own for name, (own, theirs) in inherited.items()}
        if native:  # a rule may depend on how its values are scaled
            base.scale, base.clip = used["scale"], used["clip"]
        return Engine(
            self._around(_without_majority_bias(base._model()) if native else PythonModel(base)),
            self._target(),
            max_features=self.max_features,
            evict=self.evict,
            **used,
        )

    def _around(self, base: Model) -> OVFIVModel:
        if isinstance(self.eta, str):
            rate, eta = _RATES[self.eta], float(self.horizon or 0)
        else:
            rate, eta = "fixed", self.eta
        return OVFIVModel(
            base,
            rate,
            eta,
            self.lam,
            self.alpha,
            self.beta,
            self.L2,
            self.encode,
            self.bias,
            mix_scores=self.mix == "score",
            prior=self.prior,
        )

    def _mixture(self) -> OVFIVModel:
        model = self._engine.model
        assert isinstance(model, OVFIVModel)
        return model

    @property
    @undisturbed
    def weights(self) -> dict[str, float]:
        """Weights of the two learners in the next round."""
        values, variation = self._mixture().weights()
        return {"values": values, "variation": variation}

"""Shared parts of FESL, PAFE and CWFE: the switch detector, the map, and the models that run after a switch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from varifold._engine.models.one_vs_rest import BinaryRule
from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.estimator import undisturbed
from varifold.base.learner import VaryingLearner
from varifold.base.params import AnyOf, Constraint, Integer, OneOf, Real
from varifold.errors import ParameterError
from varifold.evolving._evolving import EvolvingModel
from varifold.evolving._switch_detector import SwitchDetector


@declared(kw_only=True)
class Switching(VaryingLearner):
    """Base of the family's classifiers and regressors: parameters of switches and mixture, and the switches so far.

    `EvolvingClassifier` describes the parameters.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "switch": AnyOf(Integer(1), None),
        "overlap": Integer(0),
        "ridge": Real(0),
        "settle": Integer(1),
        "patience": Integer(2),
        "max_dense": Integer(1, 8192),
        "combine": OneOf("c", "s"),
        "select": OneOf("draw", "argmax"),
        "horizon": AnyOf(Integer(1), None),
        "seed": Integer(0, 2**63 - 1),
    }
    _cost = "O(old x new features); covariance='full': also O(old^2 + new^2)"
    _uses_absence = True

    combine: str = "c"
    select: str = "draw"
    horizon: int | None = None
    seed: int = 0
    switch: int | None = None
    overlap: int = 10
    ridge: float = 0.0
    settle: int = 30
    patience: int = 100
    max_dense: int = 512

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"combine": "s", "switch": 40, "overlap": 15}

    def _mixture(self) -> str:
        """Return how both models are combined after a switch: 'mean', 'heavier' or 'drawn'."""
        if self.combine == "c":
            return "mean"
        return "heavier" if self.select == "argmax" else "drawn"

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of an `EvolvingModel`, except its rules."""
        if self.switch is not None and self.overlap > self.switch:
            raise ParameterError(
                f"The 'overlap' parameter of {type(self).__name__} must be at most switch={self.switch}. "
                f"Got {self.overlap!r} instead."
            )
        return {
            "parts": self._mixture(),
            "detector": SwitchDetector(self.switch, self.overlap, self.settle, self.patience),
            "centred": self.fit_intercept,
            "spread": self.scale != "none",
            "ridge": self.ridge,
            "bound": self.clip if self.scale in ("standard", "robust") else 0.0,
            "horizon": self.horizon,
            "max_dense": self.max_dense,
            "seed": self.seed,
        }

    @property
    def _evolving(self) -> EvolvingModel:
        """Compiled model that detects the switches."""
        raise NotImplementedError

    @property
    @undisturbed
    def switches(self) -> list[int]:
        """Steps (counted from 1) at which old features had gone, detected or set by `switch`."""
        return self._evolving.switches()

    @property
    @undisturbed
    def mix(self) -> tuple[float, float] | None:
        """Weights of the old and the new model in the prediction; None while only one runs."""
        return self._evolving.mix()


@declared(kw_only=True)
class EvolvingClassifier(Switching, VaryingClassifier):
    """Base of classifiers for streams whose feature space is replaced after an overlap of old and new features.

    A method defines ``_rule``, its parameters and the ``_loss`` by which the mixture weights its models.

    Parameters
    ----------
    part
        The models that run after a switch: ``"both"``, the old one on recovered features and the new one, mixed; or,
        as the papers' baselines, one of them alone. ``"new"`` starts again at every switch (NOGD, NPA-d, NCW),
        ``"updated"`` continues the old model on recovered features, learning (ROGD-u, RPA-u, RCW-u), ``"frozen"``
        only predicts with it (ROGD-f, RPA-f, RCW-f). `combine`, `select`, `horizon` and `seed` then have no effect.
    combine
        ``"c"``: the weighted mean of both models' scores; ``"s"``: one of them, by weights that can follow a change of
        the better one (fixed share).
    select
        With ``combine="s"``: ``"draw"`` by weight (a hash of `seed` and step, so that predicting is repeatable) or
        ``"argmax"``.
    horizon
        Number of steps after the switch (T2), if known; None: rates that need no horizon.
    seed
        Seed of the draws.
    switch
        Number of steps before only new features are present (T1), if known; None: the learner detects it.
    overlap
        Number of steps before `switch` with old and new features together (B); only used with `switch`.
    ridge
        Ridge of the map's least squares; 0 selects the solution of least norm.
    settle
        Number of steps at the start of the stream in which a feature not seen before does not count as joining.
    patience
        Number of steps after which features that joined become ordinary ones if no others have gone.
    max_dense
        Most features on a side of the map, and in a full covariance.
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *Detected switches.* A column that was not seen in the first `settle` steps joins; from then on instances that have
    joined and settled columns together are the overlap. Settled columns have gone when their absence, at the rate at
    which they were absent before, is less likely than one in a million: all of them together, or a single one. Columns
    that disappear and return while no new ones join are an outage. The absence of columns present in less than half of
    the instances is no information. Without an overlap only the new model continues (and the old one if some features
    stay).

    *Left open by the papers.* A feature that is still seen is used as it is; only absent ones are recovered, and from
    the joined ones alone. At a further switch the model with the smaller recent loss is carried over, by a map to the
    values it used, including recovered ones. With an intercept the map has a constant, and an absent value counts as
    the mean in the overlap (else as 0). With scaling the map's inputs are raw values, in units of their spread in the
    overlap, and its outputs are scaled old values, clipped like other scaled values. More than two labels: one problem
    per label, one weight for all. A sample weight multiplies the losses of the combination and the rows of the map.

    *Cost.* The overlap is kept as a triangular factor of at most (new + 1) (new + 1 + old) numbers, however long it
    lasts; a row costs as much time. The map is solved once, at the switch.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"part": OneOf("both", "new", "updated", "frozen")}
    _paper: ClassVar[dict[str, Any]] = {"scale": "none", "fit_intercept": False}
    _loss: ClassVar[str] = "hinge"
    _transfer: ClassVar[bool] = False
    """Whether a new model starts from the old one's weights, transferred through the map."""

    part: str = "both"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from super()._unit_test_params()
        yield {"part": "new"}
        yield {"part": "updated"}
        yield {"part": "frozen"}

    def _mixture(self) -> str:
        """Return how both models are combined, or the only one that predicts: 'new', 'updated' or 'frozen'."""
        return super()._mixture() if self.part == "both" else self.part

    def _rule(self) -> BinaryRule:
        """Create a compiled rule with the method's update."""
        raise NotImplementedError(f"{type(self).__name__} must define _rule()")

    def _model(self) -> EvolvingModel:
        return EvolvingModel(
            self._rule(),
            self._rule(),
            logistic=self._loss == "logistic",
            transfer=self._transfer,
            **self._settings(),
        )

    @property
    def _evolving(self) -> EvolvingModel:
        model = self._engine.model
        assert isinstance(model, EvolvingModel)
        return model

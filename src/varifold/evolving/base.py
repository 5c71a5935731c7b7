"""What FESL, PAFE, CWFE and their parts share: the switch detector, the map, and which models run after a switch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from varifold._engine.models.one_vs_rest import BinaryRule
from varifold.base.declared import DeclaredClassifier, declared
from varifold.base.estimator import undisturbed
from varifold.base.learner import VaryingLearner
from varifold.base.params import AnyOf, Constraint, Integer, OneOf, Real
from varifold.errors import ParameterError
from varifold.evolving._evolving import EvolvingModel
from varifold.evolving._switch_detector import SwitchDetector


class Switching(VaryingLearner):
    """What classifiers and regressors of the family share: parameters of switches, and what can be asked about them.

    A subclass declares these parameters as fields.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "switch": AnyOf(Integer(1), None),
        "overlap": Integer(0),
        "ridge": Real(0),
        "settle": Integer(1),
        "patience": Integer(2),
        "max_dense": Integer(1, 8192),
    }
    _cost = "O(old x new features); covariance='full': also O(old^2 + new^2)"
    _uses_absence = True
    _part: ClassVar[str] = "mean"

    switch: int | None
    overlap: int
    ridge: float
    settle: int
    patience: int
    max_dense: int
    scale: str
    fit_intercept: bool
    clip: float

    def _runs(self) -> tuple[str, int | None, int]:
        """What runs after a switch, the horizon of its weights, and the seed of its draws."""
        return self._part, None, 0

    def _settings(self) -> dict[str, Any]:
        """The arguments of an `EvolvingModel` but for its rules."""
        if self.switch is not None and self.overlap > self.switch:
            raise ParameterError(
                f"The 'overlap' parameter of {type(self).__name__} must be at most switch={self.switch}. "
                f"Got {self.overlap!r} instead."
            )
        part, horizon, seed = self._runs()
        return {
            "parts": part,
            "detector": SwitchDetector(self.switch, self.overlap, self.settle, self.patience),
            "centred": self.fit_intercept,
            "spread": self.scale != "none",
            "ridge": self.ridge,
            "bound": self.clip if self.scale in ("standard", "robust") else 0.0,
            "horizon": horizon,
            "max_dense": self.max_dense,
            "seed": seed,
        }

    @property
    def _evolving(self) -> EvolvingModel:
        """The model that switches."""
        raise NotImplementedError

    @property
    @undisturbed
    def switches(self) -> list[int]:
        """Steps (learns, counted from 1) at which old features had gone, detected or as given by `switch`."""
        return self._evolving.switches()

    @property
    @undisturbed
    def mix(self) -> tuple[float, float] | None:
        """Weights of the old and the new model in the answer; None while one runs alone."""
        return self._evolving.mix()


class Mixing(Switching):
    """Both models after a switch; a subclass declares these parameters as fields."""

    _parameters: ClassVar[dict[str, Constraint]] = {
        "combine": OneOf("c", "s"),
        "select": OneOf("draw", "argmax"),
        "horizon": AnyOf(Integer(1), None),
        "seed": Integer(0, 2**63 - 1),
    }

    combine: str
    select: str
    horizon: int | None
    seed: int

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"combine": "s", "switch": 40, "overlap": 15}

    def _runs(self) -> tuple[str, int | None, int]:
        one = "heavier" if self.select == "argmax" else "drawn"
        return "mean" if self.combine == "c" else one, self.horizon, self.seed


@declared(kw_only=True)
class EvolvingClassifier(Switching, DeclaredClassifier):
    """A learner for streams whose whole feature space is replaced, after an overlap in which old and new are both seen.

    An update supplies ``_rule``, its parameters and the ``_loss`` by which a mixture weighs it; a method of it says by
    ``_part`` what runs after a switch, or is a `Mixture`. Everything else is here, once for all of them.

    Parameters
    ----------
    switch
        Learns after which only the new features come (T1), when that is known; None: the learner detects it.
    overlap
        Learns before `switch` that show old and new features together (B); only used with `switch`.
    ridge
        Ridge of the map's least squares; 0 gives the solution of least norm.
    settle
        Learns at the start of the stream during which a feature not seen before does not count as joining.
    patience
        Learns after which features that joined become ordinary ones when nothing has gone.
    max_dense
        Most features on a side of the map, and in a full covariance.
    scale, fit_intercept, clip, max_features, evict, objective, costs, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *Detected switches.* A column that was never seen in the first `settle` learns joins; from then on instances that
    show joined and settled columns together are the overlap. Settled columns have gone when their absence would be less
    likely than one in a million as the flicker they had shown before: all of them at once, or one by one. Columns
    that go and come back with nothing new beside them are an outage. Columns present in less than half of the
    instances say nothing by their absence. Without an overlap only the new model goes on (beside the old one if some
    features stay).

    *What the papers leave open.* A feature that is still seen is used as it is; only absent ones are recovered, and
    from the joined ones alone. At a further switch the model with the larger weight is carried over, by a map learned
    to what it saw, recovered values included. With an intercept the map has a constant, and an absent value counts as
    the mean in the overlap (else as 0). With scaling the map takes values as given, in units of their spread in the
    overlap, to scaled old values; those it recovers are clipped as scaled ones are. More than two labels: one problem
    per label, one weight for all. A sample weight multiplies the losses of the combination and the rows of the map.

    *Cost.* The overlap is kept as a triangular factor of at most (new + 1) (new + 1 + old) numbers, however long it
    lasts; a row costs as much time. The map is solved once, at the switch.

    """

    _paper: ClassVar[dict[str, Any]] = {"scale": "none", "fit_intercept": False}
    _loss: ClassVar[str] = "hinge"
    _transfer: ClassVar[bool] = False

    switch: int | None = None
    overlap: int = 10
    ridge: float = 0.0
    settle: int = 30
    patience: int = 100
    max_dense: int = 512

    def _rule(self) -> BinaryRule:
        """A new compiled rule of the method's update."""
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


@declared
class Mixture(Mixing, EvolvingClassifier):
    """Both models after a switch, the old one on recovered features and the new one, and a weight for each.

    Parameters
    ----------
    combine
        ``"c"``: the weighted mean of both models' scores; ``"s"``: one of them, by weights that can follow a change of
        the better one (fixed share).
    select
        With ``combine="s"``: ``"draw"`` by weight (a hash of `seed` and step, so that predicting is repeatable) or
        ``"argmax"``.
    horizon
        Learns after the switch (T2), when known; None: rates that need no horizon.
    seed
        Of the draws.

    """

    combine: str = "c"
    select: str = "draw"
    _: KW_ONLY
    horizon: int | None = None
    seed: int = 0

"""OVFM: online learning in variable feature spaces with mixed data."""

from __future__ import annotations

import math
from typing import Any, ClassVar, cast

from varifold._engine.models.one_vs_rest import BinaryRule
from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.estimator import undisturbed
from varifold.base.params import AnyOf, Boolean, Constraint, Integer, OneOf, Real
from varifold.copula._ovfm import OVFMModel
from varifold.copula.parameters import CopulaParameters, copula_of
from varifold.linear._arow import AROWRule
from varifold.linear._ftrladp import FTRLADPRule
from varifold.linear._ogd import OGDRule


@declared
class OVFM(CopulaParameters, VaryingClassifier):
    """Mix linear learners on the values, on the normal scores of a Gaussian copula, and on presence.

    A copula over Boolean, ordinal and continuous features is learned online. It turns each instance into a complete
    vector of normal scores, in which absent features are regressed on those present. Choose it if features depend on
    one another, so that absent features can be inferred from those present. ``latent_only=True`` is OVFM-L.

    Parameters
    ----------
    window
        Number of recent values from which a feature's distribution is estimated (W >= 2).
    batch
        Instances between two updates of the correlation (b >= 1).
    levels
        A feature with at most this many distinct values in its window is ordinal: each value is an interval.
    sweeps
        Rounds of truncated-normal moments in the E-step (>= 1).
    c, gamma_min
        The k-th update of the correlation has step max(gamma_min, c / (k + c)).
    base
        Rule of the linear learners: ``"arow"`` (diagonal, regularised by `r`), ``"ftrladp"`` as in the authors' code
        (with one step size per feature), or ``"sgd"`` as in the paper's text: gradient steps of 1/√t on the
        cross-entropy. The text names no step size.
    r
        See `AROW`.
    decay, kappa, LP
        See `FTRLADP`.
    eta, horizon
        Rate of the mix of k experts (2, with presence 5): a fixed `eta`, or √(8 ln k / T) for a `horizon` of T
        instances, or when neither is given √(8 ln k / t) at instance t.
    radius
        Radius of the ℓ1 ball onto which weight vectors are projected (eq. 12); None disables the projection.
    keep
        Share of the known features whose weights are kept after the projection, the largest of each learner; the others
        are set to zero (γ below eq. 12). None keeps all. To drop the features themselves, so that the copula does not
        grow, set `max_features` with ``evict="lightest"``.
    latent_only
        Whether to predict with the latent learner only (OVFM-L).
    presence
        Whether a third learner on the presence of features joins the mix, alone and added to each of the other two. It
        helps if, for example, a lab test that was not ordered or a word indicates the label. False is the paper's pair.
    max_dense
        Maximum number of features under the copula. If there are more, it covers the recently most active ones; the raw
        and presence learners use all (`features` shows the role of each).
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`; the scaler serves the raw learner, the copula uses unscaled values.

    Notes
    -----
    *Deviations from the paper.* There is no delay: each instance is predicted on arrival, with the correlation learned
    so far (Algorithm 1 predicts the oldest row of a buffer; see `varifold.copula.DelayedOVFM`). There is one EM step
    per mini-batch, with uncentred second moments and the interval variances of ordinal features; the variances of two
    ordinal features are computed separately, which biases their correlation. Scores are mid-ranks, never 0 or 1. The
    paper's learners use gradient descent and the projection of eq. 12 (`as_in_paper`; the radius, which the text does
    not give, is 30 as in OLSF), its code uses FTRL-ADP without projection; the default here is AROW, which has a lower
    error on most streams of the paper's Table II (`benchmarks/copula_tables.py`). The rate of the mix needs no T. The
    presence learner is ours: a present feature under the copula has the value one minus its recent rate of presence, an
    absent one minus that rate; of the other features only present ones count. If absence is informative (the
    informative streams of OVFIV's Table 2), it reduces the error on german from .31 to .18 and on dropout from .19 to
    .09. Its experts start 10 nats behind, so it costs almost nothing elsewhere. AROW's margin is close to 2 p - 1, so
    the mix uses twice the margin as log-odds. An indicator `f=v` is a Boolean feature; the indicators of one column are
    observed together (the others are zeros), and the first level seen is the reference, which has no latent feature.
    Sample weights count in the correlation and in the learners; a window holds each value once. An instance without a
    label updates the copula, and nothing else.

    *Cost.* O(present³ + present² absent + present absent²), where absent counts the absent features under the copula;
    instances with the same present features share the inverse. O(max_dense²) memory.

    Examples
    --------
    >>> from varifold import OVFM
    >>> model = OVFM()
    >>> for step in range(300):
    ...     wet = step % 2 == 0
    ...     x = {"humidity": 70.0 + step % 7 if wet else 30.0 + step % 5, "rain": wet}
    ...     del x["humidity" if step % 3 == 0 else "rain"]
    ...     model.learn_one(x, "umbrella" if wet else "hat")
    >>> model.predict_one({"humidity": 74.0}), model.predict_one({"rain": False})
    ('umbrella', 'hat')

    References
    ----------
    Y. He, J. Dong, B.-J. Hou, Y. Wang, F. Wang. Online learning in variable feature spaces with mixed data. ICDM 2021.
    Y. Zhao, E. Landgrebe, E. Shekhtman, M. Udell. Online missing value imputation and change point detection with the
    Gaussian copula. AAAI 2022.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "base": OneOf("arow", "ftrladp", "sgd"),
        "r": Real(0, open_low=True),
        "decay": Integer(0, 4),
        "kappa": Real(0, 1),
        "LP": Real(0, open_low=True),
        "eta": AnyOf(Real(0, open_low=True), None),
        "horizon": AnyOf(Integer(1), None),
        "radius": AnyOf(Real(0, open_low=True), None),
        "keep": AnyOf(Real(0, 1, open_low=True), None),
        "latent_only": Boolean(),
        "presence": Boolean(),
        "max_dense": Integer(1, 8192),
    }
    _paper: ClassVar[dict[str, Any]] = {
        "base": "sgd",
        "radius": 30.0,
        "presence": False,
        "scale": "none",
        "fit_intercept": False,
    }
    _cost = "O(present^3 + present known^2) up to max_dense features"

    base: str = "arow"
    r: float = 10.0
    decay: int = 4
    kappa: float = 0.01
    LP: float = 1.0
    eta: float | None = None
    horizon: int | None = None
    radius: float | None = None
    latent_only: bool = False
    presence: bool = True
    max_dense: int = 512
    keep: float | None = None

    def _model(self) -> OVFMModel:
        rate, eta = "anytime", 0.0
        if self.eta is not None:
            rate, eta = "fixed", float(self.eta)
        elif self.horizon is not None:
            rate, eta = "horizon", float(self.horizon)
        return OVFMModel(
            copula_of(self, self.max_dense),
            self._rule(),
            self._rule(),
            parts=2 if self.base == "ftrladp" else 1,
            latent_only=self.latent_only,
            radius=0.0 if self.radius is None else self.radius,
            rate=rate,
            eta=eta,
            presence=self._rule() if self.presence and not self.latent_only else None,
            odds=2.0 if self.base == "arow" else 1.0,
            keep=1.0 if self.keep is None else self.keep,
        )

    def _rule(self) -> BinaryRule:
        if self.base == "arow":
            return AROWRule(self.r)
        if self.base == "sgd":
            return OGDRule(1.0 / math.log(2.0))  # the rule's loss is in bits
        return FTRLADPRule(0.0, 0.0, self.LP, self.decay, self.kappa, True)

    @property
    def _compiled(self) -> OVFMModel:
        return cast(OVFMModel, self._engine.model)

    @property
    @undisturbed
    def shares(self) -> list[dict[str, float]]:
        """Current weight of each learner's score in the prediction, per problem: ``raw``, ``latent``, ``presence``.

        Presence is added to the others, so the three may sum to more than one.
        """
        names = ("raw", "latent", "presence")
        return [dict(zip(names, map(float, row), strict=True)) for row in self._compiled.mix_weights()]

    @undisturbed
    def correlation(self) -> tuple[list[str | int], Any]:
        """Return the names of the features under the copula and the matrix of their latent correlations."""
        slots, matrix = self._compiled.copula.correlation()
        return [self._engine.space.name_of(slot) for slot in slots], matrix

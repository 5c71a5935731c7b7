"""AutoRegressor: the regressor to start with, and usually to stay with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar, cast

from varifold.auto._regression import RegressionMixture
from varifold.auto.experts import Expert, regressor_experts
from varifold.auto.learner import MixtureLearner
from varifold.auto.report import RegressionReport, mean_error_rise
from varifold.base.declared import declared
from varifold.base.estimator import undisturbed
from varifold.base.params import Constraint, OneOf
from varifold.base.regressor import VaryingRegressor


@declared
class AutoRegressor(MixtureLearner, VaryingRegressor):
    """Default regressor: regressors of several kinds at once, each weighted by its track record.

    It needs no tuning and works on any varying stream. Linear and additive regressors, lines that follow a drifting
    target, one that sees only which features are present, one that remembers recent instances, a forest over them and a
    copula that infers from what is present all learn the same stream. Their predictions are stacked and mixed by their
    losses. `report()` shows the result.

    Parameters
    ----------
    loss
        What the experts are judged by: ``"squared"`` or ``"absolute"`` errors.
    unlabelled
        What becomes of instances without a target (``learn_one(x, None)``): with ``"learn"`` they join the statistics
        by which values are scaled, and the copula learns them; with ``"ignore"`` nothing happens.
    scale, clip, max_features, evict, coverages
        See `varifold.VaryingRegressor`; intervals of coverage .9 are the default here.

    Notes
    -----
    *No paper.* Experts (`varifold.auto.experts`): `AROWRegressor`, diagonal and with full covariance up to 128
    features; `AdditiveRegressor` (r = 10); two lines that follow the target by steps of a fixed rate, a fast and a slow
    one; gradient descent as in `FESLRegressor` (c = 1); a line on the presence of columns; the 5 nearest of the last
    500 instances; `WindowForestRegressor` with 10 trees of 8 cuts whose leaves may hold one instance, on at most 10,000
    instances or 100,000 values; `CopulaRegressor` with windows of 500 values over the 64 most active features, disabled
    beyond 1,024 features; the mean.

    *Combination.* A *stack* is a linear combination of the experts' predictions, learned by recursive least squares;
    errors beyond three typical ones are cut to that size, and it predicts at most a typical error outside of the
    experts' predictions. There are two: one hardly forgets, the other adapts within about a hundred instances. The
    mixture is the exponentially weighted mean (rate 3) of the experts and the stacks, with .3% of the weight shared out
    after each instance. A loss is the error divided by four typical errors, at most 1, squared or not: over T instances
    the mixture's loss exceeds that of the best of the k experts and the stacks by at most
    ln(k + 4) / 3 + 3 T / 8 + T ln(1 / (1 - .003)) / 3, and with bounded squared errors, which are mixable, by far less.

    *Outliers.* The first 32 instances are kept. A target among them whose distance from their median is more than
    twenty times the third quartile of the distances is an outlier, unless one in eight is: new experts learn these
    instances with the outlier moved. Later, a target more than twelve typical errors from the prediction is moved to
    that distance before anything learns it. After five in a row on the same side, the largest distance at most twice
    the smallest, the level has changed: an offset takes the jump, and returns with the first target that is at the old
    level again. If they are not of one size, they are moved to twelve deviations, and after thirty learned as they are.

    *Cost.* O(500 present + min(known, 128)^2 + 64^3), and that of `WindowForestRegressor`.

    Examples
    --------
    >>> from varifold import AutoRegressor
    >>> model = AutoRegressor()
    >>> for step in range(300):
    ...     x = {"size": step % 7, "floor": step % 3}
    ...     if step % 4 == 0:
    ...         del x["floor"]
    ...     model.learn_one(x, 100.0 + 10.0 * (step % 7))
    >>> round(model.predict_one({"size": 6})), round(model.predict_one({"size": 0, "floor": 1}))
    (160, 100)

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "loss": OneOf("squared", "absolute"),
        "unlabelled": OneOf("learn", "ignore"),
    }
    _cost = "O(500 present + min(known, 128)^2 + 64^3)"
    _uses_absence = True
    _window = 10_000

    loss: str = "squared"
    _: KW_ONLY
    unlabelled: str = "ignore"
    fit_intercept: bool = field(default=True, init=False)
    coverages: Sequence[float] = (0.9,)

    def _table(self) -> tuple[Expert, ...]:
        return regressor_experts(self._window)

    def _model(self) -> RegressionMixture:
        return RegressionMixture(self._experts(), self.loss == "absolute", self.unlabelled == "learn")

    @undisturbed
    def report(self, most: int = 8, predicted: Any = None) -> RegressionReport:
        """Summarise the stream: weights of the experts over time, influential features, recent changes.

        For `predicted` and `most` see `AutoClassifier.report`.
        """
        model = cast(RegressionMixture, self._engine.model)
        error, usual, deviation, count = model.error_means()
        summary = self._summary(most, predicted, mean_error_rise(count, error, usual, deviation))
        return RegressionReport(**summary, recent={}, typical_error=model.typical_error())

"""AutoRegressor: the regressor to start with, and usually to stay with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from varifold.auto._regression import AutoRegression
from varifold.auto.experts import regressor_experts
from varifold.auto.report import RegressionReport, changes, risen_number
from varifold.base.blocks import to_block
from varifold.base.estimator import undisturbed
from varifold.base.params import Constraint, OneOf
from varifold.base.regressor import VaryingRegressor


class AutoRegressor(VaryingRegressor):
    """The default regressor: several kinds of regressor at once, each trusted as far as it has earned.

    No tuning, any varying stream. Linear and additive regressors, lines that follow a target that wanders, one that
    only looks at which features are there, one that remembers recent instances, a forest over them and a copula that
    infers from what is present all learn the same stream; their answers are stacked and mixed by their losses. Ask
    `report()` what it found.

    Parameters
    ----------
    loss
        What the experts are judged by: ``"squared"`` or ``"absolute"`` errors.
    scale, clip, max_features, evict, coverages
        See `varifold.VaryingRegressor`; intervals of coverage .9 are the default here.

    Notes
    -----
    *No paper.* Experts: `AROWRegressor`, diagonal and with full covariance up to 128 features; `AdditiveRegressor`
    (r = 10); two lines that follow the target by steps of a fixed rate, one quick and one slow; a line on the mere
    presence of columns; the 5 nearest of the last 500 instances; `WindowForestRegressor` with 10 trees whose leaves may
    hold one instance, over at most 10,000 instances or 100,000 numbers; `CopulaRegressor` with windows of 500 values
    over the 64 most active features, up to 1,024 known ones; the mean.

    The *stack* is a linear combination of their answers, learned by recursive least squares; errors beyond three times
    the typical one count as that much, and it answers no further outside of the experts' answers than the typical
    error. The answer is the exponentially weighted mixture (rate 3) of the experts and the stack, with 1% of the weight
    shared out each round. A loss is the error over four typical errors, at most 1, squared or not: over T rounds the
    mixture's summed loss exceeds that of the best of the k experts and the stack by at most
    ln(k + 4) / 3 + 3 T / 8 + T ln(1 / (1 - .01)) / 3, and with bounded squared errors, which are mixable, by far less.

    *Outliers.* The first 32 instances are kept. A target among them that lies more than twenty times the third quartile
    of the distances from their median is an outlier, unless one in eight is: the experts begin again and learn these
    instances with it moved. Later a target more than twelve typical errors from the answer is moved to that distance
    before anything learns it. After five in a row on the same side, the largest off by at most twice as much as the
    smallest, the level has changed: an offset takes the jump, and steps back with the first target that is at the old
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

    _parameters: ClassVar[dict[str, Constraint]] = {"loss": OneOf("squared", "absolute")}
    _cost = "O(500 present + min(known, 128)^2 + 64^3)"
    _uses_absence = True
    _window: int = 10_000
    _names: list[str] | None = None

    def __init__(
        self,
        loss: str = "squared",
        *,
        scale: str = "standard",
        clip: float = 3.0,
        max_features: int | None = None,
        evict: str = "oldest",
        coverages: Sequence[float] = (0.9,),
    ) -> None:
        self.loss = loss
        super().__init__(
            scale=scale, fit_intercept=True, clip=clip, max_features=max_features, evict=evict, coverages=coverages
        )

    def _model(self) -> AutoRegression:
        experts = regressor_experts(self._window)
        chosen = [expert for expert in experts if self._names is None or expert.name in self._names]
        return AutoRegression(chosen, self.loss == "absolute")

    def _fill_early(self) -> None:
        """Take a window that is full within the stream of a check; for a learner that has learned nothing."""
        self._window = 200
        self._engine = self._make_engine()

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "experts": cast(AutoRegression, self._engine.model).names}

    def _apply_header(self, header: Mapping[str, Any]) -> None:
        """Choose the experts that the file holds."""
        super()._apply_header(header)
        self._names = header.get("experts")
        self._engine = self._make_engine()
        if self._names != cast(AutoRegression, self._engine.model).names:
            raise ValueError(f"the file holds the experts {self._names!r}; this version does not have all of them")

    @undisturbed
    def report(self, most: int = 8, predicted: Any = None) -> RegressionReport:
        """Which experts carry weight now and over time, which features matter, what changed recently.

        `predicted`: instances predicted since the last one was learned, see `AutoClassifier.report`.
        """
        unlearned = None if predicted is None else to_block(predicted)
        model = cast(AutoRegression, self._engine.model)
        features = self.features
        steps, weights = model.weight_history()
        error, usual, deviation, answers = model.error_means()
        risen = risen_number(answers, error, usual, deviation)
        heaviest = sorted(features.items(), key=lambda item: -item[1].weight)[:most]
        return RegressionReport(
            steps=self.steps,
            experts=model.expert_weights(),
            history_steps=steps,
            history_weights=weights,
            features={name: f.weight for name, f in heaviest},
            changes=changes(self.steps, features, risen, self.unit_changes, unlearned),
            notes=tuple(model.notes()),
            recent={},
            typical_error=model.typical_error(),
        )

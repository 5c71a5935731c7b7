"""GaussianNB: naive Bayes over the features present."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.params import Constraint, Real
from varifold.naive_bayes._gaussiannb import GaussianNBModel


@declared
class GaussianNB(VaryingClassifier):
    """Naive Bayes: per class and feature a running mean and variance, summed over the features present.

    Absent features are left out of the sum. It needs few instances and works with many labels; correlated features
    make it overconfident.

    Parameters
    ----------
    prior
        Observations of all classes together that are added to each class's mean, variance and share (> 0).
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`. Values are taken as given, `scale` and `clip` are without effect; without intercept
        the classes count as equally frequent.

    Notes
    -----
    Scores are log prior + Σ log p(x_i | class) / p(x_i). The factor of one feature is at most e^50. An indicator is
    categorical: its share among the instances of the class in which its column is present.

    *Without a label* one instance in 2k, k being the number of labels, is a step of online expectation maximisation:
    every class whose probability exceeds 1 % learns it, weighted by that probability. It counts as 2k instances, so
    that such instances together weigh about as much as those with a label, but none weighs more than with its label.
    The frequencies of the classes are those of the labels. So it costs about as much as with a label.

    *Cost.* O(present × labels).

    Examples
    --------
    >>> from varifold import GaussianNB
    >>> model = GaussianNB()
    >>> for step in range(60):
    ...     model.learn_one({"size": step % 3 + 0.1 * (step % 5), f"part {step % 5}": 1.0}, "SML"[step % 3])
    >>> [model.predict_one({"size": size}) for size in (0.2, 1.2, 2.2)]
    ['S', 'M', 'L']

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "prior": Real(0, open_low=True),
    }
    _cost = "O(present * labels)"
    _native_multiclass = True

    prior: float = 1.0
    _: KW_ONLY
    scale: str = "none"

    def _model(self) -> GaussianNBModel:
        return GaussianNBModel(self.prior)

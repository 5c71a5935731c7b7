"""CopulaDetector: unusual combinations of values."""

from __future__ import annotations

from typing import ClassVar

from varifold.anomaly._copula import CopulaDetectorModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Integer

__all__ = ["CopulaDetector"]


@declared
class CopulaDetector(VaryingDetector):
    """Surprise of the present values together, under a Gaussian copula learned online.

    Choose it if features are correlated and anomalies break the correlation: a pump that runs without flow. Each
    feature may have any distribution, since only ranks count. It conditions on what is present, so that nothing is
    imputed.

    Parameters
    ----------
    window
        Last values kept of each feature, for ranks.
    max_dense
        Features in the copula; those that appear later are left out.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *Deviations from the paper.* The copula is that of Zhao et al., but correlations are running means of products of
    two normal scores over the instances that have both features, instead of an EM algorithm. They are shrunk towards
    0 as if p + 5 more pairs had shown none, where p is the number of features present. The score is the squared
    Mahalanobis distance of the normal scores, standardised by its mean p and its variance 2 p. Strings are left out.

    `explain_one` splits the distance by feature: each normal score times its entry of the inverse correlation matrix
    times the scores. That is large for a value that the other features do not predict.

    *Cost.* O(present^3) to score, O(present^2) to learn.

    Examples
    --------
    >>> from varifold import CopulaDetector
    >>> model = CopulaDetector()
    >>> for step in range(500):
    ...     speed = step * 37 % 100
    ...     model.learn_one({"speed": speed, "flow": 2 * speed + step % 5, "level": step * 61 % 90})
    >>> model.score_one({"speed": 80, "flow": 30}) > 5 > model.score_one({"speed": 80, "flow": 162})
    True

    References
    ----------
    Y. Zhao, E. Landgrebe, E. Shekhtman, M. Udell. Online missing value imputation and change point detection with the
    Gaussian copula. AAAI 2022.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"window": Integer(2, 100_000), "max_dense": Integer(1, 4096)}
    _cost = "O(present^3)"

    window: int = 200
    max_dense: int = 128

    def _model(self) -> CopulaDetectorModel:
        return CopulaDetectorModel(self.window, self.max_dense + 1)

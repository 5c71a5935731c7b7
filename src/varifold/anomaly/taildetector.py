"""TailDetector: unusual values of single features."""

from __future__ import annotations

from typing import ClassVar

from varifold.anomaly._tail import TailModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Integer

__all__ = ["TailDetector"]


@declared
class TailDetector(VaryingDetector):
    """Sum over the present features of how far in a tail of its distribution each value is.

    The fastest of the detectors, without anything to tune. Choose it if anomalies show in single features: a value
    that is too large or too small, a rare string. It does not see a combination of values each of which is usual.

    Parameters
    ----------
    window
        Last values kept of each feature.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *Deviations from the papers.* ECOD and COPOD use the empirical distribution of a fixed data set; here it is that
    of the last `window` values of each feature. ECOD sums the left tails, the right tails, and those on the side to
    which a feature is skewed, and returns the largest sum; here each feature contributes its smaller tail. From each
    surprise, minus the logarithm of a tail, its running mean is subtracted and the sum is divided by the root of the
    number of features: an absent feature neither raises nor lowers the score. A string contributes minus the
    logarithm of its frequency in its column. Beyond all values of the window the tail is assumed to fall with the
    square of the distance from the median, so that a value far outside is more surprising than one just outside.

    *Cost.* O(present x log window) to score; to learn, up to `window` numbers per feature are shifted.

    Examples
    --------
    >>> from varifold import TailDetector
    >>> model = TailDetector()
    >>> for step in range(300):
    ...     model.learn_one({"heat": step * 37 % 100, "state": "on" if step % 3 else "off"})
    >>> model.score_one({"heat": 500.0, "state": "on"}) > model.score_one({"heat": 50.0, "state": "on"})
    True
    >>> list(model.explain_one({"heat": 500.0, "state": "on"}))
    ['heat', 'state=on']

    References
    ----------
    Z. Li, Y. Zhao, X. Hu, N. Botta, C. Ionescu, G. H. Chen. ECOD: Unsupervised outlier detection using empirical
    cumulative distribution functions. IEEE TKDE 2022.
    Z. Li, Y. Zhao, N. Botta, C. Ionescu, X. Hu. COPOD: Copula-based outlier detection. ICDM 2020.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"window": Integer(2, 100_000)}

    window: int = 250

    def _model(self) -> TailModel:
        return TailModel(self.window)

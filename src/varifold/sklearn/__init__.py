"""Learners as scikit-learn estimators, for data frames whose columns change. Needs the extra ``sklearn``.

It imports `base`, streams and what is below; nothing but the command line imports it.
"""

from varifold.sklearn.classifier import VarifoldClassifier
from varifold.sklearn.detector import VarifoldDetector
from varifold.sklearn.regressor import VarifoldRegressor

__all__ = ["EXPECTED_FAILED_CHECKS", "VarifoldClassifier", "VarifoldDetector", "VarifoldRegressor"]

_ORDER = (
    "the learners learn one row after the other: a row of weight 2 is one larger step, which differs from two steps "
    "with the same row"
)
EXPECTED_FAILED_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": _ORDER,
    "check_sample_weight_equivalence_on_sparse_data": _ORDER,
}
"""Checks of scikit-learn's `check_estimator` that must fail, and why: its argument ``expected_failed_checks``."""

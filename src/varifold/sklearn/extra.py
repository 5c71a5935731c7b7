"""Import scikit-learn if it is installed; without it, making an estimator reports how to install it."""

from __future__ import annotations

from typing import Any

from varifold.errors import missing_extra

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "OutlierMixin",
    "RegressorMixin",
    "assert_all_finite",
    "check_array",
    "check_classification_targets",
    "check_consistent_length",
    "check_is_fitted",
    "check_random_state",
    "check_sample_weight",
    "column_or_1d",
    "compute_sample_weight",
]

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
    from sklearn.utils import (
        assert_all_finite,
        check_array,
        check_consistent_length,
        check_random_state,
        column_or_1d,
        compute_sample_weight,
    )
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight as check_sample_weight
    from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: F401  (validate_data: 1.6 or newer)
except ImportError:

    def _missing(*args: Any, **params: Any) -> Any:
        """Replace a function of scikit-learn; no estimator can be made that calls it."""
        raise missing_extra("varifold.sklearn needs scikit-learn 1.6 or newer", "sklearn")

    class ClassifierMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's class of this name."""

    class OutlierMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's class of this name."""

    class RegressorMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's class of this name."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Replaces scikit-learn's class of this name; it cannot be instantiated."""

        __new__ = _missing

    assert_all_finite = check_array = check_classification_targets = check_consistent_length = _missing
    check_is_fitted = check_random_state = check_sample_weight = column_or_1d = compute_sample_weight = _missing

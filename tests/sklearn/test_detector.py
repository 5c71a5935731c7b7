"""VarifoldDetector: scikit-learn's outlier detectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import varifold
from varifold.sklearn import EXPECTED_FAILED_CHECKS, VarifoldDetector


def test_scikit_learns_checks() -> None:
    check_estimator(VarifoldDetector("taildetector"), expected_failed_checks=EXPECTED_FAILED_CHECKS, on_skip=None)


def frame(count: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    a = rng.normal(size=count)
    return pd.DataFrame({"a": a, "b": 2 * a + rng.normal(scale=0.1, size=count), "c": rng.random(count)})


def test_outliers_are_minus_one_and_columns_go_by_name() -> None:
    detector = VarifoldDetector(contamination=0.05).fit(frame())
    rows = pd.DataFrame({"new": [1.0, 1.0], "b": [0.1, -8.0], "a": [0.05, 8.0]})
    assert detector.predict(rows).tolist() == [1, -1]
    assert (detector.decision_function(rows) == detector.score_samples(rows) - detector.offset_).all()
    assert detector.score_samples(rows)[1] == -detector.model_.score_one({"a": 8.0, "b": -8.0})


def test_parameters_of_the_detector_are_nested() -> None:
    detector = clone(VarifoldDetector("taildetector")).set_params(model__window=40)
    assert detector.fit(frame()).model_.window == 40
    with pytest.raises(varifold.errors.ParameterError, match="is for classification"):
        VarifoldDetector(varifold.AROW()).fit(frame())

"""The regressor for scikit-learn: its checks, its tools, and columns that change."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import varifold
from varifold.errors import LabelError, ParameterError
from varifold.sklearn import EXPECTED_FAILED_CHECKS, VarifoldClassifier, VarifoldRegressor


def table(n: int = 300) -> tuple[pd.DataFrame, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    rng = np.random.default_rng(5)
    load = rng.normal(size=n)
    fan = rng.choice(["on", "off"], n)
    y = 3.0 * load + 2.0 * (fan == "on") + 10.0 + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"load": np.where(rng.random(n) < 0.05, np.nan, load), "fan": fan}), y


def test_scikit_learns_checks_pass_but_for_those_declared() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = check_estimator(
            VarifoldRegressor(), expected_failed_checks=EXPECTED_FAILED_CHECKS, on_fail="raise", on_skip=None
        )
    assert {d["check_name"] for d in done if d["status"] == "xfail"} == set(EXPECTED_FAILED_CHECKS)
    assert len(done) > 50


def test_scores_grid_search_and_clone() -> None:
    frame, y = table()
    assert cross_val_score(VarifoldRegressor(), frame, y, cv=3).mean() > 0.7
    search = GridSearchCV(VarifoldRegressor("arowregressor"), {"model__r": [0.1, 10.0]}, cv=3).fit(frame, y)
    assert search.best_estimator_.model_.r == search.best_params_["model__r"]
    assert clone(search.best_estimator_).get_params()["model__r"] == search.best_params_["model__r"]


def test_partial_fit_continues_over_changing_columns() -> None:
    frame, y = table()
    whole = VarifoldRegressor("arowregressor", shuffle=False).fit(frame, y)
    assert VarifoldRegressor("arowregressor").fit(frame, y).model_.to_bytes() != whole.model_.to_bytes()
    parts = VarifoldRegressor("arowregressor").partial_fit(frame[:90], y[:90]).partial_fit(frame[90:], y[90:])
    assert parts.model_.to_bytes() == whole.model_.to_bytes()
    learner = varifold.models["arowregressor"]()
    learner.learn_many(frame, y.tolist())
    assert learner.to_bytes() == whole.model_.to_bytes()
    parts.partial_fit(frame.drop(columns="fan").assign(heat=1.0), y)
    assert parts.feature_names_in_.tolist() == ["load", "heat"]
    assert np.isfinite(parts.predict(pd.DataFrame({"heat": [1.0], "new": ["x"]}))).all()


def test_what_does_not_fit_is_rejected() -> None:
    frame, y = table()
    reg = VarifoldRegressor().fit(frame, y)
    before = reg.model_.to_bytes()
    with pytest.raises(ParameterError, match="AROW is for classification; VarifoldRegressor is for regression"):
        VarifoldRegressor(varifold.AROW()).fit(frame, y)
    with pytest.raises(ParameterError, match="is for regression; VarifoldClassifier is for classification"):
        VarifoldClassifier("arowregressor").fit(frame, ["a"] * len(y))
    with pytest.raises(ValueError, match="NaN"):
        reg.partial_fit(frame, np.full(len(y), np.nan))
    with pytest.raises(LabelError, match="requires y"):
        reg.fit(frame, None)
    assert reg.model_.to_bytes() == before


def test_a_classifiers_name_means_its_regressor() -> None:
    frame, y = table(60)
    assert isinstance(VarifoldRegressor("auto").fit(frame, y).model_, varifold.AutoRegressor)
    made = VarifoldRegressor("arow:r=0.5").fit(frame, y).model_
    assert isinstance(made, varifold.AROWRegressor)
    assert made.r == 0.5
    with pytest.raises(ParameterError, match="OGD is for classification; VarifoldRegressor is for regression"):
        VarifoldRegressor("ogd").fit(frame, y)


def test_intervals_are_the_learners() -> None:
    frame = pd.DataFrame(
        {"load": [float(i % 10) for i in range(300)], "noise": np.random.default_rng(0).normal(size=300)}
    )
    reg = VarifoldRegressor("arow:coverages=(0.8,)").fit(frame, frame["load"] + frame["noise"])
    found = reg.predict_interval(frame[:5], 0.8)
    wanted = [reg.model_.predict_interval_one(x, 0.8) for x in frame[:5].to_dict("records")]
    assert found.tolist() == [list(each) for each in wanted]
    with pytest.raises(ParameterError, match=r"no coverage 0\.9, only 0\.8"):
        reg.predict_interval(frame[:5])

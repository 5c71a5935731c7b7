"""The scikit-learn estimator: scikit-learn's own checks, its tools around it, and columns that change."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, check_estimator

import varifold
from varifold.errors import DataError, FeatureValueError, LabelError, ParameterError, UnknownNameError
from varifold.sklearn import EXPECTED_FAILED_CHECKS, VarifoldClassifier


def plant(n: int = 240) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """A table with gaps, a string column and a categorical one; the label follows `load`."""
    rng = np.random.default_rng(3)
    load = rng.normal(size=n)
    y = np.where(load + 0.3 * rng.normal(size=n) > 0, "fault", "ok")
    frame = pd.DataFrame(
        {
            "load": np.where(rng.random(n) < 0.1, np.nan, load),
            "fan": rng.choice(["on", "off"], n),
            "site": pd.Categorical(rng.choice(["north", "south"], n)),
        }
    )
    frame.loc[::7, "fan"] = None
    return frame, y


# ---------------------------------------------------------------- scikit-learn's checks


@pytest.mark.parametrize(
    ("model", "failing"),
    [("auto", set(EXPECTED_FAILED_CHECKS)), ("arow", set(EXPECTED_FAILED_CHECKS)), (varifold.GaussianNB(), set())],
    ids=["auto", "arow", "a learner that counts"],
)
def test_scikit_learns_checks_pass_but_for_those_declared(model: Any, failing: set[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = check_estimator(
            VarifoldClassifier(model), expected_failed_checks=EXPECTED_FAILED_CHECKS, on_fail="raise", on_skip=None
        )
    status = {name: {d["status"] for d in done if d["check_name"] == name} for name in {d["check_name"] for d in done}}
    assert {name for name, found in status.items() if "xfail" in found} == failing
    assert len(done) > 50


def test_names_of_columns_are_kept_as_scikit_learn_has_them() -> None:
    frame, y = plant()
    clf = VarifoldClassifier("arow").fit(frame, y)
    assert clf.n_features_in_ == 3
    assert clf.feature_names_in_.tolist() == ["load", "fan", "site"]
    clf.fit(frame[["load"]].to_numpy(), y)
    assert clf.n_features_in_ == 1
    assert not hasattr(clf, "feature_names_in_")
    # scikit-learn's own check goes on to demand that a frame of other columns be rejected
    with pytest.raises(AssertionError, match="predict did not raise"):
        check_dataframe_column_names_consistency("VarifoldClassifier", VarifoldClassifier("arow"))


# ---------------------------------------------------------------- its tools


def test_cross_validation_and_grid_search_reach_the_learners_parameters() -> None:
    frame, y = plant()
    assert cross_val_score(VarifoldClassifier("arow"), frame, y, cv=3).mean() > 0.75
    for model in ("arow:scale=minmax", varifold.AROW(scale="minmax")):
        search = GridSearchCV(VarifoldClassifier(model), {"model__r": [0.1, 10.0]}, cv=3).fit(frame, y)
        best = search.best_estimator_.model_
        assert (best.r, best.scale) == (search.best_params_["model__r"], "minmax")
        assert search.cv_results_["mean_test_score"][0] != search.cv_results_["mean_test_score"][1]


def test_clone_copies_parameters_and_nothing_learned() -> None:
    frame, y = plant()
    learner = varifold.OLVF(C=0.5)
    learner.learn_one({"load": 1.0}, "ok")
    clf = VarifoldClassifier(learner).fit(frame, y)
    assert learner.steps == 1
    assert clf.model_.steps == len(y)
    again = clone(clf)
    assert again.get_params()["model__C"] == 0.5
    assert not hasattr(again, "model_")
    assert again.fit(frame, y).model_.to_bytes() == clf.model_.to_bytes()


def test_parameters_are_checked_by_name_and_when_fitted() -> None:
    frame, y = plant()
    with pytest.raises(ParameterError, match=r"no 'rr'.*it has: r, "):
        VarifoldClassifier("arow").set_params(model__rr=1.0)
    with pytest.raises(ParameterError, match=r"'modle'.*model"):
        VarifoldClassifier().set_params(modle="arow")
    with pytest.raises(UnknownNameError, match="arow"):
        VarifoldClassifier("arwo").fit(frame, y)
    assert set(VarifoldClassifier("arwo").get_params()) == {
        "model",
        "omitted",
        "shuffle",
        "random_state",
        "class_weight",
    }
    with pytest.raises(ParameterError, match="Got <class"):
        VarifoldClassifier(varifold.AROW).fit(frame, y)
    with pytest.raises(ParameterError, match="'absent', 'zero'"):
        VarifoldClassifier("arow", omitted="none").fit(frame, y)
    assert "arow" in repr(VarifoldClassifier("arow"))


def test_pipeline_and_column_transformer_keep_names() -> None:
    frame, y = plant()
    scaled = ColumnTransformer([("number", StandardScaler(), ["load"])], remainder="passthrough")
    pipe = make_pipeline(scaled.set_output(transform="pandas"), VarifoldClassifier("arow")).fit(frame, y)
    assert pipe.score(frame, y) > 0.75
    known = set(pipe[-1].features_)
    assert {"number__load", "remainder__fan=on", "remainder__site=north"} <= known


# ---------------------------------------------------------------- what a column is


def test_columns_come_and_go_between_calls() -> None:
    frame, y = plant()
    clf = VarifoldClassifier("arow").fit(frame[:100], y[:100])
    later = frame[100:].drop(columns="fan").assign(heat=np.arange(140.0))
    clf.partial_fit(later, y[100:])
    assert clf.feature_names_in_.tolist() == ["load", "site", "heat"]
    assert {"load", "fan=on", "heat"} <= set(clf.features_)
    lone = clf.predict_proba(pd.DataFrame({"heat": [1.0], "never seen": ["x"]}))
    assert lone.shape == (1, 2)
    assert lone.sum() == pytest.approx(1.0)


def test_every_kind_of_table_gives_the_same_state() -> None:
    frame, y = plant()
    expected = VarifoldClassifier("arow").fit(frame, y).model_.to_bytes()
    dicts = [{k: v for k, v in row.items() if v == v} for row in frame.to_dict("records")]
    for X in (pl.from_pandas(frame), dicts):
        assert VarifoldClassifier("arow").fit(X, y).model_.to_bytes() == expected
    for targets in (pd.Series(y), pl.Series(y), y.tolist()):
        assert VarifoldClassifier("arow").fit(frame, targets).model_.to_bytes() == expected


def test_nan_is_absence_and_sparse_cells_are_as_requested() -> None:
    dense = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 0.0]])
    y = [0, 1, 0]
    seen = VarifoldClassifier("arow").fit(dense, y).features_
    assert {name: f.count for name, f in seen.items()} == {0: 2, 1: 2}
    stored = sparse.csr_array(np.nan_to_num(dense))
    assert {n: f.count for n, f in VarifoldClassifier("arow").fit(stored, y).features_.items()} == {0: 2, 1: 1}
    zeros = VarifoldClassifier("arow", omitted="zero").fit(stored, y).features_
    assert {n: f.count for n, f in zeros.items()} == {0: 3, 1: 3}


def test_arrays_of_strings_are_taken() -> None:
    X = np.array([["on", 1.0], ["off", None], ["on", 2.0]], dtype=object)
    clf = VarifoldClassifier("arow").fit(X, ["a", "b", "a"])
    assert set(clf.features_) == {"0=on", "0=off", 1}


def test_an_array_after_a_frame_is_read_by_position_with_a_warning() -> None:
    frame, y = plant()
    numbers = frame[["load"]].assign(heat=1.0)
    clf = VarifoldClassifier("arow").fit(numbers, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        by_place = clf.predict_proba(numbers.to_numpy())
    assert np.array_equal(by_place, clf.predict_proba(numbers))
    with pytest.raises(DataError, match=r"X has 3 features.*expecting 2 features.*data frame"):
        clf.predict(np.zeros((1, 3)))


# ---------------------------------------------------------------- labels and weights


def test_labels_are_added_as_they_come_unless_declared() -> None:
    frame, y = plant()
    clf = VarifoldClassifier("arow").partial_fit(frame[:5], ["b"] * 5)
    assert clf.classes_.tolist() == ["b"]
    clf.partial_fit(frame[5:10], ["a"] * 5)
    assert clf.classes_.tolist() == ["a", "b"]
    assert clf.predict_proba(frame[:1]).argmax() == clf.classes_.tolist().index(clf.predict(frame[:1])[0])
    fixed = VarifoldClassifier("arow").partial_fit(frame, y, classes=["ok", "fault", "warn"])
    assert fixed.classes_.tolist() == ["fault", "ok", "warn"]
    assert fixed.predict_proba(frame)[:, 2].max() == 0.0
    before = fixed.model_.to_bytes()
    with pytest.raises(LabelError, match="'new' is not among the declared"):
        fixed.partial_fit(frame[:1], ["new"])
    with pytest.raises(LabelError, match="not the same as on last call"):
        fixed.partial_fit(frame[:1], ["ok"], classes=["ok", "new"])
    assert fixed.model_.to_bytes() == before


def test_fit_starts_again_and_partial_fit_continues() -> None:
    frame, y = plant()
    whole = VarifoldClassifier("arow", shuffle=False).fit(frame, y)
    parts = VarifoldClassifier("arow").partial_fit(frame[:90], y[:90]).partial_fit(frame[90:], y[90:])
    assert parts.model_.to_bytes() == whole.model_.to_bytes()
    assert whole.fit(frame[:90], y[:90]).model_.steps == 90


def test_integer_labels_and_weights_reach_the_learner() -> None:
    frame, y = plant()
    numbers = (y == "fault").astype(int)
    w = np.linspace(0.0, 2.0, len(y))
    clf = VarifoldClassifier("arow", shuffle=False).fit(frame, numbers, sample_weight=w)
    learner = varifold.AROW()
    learner.learn_many(frame, numbers.tolist(), w)
    assert clf.model_.to_bytes() == learner.to_bytes()
    assert clf.predict(frame).dtype == numbers.dtype


def test_what_cannot_be_learned_is_rejected_and_changes_nothing() -> None:
    frame, y = plant()
    clf = VarifoldClassifier("arow").fit(frame, y)
    before = clf.model_.to_bytes()
    with pytest.raises(FeatureValueError, match="inf"):
        clf.partial_fit(frame.assign(load=np.inf), y)
    with pytest.raises(LabelError, match="requires y"):
        clf.fit(frame, None)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        clf.fit(frame, y[:3])
    with pytest.raises(DataError, match="0 sample"):
        clf.fit(frame[:0], [])
    assert clf.model_.to_bytes() == before
    with pytest.raises(NotFittedError):
        VarifoldClassifier().predict(frame)


def test_pickles_continue() -> None:
    frame, y = plant()
    clf = VarifoldClassifier("arow").fit(frame[:90], y[:90])
    again = pickle.loads(pickle.dumps(clf))
    states = [c.partial_fit(frame[90:], y[90:]).model_.to_bytes() for c in (clf, again)]
    assert states[0] == states[1]


def test_labels_of_another_type_are_rejected_and_change_nothing() -> None:
    X = pd.DataFrame({"a": [0.0, 1.0]})
    model = VarifoldClassifier("arow").fit(X, ["1", "2"])
    with pytest.raises(LabelError, match="another type"):
        model.partial_fit(X, [3, 4])
    assert model.predict(X).tolist() == ["1", "2"]


def test_sorted_labels_give_a_warning_and_shuffling_helps() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="the 150 rows are sorted by their label.*shuffle=True"):
        ordered = VarifoldClassifier("arow", shuffle=False).fit(X, y)
    shuffled = VarifoldClassifier("arow").fit(X, y)
    assert shuffled.score(X, y) > max(0.8, ordered.score(X, y))
    again = VarifoldClassifier("arow", random_state=1).fit(X, y)
    assert (again.predict_proba(X) != shuffled.predict_proba(X)).any()


def test_the_default_learns_sorted_rows() -> None:
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(VarifoldClassifier(), X, y).mean() >= 0.95


def test_fit_permutes_by_its_seed_and_partial_fit_keeps_the_order() -> None:
    frame, y = plant()
    first, second = (VarifoldClassifier("arow").fit(frame, y) for _ in range(2))
    assert first.model_.to_bytes() == second.model_.to_bytes()
    drawn = VarifoldClassifier("arow", random_state=np.random.RandomState(0)).fit(frame, y)
    assert drawn.model_.to_bytes() == first.model_.to_bytes()
    learner = varifold.AROW()
    learner.learn_many(frame, y.tolist())
    assert first.model_.to_bytes() != learner.to_bytes()
    assert VarifoldClassifier("arow").partial_fit(frame, y).model_.to_bytes() == learner.to_bytes()
    assert VarifoldClassifier("arow", shuffle=False).fit(frame, y).model_.to_bytes() == learner.to_bytes()


def test_class_weight_multiplies_the_weights_of_rows() -> None:
    frame, y = plant()
    w = np.linspace(0.5, 2.0, len(y))
    by_label = np.where(y == "fault", 3.0, 1.0)
    for fit in ("fit", "partial_fit"):
        weighted = getattr(VarifoldClassifier("arow", class_weight={"fault": 3.0}), fit)(frame, y, sample_weight=w)
        plain = getattr(VarifoldClassifier("arow"), fit)(frame, y, sample_weight=w * by_label)
        assert weighted.model_.to_bytes() == plain.model_.to_bytes()
    balanced = VarifoldClassifier("arow", class_weight="balanced").fit(frame, y)
    share = {label: len(y) / (2 * np.sum(y == label)) for label in np.unique(y)}
    wanted = VarifoldClassifier("arow").fit(frame, y, sample_weight=[share[label] for label in y])
    assert balanced.model_.to_bytes() == wanted.model_.to_bytes()
    with pytest.raises(ParameterError, match=r"balanced.*partial_fit"):
        VarifoldClassifier("arow", class_weight="balanced").partial_fit(frame, y)
    with pytest.raises(ValueError, match="class_weight"):
        VarifoldClassifier("arow", class_weight="heavy").fit(frame, y)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_numbers_and_many_labels_are_rejected() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 2))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        VarifoldClassifier("arow").fit(X, X[:, 0])
    for y in ([f"{v:.3f}".replace(".", ",") for v in X[:, 0]], np.arange(300)):
        for fit in ("fit", "partial_fit"):
            with pytest.raises(LabelError, match="different labels among the first 300 rows"):
                getattr(VarifoldClassifier("arow"), fit)(X, y)
    declared = VarifoldClassifier("arow").partial_fit(X, np.arange(300), classes=np.arange(300))
    assert len(declared.classes_) == 300


def test_a_label_that_is_none_is_named():
    with pytest.raises(varifold.errors.LabelError, match=r"y holds None in 2 rows, the first is 1; leave those"):
        VarifoldClassifier("arow").fit(np.zeros((4, 2)), ["a", None, "b", None])

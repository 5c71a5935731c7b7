"""The imputer: what it fills in, what it leaves, and that it keeps and copies itself."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from river import compose, linear_model, preprocessing
from scipy.special import ndtr

import varifold
from tests.oracles.copula import PlainCopula
from varifold import OLVF
from varifold.base import to_block
from varifold.copula import CopulaImputer
from varifold.errors import DataError, FeatureValueError, ModelFileError, ParameterError


def machine(rng):
    """Heat decides the rest: a number, a Boolean, a grade and a word."""
    heat = rng.normal()
    return {
        "heat": heat,
        "power": np.exp(heat + 0.2 * rng.normal()),
        "alarm": heat > 0.8,
        "grade": float(np.clip(np.round(heat + 0.2 * rng.normal()), -2, 2)),
        "state": "cold" if heat < -0.5 else "hot" if heat > 0.5 else "mild",
    }


def thinned(row, rng, rate=0.4):
    return {name: value for name, value in row.items() if rng.random() > rate}


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    imputer = CopulaImputer()
    for _ in range(1500):
        imputer.learn_one(thinned(machine(rng), rng))
    return imputer


def test_fills_every_kind_of_feature(trained):
    rng = np.random.default_rng(1)
    right = {"alarm": 0, "grade": 0, "state": 0}
    errors, spreads = [], []
    for _ in range(300):
        row = machine(rng)
        filled = trained.transform_one({"heat": row["heat"]})
        assert set(filled) == set(row)
        for name in right:
            right[name] += filled[name] == row[name]
        errors.append(np.log(max(filled["power"], 1e-9)) - np.log(row["power"]))
        spreads.append(row["heat"])
    assert right["alarm"] > 270
    assert right["grade"] > 220
    assert right["state"] > 240
    assert np.std(errors) < 0.6 * np.std(spreads)


def test_intervals_cover_as_promised(trained):
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(500):
        row = machine(rng)
        imputed = trained.impute_one({"grade": row["grade"], "state": row["state"]})["power"]
        assert imputed.low <= imputed.value <= imputed.high
        inside += imputed.low <= row["power"] <= imputed.high
    assert 0.82 < inside / 500 < 0.98


def test_what_is_given_stays_and_nothing_is_learned(trained):
    before = trained._engine.dump()[2]
    x = {"heat": 99.0, "state": "never seen", "new": 3.0, "power": None, "grade": float("nan")}
    filled = trained.transform_one(x)
    assert filled["heat"] == 99.0
    assert filled["state"] == "never seen"
    assert filled["new"] == 3.0
    assert filled["power"] > 1.0
    assert filled["grade"] in {-2.0, -1.0, 0.0, 1.0, 2.0}
    for key, array in trained._engine.dump()[2].items():
        np.testing.assert_array_equal(array, before[key], err_msg=key)
    assert trained.transform_one({}).keys() == {"heat", "power", "alarm", "grade", "state"}
    assert CopulaImputer().transform_one({"a": 1.0}) == {"a": 1.0}


def test_median_is_the_quantile_at_the_regressed_score():
    rng = np.random.default_rng(3)
    imputer, plain = CopulaImputer(statistic="median", batch=10), PlainCopula(b=10)
    for _ in range(200):
        a = rng.normal()
        x = thinned({"a": a, "b": a + rng.normal(), "c": float(rng.integers(3))}, rng)
        imputer.learn_one(x)
        if x:
            plain.learn(x)
    names, correlation = imputer.correlation()
    order = [plain.names.index(name) for name in names]
    np.testing.assert_allclose(correlation, plain.sigma[np.ix_(order, order)], atol=1e-9)
    z = plain.scores({"a": 0.7})["b"]
    window = np.sort(plain.marginals["b"].values)
    at = ndtr(z) * (len(window) + 1)
    assert imputer.impute_one({"a": 0.7})["b"].value == pytest.approx(
        np.interp(at, np.arange(1, len(window) + 1), window)
    )


def test_blocks_and_frames_give_what_single_instances_give(trained):
    rng = np.random.default_rng(4)
    rows = [thinned(machine(rng), rng) for _ in range(80)]
    one, many = CopulaImputer(), CopulaImputer()
    for row in rows:
        one.learn_one(row)
    many.learn_many(to_block(rows))
    for key, array in one._engine.dump()[2].items():
        np.testing.assert_array_equal(array, many._engine.dump()[2][key], err_msg=key)
    expected = [trained.transform_one(row) for row in rows]
    assert trained.transform_many(rows) == expected
    frame = trained.transform_many(pd.DataFrame(rows))
    assert isinstance(frame, pd.DataFrame)
    for name in ("heat", "power", "grade"):
        np.testing.assert_array_equal(frame[name].astype(float), [row[name] for row in expected])
    assert frame["state"].tolist() == [row["state"] for row in expected]


def test_stands_before_a_river_model():
    rng = np.random.default_rng(5)
    model = compose.Pipeline(
        CopulaImputer(), compose.SelectType(float), preprocessing.StandardScaler(), linear_model.LogisticRegression()
    )
    right = 0
    for step in range(600):
        row = machine(rng)
        x = thinned({name: float(row[name]) for name in ("heat", "power", "grade")}, rng)
        y = row["heat"] > 0
        right += step >= 300 and model.predict_one(x) == y
        model.learn_one(x, y)
    assert right > 240


def test_keeps_and_copies_itself(trained, tmp_path):
    trained.save(tmp_path / "imputer")
    for other in (
        CopulaImputer.load(tmp_path / "imputer"),
        pickle.loads(pickle.dumps(trained)),
        copy.deepcopy(trained),
    ):
        for key, array in trained._engine.dump()[2].items():
            np.testing.assert_array_equal(array, other._engine.dump()[2][key], err_msg=key)
        assert other.impute_one({"heat": 0.3}) == trained.impute_one({"heat": 0.3})
    fresh = trained.clone()
    assert fresh.transform_one({"heat": 0.3}) == {"heat": 0.3}


def test_wrong_parameters_and_files_are_rejected(tmp_path):
    with pytest.raises(ParameterError, match="coverage"):
        CopulaImputer(coverage=1.0)
    model = OLVF()
    model.learn_one({"a": 1.0}, True)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="not a CopulaImputer"):
        CopulaImputer.load(tmp_path / "model")


def test_bytes_continue_and_are_checked(tmp_path):
    imputer = CopulaImputer(window=50, max_features=np.int64(20))
    rows = [machine(np.random.default_rng(t)) for t in range(90)]
    for x in rows[:60]:
        imputer.learn_one(x)
    again = CopulaImputer.from_bytes(imputer.to_bytes())
    assert again._get_params() == imputer._get_params()
    for x in rows[60:]:
        imputer.learn_one(x)
        again.learn_one(x)
    assert again.impute_one({"heat": 0.5}) == imputer.impute_one({"heat": 0.5})
    assert again.to_bytes() == imputer.to_bytes()
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        CopulaImputer.from_bytes(imputer.to_bytes()[:-3])
    with pytest.raises(ModelFileError, match="CopulaImputer, not a learner"):
        varifold.from_bytes(imputer.to_bytes())
    with pytest.raises(ModelFileError, match="OLVF, not a CopulaImputer"):
        CopulaImputer.from_bytes(OLVF().to_bytes())


def test_it_reports_its_steps_features_and_size_as_learners_do():
    imputer = CopulaImputer()
    imputer.learn_many([{"a": 1.0, "b": "x"}, {"a": 2.0}])
    assert imputer.steps == 2
    assert {name: feature.count for name, feature in imputer.features.items()} == {"a": 2, "b=x": 1}
    assert sum(imputer.state_bytes().values()) > 0


def test_a_pandas_frame_keeps_its_index():
    frame = pd.DataFrame([{"a": float(t), "b": None if t % 3 == 0 else 2.0 * t} for t in range(40)], index=range(7, 47))
    imputer = CopulaImputer()
    imputer.learn_many(frame)
    filled = imputer.transform_many(frame)
    assert list(filled.index) == list(frame.index)
    assert not filled["b"].isna().any()
    assert filled["b"][8] == 2.0


def test_it_knows_no_labels():
    rows = [{"a": float(t % 5), "b": float(t % 3)} for t in range(50)]
    one, many, labelled = CopulaImputer(), CopulaImputer(), CopulaImputer()
    for x in rows:
        one.learn_one(x)
    many.learn_many(rows)
    labelled.learn_many(to_block(rows, list("xy") * 25))
    assert one.to_bytes() == many.to_bytes() == labelled.to_bytes()
    _, labels, arrays = one._engine.dump()
    assert labels == []
    assert not [key for key in arrays if "count" in key.split(".")[0] or key.endswith("classes")]


def test_a_rejected_weight_or_value_changes_nothing():
    imputer = CopulaImputer()
    imputer.learn_one({"a": 1.0})
    before = imputer.to_bytes()
    for bad in (-1.0, float("nan"), "3"):
        with pytest.raises(DataError, match="weight"):
            imputer.learn_one({"a": 2.0, "new": 1.0}, w=bad)
    with pytest.raises(FeatureValueError, match="'a' is inf"):
        imputer.learn_one({"a": float("inf"), "new": 1.0})
    imputer.learn_one({"new": 1.0}, w=0.0)
    assert imputer.to_bytes() == before


def test_present_features_are_reconstructed_from_the_others():
    rng = np.random.default_rng(0)
    imputer = CopulaImputer()
    for _ in range(800):
        a = float(rng.normal())
        row = {
            "a": a,
            "b": 2 * a + 0.1 * float(rng.normal()),
            "s": "high" if a > 0 else "low",
            "noise": float(rng.normal()),
        }
        imputer.learn_one(row)
    x = {"a": 1.5, "b": 3.0, "s": "high", "unknown": 1.0}
    found = imputer.reconstruct_one(x)
    assert set(found) == {"a", "b", "s"}
    assert found["a"].value == pytest.approx(1.5, abs=0.3)
    assert found["b"].low < 3.0 < found["b"].high
    assert found["s"].value == "high"
    assert found["a"] == imputer.impute_one({"b": 3.0, "s": "high"})["a"]
    wrong = imputer.reconstruct_one({"a": 1.5, "b": -3.0})
    assert abs(wrong["b"].value + 3.0) > 4.0, "a value that does not fit the others has a large error"

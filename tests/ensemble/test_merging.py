"""Merging: exact merges equal one stream, approximate ones come near, and the inputs stay as they are."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import varifold
from tests.engines import class_engine
from varifold._engine.engine import Engine
from varifold._engine.merging import HINGE, LOGISTIC
from varifold.checks.material import Pair, clear_stream, learn, state, stream
from varifold.ensemble.merging import merged_state
from varifold.errors import FeatureNameError, ParameterError
from varifold.forest._tdigest import TDigest
from varifold.linear._additive import joined_sample
from varifold.linear._arow import product_of_gaussians
from varifold.naive_bayes._frequency import FrequencyModel

EXACT = ["gaussiannb", "nb3"]
APPROXIMATE = ["additive", "arow", "fobos", "ftrladp", "ftrlproximal", "ogd", "olsf", "olvf", "ovfm", "pa"]


def in_parts(model: Any, pairs: Sequence[Pair], n: int = 4) -> list[Any]:
    """Clones of a learner, each of which learned the next part of the instances."""
    size = len(pairs) // n
    return [learn(model.clone(), pairs[i * size : (i + 1) * size]) for i in range(n)]


def assert_near(one: Any, other: Any, rows: Sequence[Pair], within: float) -> None:
    for x, _ in rows:
        a, b = one.predict_proba_one(x), other.predict_proba_one(x)
        assert a.keys() == b.keys()
        assert all(abs(a[label] - b[label]) <= within for label in a), (x, a, b)


def test_the_lists_are_what_the_methods_say() -> None:
    kinds = {name: cls().traits.merging for name, cls in varifold.models.items()}
    assert sorted(name for name, kind in kinds.items() if kind == "exact") == EXACT
    assert sorted(name for name, kind in kinds.items() if kind == "approximate") == APPROXIMATE


@pytest.mark.parametrize("labels", [("a", "b"), ("a", "b", "c"), (3, 1)])
@pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
@pytest.mark.parametrize("name", EXACT)
def test_an_exact_merge_equals_one_stream(name: str, scale: str, labels: tuple[Any, ...]) -> None:
    pairs = stream(400, labels=labels)
    blank = varifold.models[name](scale=scale, calibrate=False)  # a merged learner's calibration begins again
    one, merged = learn(blank.clone(), pairs), varifold.merge(in_parts(blank, pairs))
    assert_near(one, merged, stream(100, seed=8, labels=labels), 1e-12)
    assert merged.steps == 400
    assert merged.classes == one.classes
    occurrences = [{k: (f.first_seen, f.last_seen, f.count) for k, f in m.features.items()} for m in (one, merged)]
    assert occurrences[0] == occurrences[1]
    assert merged._engine.dump()[2]["counts"].tolist() == one._engine.dump()[2]["counts"].tolist()


@pytest.mark.parametrize("scale", ["standard", "minmax"])
@pytest.mark.parametrize("name", [*EXACT, *APPROXIMATE])
def test_scales_of_every_method_are_those_of_one_stream(name: str, scale: str) -> None:
    pairs = stream(200)
    blank = varifold.models[name](scale=scale)
    one, merged = learn(blank.clone(), pairs), varifold.merge(in_parts(blank, pairs))
    slots = [merged._engine.space.id_of(one._engine.space.name_of(i)) for i in one._engine.space.live()]
    ours = merged._engine.dump()[2]["scaler"][slots]
    np.testing.assert_allclose(ours, one._engine.dump()[2]["scaler"][one._engine.space.live()], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussiannb", "arow"])
def test_robust_scales_are_near_those_of_one_stream(name: str) -> None:
    rng = np.random.default_rng(0)
    pairs = []
    for step in range(900):
        value = 1e6 if rng.random() < 0.01 else rng.normal(5.0 + step % 2, 2.0)
        pairs.append(({"a": float(value), "word": 1.0, "count": float(1 + (rng.random() < 0.1))}, step % 2))
    blank = varifold.models[name](scale="robust")
    one, merged = learn(blank.clone(), pairs), varifold.merge(in_parts(blank, pairs))
    slot = merged._engine.space.id_of
    ours, theirs = (m._engine.dump()[2]["scaler"] for m in (merged, one))
    for feature in ("a", "word", "count"):
        row, other = ours[slot(feature)], theirs[one._engine.space.id_of(feature)]
        np.testing.assert_allclose(row[:3], other[:3], rtol=0.2)
        if feature != "a":
            np.testing.assert_allclose(row[[6, 7]], other[[6, 7]], atol=0.1)
    assert varifold.from_bytes(merged.to_bytes()).to_bytes() == merged.to_bytes()
    hits = [m.predict_many([x for x, _ in pairs]) == np.array([y for _, y in pairs]) for m in (one, merged)]
    assert abs(np.mean(hits[0]) - np.mean(hits[1])) < 0.05


def test_class_frequencies_merge_exactly() -> None:
    def engine() -> Engine:
        return class_engine(FrequencyModel(), scale="none")

    parts = [engine() for _ in range(3)]
    one = engine()
    for part, labels in zip(parts, ("aab", "bcc", "ca"), strict=True):
        for label in labels:
            part.learn_one({"f": 1.0}, label, 0.5)
            one.learn_one({"f": 1.0}, label, 0.5)
    merged = engine()
    merged.fill(*merged_state([part.dump() for part in parts], merged, "none"))
    assert merged.predict_proba_one({"f": 1.0}) == one.predict_proba_one({"f": 1.0})


@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "yes", "maybe")])
@pytest.mark.parametrize("params", [{}, {"majority_bias": False}, {"scale": "none"}, {"fit_intercept": False}])
@pytest.mark.parametrize("name", APPROXIMATE)
def test_an_approximate_merge_predicts_like_one_stream(name: str, params: dict[str, Any], labels: Any) -> None:
    if name in ("additive", "ovfm"):
        params = {k: v for k, v in params.items() if k != "majority_bias"}
    pairs = clear_stream(900, labels=labels)
    blank = varifold.models[name](**params)
    one, merged = learn(blank.clone(), pairs), varifold.merge(in_parts(blank, pairs))
    rows = clear_stream(300, seed=9, labels=labels)
    right = [sum(m.predict_one(x) == y for x, y in rows) for m in (one, merged)]
    assert right[1] >= right[0] - 15, right


@pytest.mark.parametrize("name", [*EXACT, *APPROXIMATE])
def test_merging_one_learner_changes_no_prediction(name: str) -> None:
    for labels in (("no", "yes"), ("a", "b", "c")):
        one = learn(varifold.models[name](), stream(150, labels=labels))
        rows = stream(50, seed=3, labels=labels)
        assert_near(one, varifold.merge([one]), rows, 0.0)
        if name != "additive":  # it places the edges of its bins again
            merged = one.clone()
            merged._engine.fill(*merged_state([one._engine.dump()], merged._engine, one.scale))
            assert_near(one, merged, rows, 1e-12)


FORMS = [
    *[(name, {}) for name in APPROXIMATE if name not in ("additive", "ovfm")],  # a copula sees every instance
    ("additive", {"max_binned": 1}),  # with bins, merging moves their edges
    ("arow", {"covariance": "full"}),
    ("arow", {"covariance": "full", "max_dense": 3}),
]
NEAR = {"fobos": 0.01, "ftrladp": 0.1}
"""The part that brings the labels also brings a round: of shrinkage, and into the mean of the decayed counts."""


def unscaled(name: str, params: dict[str, Any]) -> Any:
    """Without scale and intercept, parts that know nothing of a feature do not move its weight."""
    return varifold.models[name](scale="none", fit_intercept=False, **params)


@pytest.mark.parametrize(("name", "params"), FORMS)
def test_a_problem_turns_round_with_the_order_of_its_labels(name: str, params: dict[str, Any]) -> None:
    """With two labels the second is +1; a learner of (yes, no) merges into one of (no, yes)."""
    pairs = stream(120, numeric=True)
    given = learn(unscaled(name, params), pairs)
    order = learn(unscaled(name, params), [({"other": 0.0}, label) for label in given.classes[::-1]])
    merged = varifold.merge([order, given])
    assert merged.classes == given.classes[::-1]
    for x, _ in pairs[:40]:
        near = pytest.approx(given.margins_one(x), rel=NEAR.get(name, 1e-4), abs=1e-6)
        assert merged.margins_one(x) == near


@pytest.mark.parametrize(("name", "params"), FORMS)
def test_a_third_label_splits_the_problem_as_learning_it_does(name: str, params: dict[str, Any]) -> None:
    """A part with two labels joins one with another label like a learner of two labels to which the third comes."""
    two = learn(unscaled(name, params), stream(120, numeric=True))
    merged = varifold.merge([two, learn(two.clone(), [({"other": 0.0}, "third")])])
    grown = learn(copy.deepcopy(two), [({"other": 0.0}, "third")])
    for x, _ in stream(30, seed=5, numeric=True):
        if name == "ftrladp":  # its margins, of thousands, are differences of larger numbers
            assert merged.predict_one(x) == grown.predict_one(x)
        else:
            near = pytest.approx(grown.margins_one(x), rel=NEAR.get(name, 1e-4), abs=1e-6)
            assert merged.margins_one(x) == near


def test_diagonal_gaussians_multiply() -> None:
    """Two learners of one feature: precisions beyond the prior add up, means weigh by precision."""
    parts = [varifold.AROW(r=2.0, scale="none", fit_intercept=False) for _ in range(2)]
    parts[0].learn_one({"f": 1.0}, "no")
    parts[0].learn_one({"f": -1.0}, "yes")
    parts[1].learn_one({"f": 2.0}, "no")
    states = [part._engine.dump()[2]["model.state"][1, 0] for part in parts]
    mean, gained = varifold.merge(parts)._engine.dump()[2]["model.state"][1, 0]
    assert gained == states[0][1] + states[1][1]
    assert mean == pytest.approx(sum(m * (1.0 + p) for m, p in states) / (1.0 + gained), rel=1e-12)


def test_full_gaussians_multiply() -> None:
    rng = np.random.default_rng(1)
    given = [rng.normal(size=(3, 3)) for _ in range(3)]
    covariances = [np.linalg.inv(np.eye(3) + a @ a.T) for a in given]
    means = [rng.normal(size=3) for _ in range(3)]
    mean, covariance = product_of_gaussians(means, covariances)
    precision = np.eye(3) + sum(a @ a.T for a in given)
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), atol=1e-12)
    pull = sum(np.linalg.inv(c) @ m for c, m in zip(covariances, means, strict=True))
    np.testing.assert_allclose(mean, np.linalg.solve(precision, pull), atol=1e-12)


def test_weights_follow_the_scale() -> None:
    """Two parts in other units: the effect of each weight on a raw value is kept."""
    parts = [varifold.PA(majority_bias=False, clip=1e9) for _ in range(2)]
    rng = np.random.default_rng(3)
    for part, spread in zip(parts, (1.0, 50.0), strict=True):
        for value in rng.normal(scale=spread, size=300):
            part.learn_one({"f": float(value)}, "high" if value > 0 else "low")
    merged = varifold.merge(parts)
    slopes = [m.margins_one({"f": 2.0})["high"] - m.margins_one({"f": 1.0})["high"] for m in (*parts, merged)]
    assert slopes[2] == pytest.approx((slopes[0] + slopes[1]) / 2, rel=0.05)  # the scale includes the value


def test_samples_join_by_their_counts() -> None:
    samples = np.stack([np.zeros(128), np.ones(128)])
    assert joined_sample(np.array([3000, 1000]), samples).sum() == 32
    few = joined_sample(np.array([3, 2]), samples)
    assert sorted(few.tolist()) == [0.0, 0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("name", [*EXACT, *APPROXIMATE])
def test_inputs_stay_and_the_merged_learner_goes_on(name: str, tmp_path: Any) -> None:
    parts = in_parts(varifold.models[name](), stream(200, labels=("a", "b", "c")))
    before = [state(part) for part in parts]
    merged = varifold.merge(parts)
    assert [state(part) for part in parts] == before
    merged.save(tmp_path / "m")
    again = varifold.load(tmp_path / "m")
    more = stream(100, seed=4, labels=("a", "b", "c", "d"))
    learn(merged, more)
    learn(again, more)
    assert state(merged) == state(again)
    assert [state(part) for part in parts] == before


@pytest.mark.parametrize("evict", ["oldest", "lightest"])
def test_a_bound_on_features_holds_after_merging(evict: str) -> None:
    parts = [varifold.AROW(max_features=6, evict=evict) for _ in range(3)]
    for number, part in enumerate(parts):
        learn(part, [({f"{number} {j}": float(t + j) for j in range(6)}, t % 2) for t in range(20)])
    merged = varifold.merge(parts)
    assert len(merged.features) <= 6
    if evict == "oldest":
        assert {str(name)[0] for name in merged.features} == {"2"}


def test_learners_without_state_add_nothing() -> None:
    one = learn(varifold.AROW(), stream(50))
    assert_near(one, varifold.merge([varifold.AROW(), one, varifold.AROW()]), stream(20, seed=2), 1e-12)
    assert varifold.merge([varifold.AROW(), varifold.AROW()]).predict_one({"f0": 1.0}) is None


@pytest.mark.parametrize("labels", [("a",), ("a", "b"), ("a", "b", "c")])
@pytest.mark.parametrize("name", ["ovfm", "gaussiannb"])
def test_a_part_without_labels_leaves_what_is_predicted_from_labels(name: str, labels: tuple[str, ...]) -> None:
    one, other = learn(varifold.models[name](), stream(60, labels=labels)), varifold.models[name]()
    for x, _ in stream(60, seed=2):
        other.learn_one(x, None)
    merged = varifold.merge([other, one])
    assert (merged.steps, merged.classes) == (120, one.classes)
    proba = merged.predict_proba_one(stream(1)[0][0])
    assert math.isclose(sum(proba.values()), 1.0)
    if name == "ovfm":
        raw = [learner._engine.dump()[2]["model.raw.state"] for learner in (one, merged)]
        assert np.abs(raw[1]).max() > 0.5 * np.abs(raw[0]).max()


def test_how_the_data_was_read_is_kept_where_all_agree() -> None:
    parts = [varifold.NB3(), varifold.NB3()]
    for part in parts:
        part.reading = {"target": "label"}
    assert varifold.merge(parts).reading == {"target": "label"}
    parts[1].reading = {"target": "other"}
    assert not varifold.merge(parts).reading


def test_what_cannot_be_merged_is_rejected() -> None:
    arow = varifold.AROW()
    for given, message in (
        ([], "at least one"),
        ([arow, varifold.PA()], "of one class. Got a AROW first and a PA at place 2"),
        ([arow, varifold.AROW(r=3.0)], "'r' is 10.0 first and 3.0 at place 2"),
        ([varifold.ORF3V(), varifold.ORF3V()], "ORF3V has no state that adds up.*Vote"),
        ([varifold.AutoRegressor(), varifold.AutoRegressor()], "AutoRegressor has no state that adds up"),
        ([object()], "learners of this library. Got a object"),
    ):
        with pytest.raises(ParameterError, match=message):
            varifold.merge(given)  # type: ignore[type-var]
    one = learn(varifold.AROW(), stream(20))
    with pytest.raises(ParameterError, match="each learner once"):
        varifold.merge([one, one])


def test_a_name_that_is_a_value_in_one_and_a_feature_in_another_is_rejected() -> None:
    parts = [varifold.AROW(), varifold.AROW()]
    parts[0].learn_one({"a": "b"}, 1)
    parts[1].learn_one({"a=b": 1.0}, 1)
    with pytest.raises(FeatureNameError, match="'a=b' is a value of a column in one learner"):
        varifold.merge(parts)


def test_digests_merge() -> None:
    values = np.random.default_rng(2).normal(size=3000)
    parts = [TDigest(), TDigest()]
    parts[0].update(values[:1000])
    parts[1].update(values[1000:])
    before = [part.__getstate__() for part in parts]
    merged = varifold.merge(parts)
    assert merged.total == 3000.0
    np.testing.assert_allclose(merged.quantile([0.1, 0.5, 0.9]), np.quantile(values, [0.1, 0.5, 0.9]), atol=0.05)
    assert [part.__getstate__() for part in parts] == before


@pytest.mark.parametrize(
    ("name", "power"), [("pa", HINGE), ("olsf", HINGE), ("olvf", HINGE), ("ogd", LOGISTIC), ("fobos", LOGISTIC)]
)
def test_the_intercept_counts_less_the_more_parts_there_are(name: str, power: float) -> None:
    """Of parts of one size it is the mean of the intercepts times their number ^ -power."""
    parts = [varifold.models[name](majority_bias=False, scale="none") for _ in range(4)]
    for number, part in enumerate(parts):
        learn(part, [({"f": 0.0}, "yes" if t % 3 or t < number else "no") for t in range(12)])
    margins = [part.margins_one({"f": 0.0})["yes"] for part in parts]
    merged = varifold.merge(parts).margins_one({"f": 0.0})["yes"]
    assert merged == pytest.approx(np.mean(margins) * 4.0**-power, rel=1e-9)
    assert merged != 0.0


def test_parts_of_different_size_count_by_their_squares() -> None:
    parts = [varifold.PA(majority_bias=False, scale="none") for _ in range(2)]
    for part, n in zip(parts, (30, 10), strict=True):
        learn(part, [({"f": 0.0}, "no" if t % 4 == 0 else "yes") for t in range(n)])
    margins = [part.margins_one({"f": 0.0})["yes"] for part in parts]
    number = 40**2 / (30**2 + 10**2)
    expected = (30 * margins[0] + 10 * margins[1]) / 40 * number**-HINGE
    assert varifold.merge(parts).margins_one({"f": 0.0})["yes"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("given", [5, None, varifold.AROW])
def test_only_learners_are_merged(given: Any) -> None:
    with pytest.raises(ParameterError, match="merge takes a list of learners"):
        varifold.merge(given)

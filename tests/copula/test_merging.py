"""Copulas of several parts of a stream as one."""

import itertools

import numpy as np
import pytest

import varifold
from varifold import OVFM, CopulaImputer
from varifold.checks.material import state
from varifold.copula.merging import LEAST_EIGENVALUE, _positive_definite, _shares


def rows(n, seed=0, levels=("hot", "mid", "cold")):
    """Three numbers that follow one latent score, one of few values, and a string; three of ten cells absent."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        z = rng.normal()
        level = levels[int(np.digitize(z + 0.3 * rng.normal(), [-0.5, 0.5]))]
        x = {"a": z, "b": 2.0 * z + 0.6 * rng.normal() + 1.0, "d": int(3 * z), "c": level}
        found.append({name: value for name, value in x.items() if rng.random() < 0.7})
    return found


def in_parts(blank, given, n=8):
    parts = [blank.clone() for _ in range(n)]
    for part, x in zip(itertools.cycle(parts), given, strict=False):
        part.learn_one(x)
    return parts


def by_name(imputer):
    names, matrix = imputer.correlation()
    return {(a, b): matrix[i, j] for i, a in enumerate(names) for j, b in enumerate(names)}


def test_correlations_and_answers_are_near_those_of_one_stream():
    given = rows(2400)
    one = CopulaImputer()
    one.learn_many(given)
    merged = varifold.merge(in_parts(CopulaImputer(), given))
    assert merged.steps == 2400
    ours, theirs = by_name(merged), by_name(one)
    assert ours.keys() == theirs.keys()
    assert max(abs(ours[pair] - theirs[pair]) for pair in ours) < 0.15
    for z in (-1.5, 0.0, 1.5):
        assert merged.transform_one({"a": z})["b"] == pytest.approx(one.transform_one({"a": z})["b"], abs=0.4)
    assert merged.transform_one({"a": 2.0})["c"] == "cold"


def test_the_parts_stay_and_the_merged_copula_goes_on():
    parts = in_parts(CopulaImputer(window=30, batch=7), rows(300), 3)
    before = [state(part) for part in parts]
    merged = varifold.merge(parts)
    assert [state(part) for part in parts] == before
    again = CopulaImputer.from_bytes(merged.to_bytes())
    for x in rows(100, seed=4, levels=("hot", "mild", "new")):
        merged.learn_one(x)
        again.learn_one(x)
    assert state(merged) == state(again)


def test_parts_may_disagree_on_the_reference_level():
    """The level that the others are compared with is the first that came; the most frequent choice wins."""
    orders = (("x", "y", "z"), ("x", "z", "y"), ("y", "x", "z"))
    parts = []
    for order in orders:
        part = CopulaImputer()
        for level in (*order, *("xyyzzz" * 40)):
            part.learn_one({"c": level, "n": float("xyz".index(level))})
        parts.append(part)
    merged = varifold.merge(parts)
    roles = {name: feature.role for name, feature in merged.features.items()}
    assert (roles["c=x"], roles["c=y"], roles["c=z"]) == ("reference", "latent", "latent")
    copula = merged._engine.model.copula
    dump = copula.dump(merged._engine.space.size)
    assert dump["window_counts"].max() <= 200
    ends = np.cumsum(dump["window_counts"])
    node = int(dump["slots"][merged._engine.space.id_of("c=y"), 0]) - 1
    values = dump["window_values"][ends[node] - dump["window_counts"][node] : ends[node]]
    assert np.mean(values) == pytest.approx(1 / 3, abs=0.06), "also from the part where it was the reference"
    assert merged.transform_one({"n": 2.0})["c"] == "z"


def test_the_most_active_features_are_nodes():
    parts = [CopulaImputer(max_dense=3) for _ in range(2)]
    for step in range(200):
        parts[0].learn_one({"a": float(step), "b": float(-step), "rare0": 1.0} if step % 9 == 0 else {"a": float(step)})
        parts[1].learn_one({"a": float(step), "c": float(step % 7), "rare1": 2.0})
    merged = varifold.merge(parts)
    assert set(merged.correlation()[0]) == {"a", "c", "rare1"}


def test_windows_take_from_all_parts_by_their_counts():
    assert _shares(np.array([300.0, 100.0]), np.array([200, 100]), 200) == [150, 50]
    assert _shares(np.array([1.0, 1.0]), np.array([200, 20]), 200) == [180, 20]
    assert _shares(np.array([5.0, 5.0]), np.array([5, 7]), 200) == [5, 7]


def test_a_mean_of_correlations_that_is_none_is_corrected():
    bad = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    found = _positive_definite(bad)
    assert np.linalg.eigvalsh(found)[0] > LEAST_EIGENVALUE / 10
    assert np.diagonal(found).tolist() == [1.0, 1.0, 1.0]
    fine = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert _positive_definite(fine) is fine


@pytest.mark.parametrize(
    "params", [{}, {"base": "sgd"}, {"base": "ftrladp"}, {"presence": False}, {"latent_only": True}]
)
def test_the_losses_of_experts_add_up_and_the_handicap_counts_once(params):
    given = [(x, "up" if x.get("a", x.get("d", 0.0)) > 0 else "down") for x in rows(600)]
    parts = [OVFM(**params) for _ in range(3)]
    for part, (x, y) in zip(itertools.cycle(parts), given, strict=False):
        part.learn_one(x, y)
    merged = varifold.merge(parts)
    mixes = [model._engine.dump()[2]["model.mix"][0] for model in (*parts, merged)]
    first = np.array([0.0, 0.0, 10.0, 10.0, 10.0][: len(mixes[0]) - 1])
    turned = [mix[1:] - mix[1] for mix in mixes]
    expected = first + sum(part - first for part in turned[:3])
    np.testing.assert_allclose(turned[3], expected, atol=1e-9)
    assert mixes[3][0] == sum(mix[0] for mix in mixes[:3])
    right = np.mean([merged.predict_one(x) == y for x, y in given])
    assert right > 0.8

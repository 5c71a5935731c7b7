"""OVFM against its plain twin: margins before each learn, correlation after each batch."""

import functools

import numpy as np
import pytest

from tests.engines import class_engine
from tests.oracles.harness import Scaler
from tests.oracles.ovfm import PlainOVFM, PlainOVFMStream
from varifold import OVFM, load
from varifold.base import to_block
from varifold.copula._latent import Copula
from varifold.copula._ovfm import OVFMModel
from varifold.linear._arow import AROWRule


def mixed_stream(n=150, seed=0, labels=2, weights=False, nominal=False, swaps=False):
    """(x, y, w): Boolean, ordinal, continuous and spiked features that depend on one another; half are absent.

    With `swaps` the first four vanish after a third of the stream, and the last four are not there before.
    """
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(9, 3))
    for step in range(n):
        latent = mixing @ rng.normal(size=3) + 0.3 * rng.normal(size=9)
        row = {f"f{j}": float(latent[j]) for j in range(3)}
        row |= {f"f{j}": float(latent[j] > 0.5) for j in range(3, 5)}
        row |= {f"f{j}": float(np.clip(np.round(2 * latent[j]), -3, 3)) for j in range(5, 8)}
        row["f8"] = max(0.0, float(latent[8]))
        if nominal:
            row["g"] = "abc"[int(np.clip(latent[0] + 1.5, 0, 2))]
            row["h"] = "uv"[int(latent[1] > 0)]
        y = int(np.argmax([latent[0] + latent[5], latent[3], 0.3 - latent[6]][:labels]))
        if y == 2 and step < n // 3:
            y = 0
        x = {name: v for name, v in row.items() if rng.random() < 0.5 and (name != "f7" or step > n // 2)}
        if swaps:
            unseen = {f"f{j}" for j in (range(4) if step > n // 3 else range(5, 9))}
            x = {name: v for name, v in x.items() if name not in unseen}
        if step % 37 == 36:
            x = {}
        yield x, f"label {y}", float(rng.choice([1.0, 0.5, 3.0, 0.0])) if weights else 1.0


def numeric(x):
    """Strings as indicators, names in the order in which slots are given."""
    pairs = {f"{n}={v}" if isinstance(v, str) else n: 1.0 if isinstance(v, str) else v for n, v in x.items()}
    return dict(sorted(pairs.items()))


def follow(learner, twin, instances):
    scaler = Scaler(learner.scale, learner.clip)
    known, compared, met = set(), 0, False
    for step, (x, y, w) in enumerate(instances):
        given = numeric(x)
        old = {name: value for name, value in given.items() if name in known}
        if old and met:
            scaled = scaler.scaled({n: v for n, v in old.items() if "=" not in n}, 1.0, commit=False)
            expected = twin.scores({**{n: v for n, v in old.items() if "=" in n}, **scaled}, old)
            found = learner.margins_one(x)
            np.testing.assert_allclose(
                list(found.values()), list(expected.values()), rtol=1e-9, atol=1e-9, err_msg=f"step {step}"
            )
            compared += 1
        learner.learn_one(x, y, w)
        if w == 0.0:
            continue
        if y is not None:
            twin.meet(y)
            met = True
        if given:
            scaled = scaler.scaled({n: v for n, v in given.items() if "=" not in n}, w, commit=True)
            if y is None:
                twin.learn_unlabelled(given, w)
            else:
                twin.learn({**{n: v for n, v in given.items() if "=" in n}, **scaled}, given, y, w)
        else:
            scaler.learned += 1
        known |= set(given)
    assert compared > 50
    names, correlation = learner.correlation()
    order = [twin.copula.names.index(name) for name in names]
    np.testing.assert_allclose(correlation, twin.copula.sigma[np.ix_(order, order)], rtol=0, atol=1e-9)
    assert np.abs(correlation - np.eye(len(names))).max() > 0.2


@pytest.mark.parametrize(
    ("setting", "stream"),
    [
        ({}, {}),
        ({"scale": "none", "fit_intercept": False}, {"weights": True}),
        ({"scale": "minmax", "latent_only": True}, {}),
        ({"eta": 0.05, "sweeps": 1, "window": 30, "base": "ftrladp"}, {"labels": 3}),
        ({"horizon": 150, "batch": 7, "c": 2.0, "gamma_min": 0.2}, {"nominal": True}),
        ({"radius": 0.7, "levels": 4}, {"weights": True, "labels": 3, "nominal": True}),
        ({"radius": 0.7, "base": "ftrladp"}, {"weights": True}),
        ({"presence": False}, {"weights": True, "labels": 3}),
        ({"presence": False, "base": "sgd"}, {"labels": 3}),
        ({"radius": 0.7, "base": "sgd"}, {}),
        ({"radius": 0.7, "base": "sgd", "keep": 0.4, "presence": False}, {}),
        ({"keep": 0.3}, {"weights": True, "labels": 3, "nominal": True}),
        ({"keep": 0.5, "base": "ftrladp"}, {}),
        ({"max_dense": 7, "window": 12, "batch": 9}, {"swaps": True, "labels": 3, "nominal": True}),
    ],
)
def test_follows_its_twin(setting, stream):
    learner = OVFM(**setting)
    keys = ("latent_only", "eta", "horizon", "radius", "base", "presence", "keep")
    own = {key: setting[key] for key in keys if key in setting}
    renamed = {"window": "W", "batch": "b"}
    copula = {
        renamed.get(k, k): v
        for k, v in setting.items()
        if k in {*renamed, "levels", "sweeps", "c", "gamma_min", "max_dense"}
    }
    twin = PlainOVFMStream(functools.partial(PlainOVFM, **own), setting.get("fit_intercept", True), **copula)
    follow(learner, twin, mixed_stream(**stream))
    if "swaps" in stream:
        assert {learner.features[f"f{j}"].role for j in range(4)} == {"raw"}
        assert {learner.features[f"f{j}"].role for j in range(5, 9)} == {"latent"}


@pytest.mark.parametrize(
    ("setting", "stream"),
    [({}, {"nominal": True}), ({"max_dense": 7, "window": 12, "batch": 9}, {"swaps": True, "weights": True})],
)
def test_the_copula_learns_without_labels(setting, stream):
    renamed = {"window": "W", "batch": "b"}
    copula = {renamed.get(k, k): v for k, v in setting.items()}
    twin = PlainOVFMStream(PlainOVFM, True, **copula)
    rows = [(x, y if t % 4 == 0 else None, w) for t, (x, y, w) in enumerate(mixed_stream(n=200, labels=3, **stream))]
    follow(OVFM(**setting), twin, rows)


def learned(n=130, **parameters):
    learner = OVFM(**parameters)
    for x, y, w in mixed_stream(n=n, nominal=True, labels=3):
        learner.learn_one(x, y, w)
    return learner


def test_predicting_changes_nothing():
    first, second = learned(), learned()
    for x, _, _ in mixed_stream(n=60, seed=5, nominal=True):
        second.predict_proba_one(x)
        second.explain_one(x)
    for (a, b, c), (d, e, f) in [(first._engine.dump(), second._engine.dump())]:
        assert (a, b) == (d, e)
        for key in c:
            np.testing.assert_array_equal(c[key], f[key], err_msg=key)


def test_contributions_sum_to_the_margin_and_name_absent_features():
    learner = learned()
    x = {"f0": 1.0, "g": "b"}
    for label in learner.classes:
        parts = learner.explain_one(x, label)
        assert sum(parts.values()) == pytest.approx(learner.margins_one(x)[label], abs=1e-12)
    assert {"f0", "f1", "f5", "g=b", "h=v"} <= set(parts) | {"h=v"}
    assert abs(parts["f1"]) > 0


def test_both_doors_and_a_file_give_the_same_state(tmp_path):
    rows = list(mixed_stream(n=170, nominal=True, labels=3))
    one, many, kept = OVFM(window=40), OVFM(window=40), OVFM(window=40)
    for x, y, _ in rows:
        one.learn_one(x, y)
    many.predict_learn_many([x for x, _, _ in rows], [y for _, y, _ in rows])
    for x, y, _ in rows[:93]:
        kept.learn_one(x, y)
    kept.save(tmp_path / "model")
    kept = load(tmp_path / "model")
    for x, y, _ in rows[93:]:
        kept.learn_one(x, y)
    for other in (many, kept):
        for key, array in one._engine.dump()[2].items():
            np.testing.assert_array_equal(array, other._engine.dump()[2][key], err_msg=key)


def test_levels_of_a_column_are_told_from_its_first():
    learner = learned()
    roles = {name: feature.role for name, feature in learner.features.items()}
    for column in "gh":
        found = sorted(role for name, role in roles.items() if str(name).startswith(column))
        assert found.count("reference") == 1
        assert set(found) == {"latent", "reference"}
    names, _ = learner.correlation()
    assert sum(name.startswith("h=") for name in names) == 1


def test_beyond_max_dense_the_most_frequent_are_covered():
    rng = np.random.default_rng(2)
    learner = OVFM(max_dense=6, batch=5)
    for step in range(400):
        x = {f"rare {j}": float(rng.normal()) for j in range(10) if rng.random() < 0.1}
        if step > 50:
            x |= {f"often {j}": float(rng.normal()) for j in range(4)}
        learner.learn_one(x, bool(rng.random() < 0.5))
    roles = {name: feature.role for name, feature in learner.features.items()}
    assert {roles[f"often {j}"] for j in range(4)} == {"latent"}
    assert list(roles.values()).count("latent") == 6
    assert list(roles.values()).count("raw") == 8
    assert any("max_dense" in note for note in learner.traits.notes)
    names, correlation = learner.correlation()
    assert len(names) == 6
    np.testing.assert_allclose(np.diag(correlation), 1.0)
    assert np.linalg.eigvalsh(correlation).min() > 0


def test_the_weakest_node_is_looked_up_each_time():
    """The node that was weakest when last computed has been observed since: another one is replaced."""
    learner = OVFM(max_dense=2, window=20)
    present = [("gone", "steady")] * 25 + [("gone",)] * 5 + [("new",)] + [("steady",)] * 60 + [("steady", "new")] * 60
    for step, names in enumerate(present):
        learner.learn_one({name: float(step % 7) for name in names}, step % 2)
    roles = {name: feature.role for name, feature in learner.features.items()}
    assert roles == {"gone": "raw", "steady": "latent", "new": "latent"}


@pytest.mark.parametrize("way", ["numbers", "levels"])
def test_features_that_vanished_long_ago_make_place(way):
    """However often they were observed once; for levels of a column that lives on too."""

    def row(step, at):
        value = (step * 7 + at * 3) % 11
        return (
            {f"sensor {at + j}": float(value + j) for j in range(3)}
            if way == "numbers"
            else {"at": f"{at + value % 4}"}
        )

    learner = OVFM(max_dense=3, window=20)
    for step in range(3000):
        learner.learn_one(row(step, 0), step % 2)
    before = {name for name, feature in learner.features.items() if feature.role == "latent"}
    for step in range(400):
        learner.learn_one(row(step, 10), step % 2)
    after = {name for name, feature in learner.features.items() if feature.role == "latent"}
    assert len(before) == len(after) == 3
    assert not before & after


def test_nodes_do_not_change_hands_among_equals():
    """Eight features alike for four places: chance leads, but not far enough for the copula to start again."""
    rng = np.random.default_rng(11)
    learner = OVFM(max_dense=4)
    held = []
    for _ in range(3000):
        learner.learn_one(
            {f"f{j}": float(rng.normal()) for j in range(8) if rng.random() < 0.3}, bool(rng.random() < 0.5)
        )
        held.append(frozenset(learner.correlation()[0]))
    assert len(set(held[100:])) == 1


def test_evicted_features_leave_the_copula():
    rng = np.random.default_rng(4)
    learner = OVFM(max_features=8, batch=5)
    for step in range(300):
        x = {f"f{(step // 10 + j) % 40}": float(rng.normal()) for j in range(5)} | {"kind": str(step % 90 // 30)}
        learner.learn_one(x, step % 2)
        assert learner.predict_one(x) in (0, 1)
    names, correlation = learner.correlation()
    assert set(names) <= set(learner.features)
    assert np.isfinite(correlation).all()


def test_a_correlation_that_cannot_be_inverted_is_helped():
    learner = OVFM(batch=2, c=1e6)
    rng = np.random.default_rng(0)
    for _ in range(60):
        value = float(rng.normal())
        learner.learn_one({f"copy {j}": value for j in range(30)}, value > 0)
    assert learner.predict_one({"copy 3": 2.0}) is True
    assert np.isfinite(learner.correlation()[1]).all()


def test_the_copula_infers_an_absent_feature():
    """The label hangs on one feature that a copy gives away when it is absent."""
    rng = np.random.default_rng(7)
    rows, labels = [], []
    for _ in range(600):
        value = rng.normal()
        rows.append({"a": value, "b": value + 0.1 * rng.normal(), "c": rng.normal()})
        if rng.random() < 0.7:
            del rows[-1]["a"]
        labels.append(int(value > 0))
    block = to_block(rows, labels)
    learner = OVFM()
    codes, _ = learner.run_block(block)
    assert (np.array(learner.classes)[codes[300:]] == np.array(labels[300:])).mean() > 0.9
    names, correlation = learner.correlation()
    assert correlation[names.index("a"), names.index("b")] > 0.8


def test_presence_learner_takes_over_when_words_say_it_all():
    """Every value is 1: standard scaling leaves nothing of it, and only presence determines the label."""
    rng = np.random.default_rng(3)
    learner, paper = OVFM(scale="standard"), OVFM(scale="standard", presence=False)
    wrong = {learner: 0, paper: 0}
    for _ in range(400):
        y = int(rng.random() < 0.5)
        x = {f"w{j}": 1.0 for j in range(12) if rng.random() < (0.7 if (j < 6) == (y == 1) else 0.2)}
        for model in wrong:
            wrong[model] += model.predict_one(x) != y
            model.learn_one(x, y)
    assert wrong[learner] < 0.6 * wrong[paper]
    assert learner.shares[0]["presence"] > 0.9


def test_absence_tells_beside_the_values():
    """Evidence is in the values and in which of them are absent: neither alone is as informative."""
    rng = np.random.default_rng(5)
    rows, labels = [], []
    for _ in range(1200):
        y = int(rng.random() < 0.5)
        values = rng.normal(0.35 * (2 * y - 1), 1.0, size=12)
        rows.append({f"f{j}": float(v) for j, v in enumerate(values) if rng.random() > (0.35 if y else 0.1)})
        labels.append(y)
    block = to_block(rows, labels)
    wrong = []
    for learner in (OVFM(presence=False), OVFM()):
        codes, _ = learner.run_block(block)
        wrong.append((np.array(learner.classes)[codes[200:]] != np.array(labels[200:])).mean())
    absent = np.array([12 - len(row) for row in rows[200:]])
    mask_alone = min(((absent > k) != np.array(labels[200:])).mean() for k in range(12))
    assert wrong[1] < 0.75 * min(wrong[0], mask_alone)
    shares = learner.shares[0]
    assert shares["presence"] > 0.9
    assert shares["raw"] + shares["latent"] > 0.9


def test_a_full_latent_learner_falls_back_whatever_the_order_of_the_slots():
    """The copula lays its features out in the order of its nodes: one beyond max_dense need not be the last."""
    copula = Copula(max_dense=4)
    model = OVFMModel(copula, AROWRule(10.0), AROWRule(10.0, 5), latent_only=True)
    engine = class_engine(model)
    rng = np.random.default_rng(0)
    for step in range(400):
        names = ["a", "b", "c", "d"][3 * (step % 3 > 0) :] if step < 90 else ["x0", "x1", "x2", "x3", "x4", "d"]
        engine.learn_one({name: float(rng.normal()) for name in names}, step % 2)
    slots = copula.correlation()[0]
    assert max(slots) > 5, "a later name must have taken a node over"
    assert model.dump(engine.space.size)["latent.covariance"].size == 0, "it became its diagonal"


def test_follows_its_twin_when_most_of_many_features_are_absent():
    """140 features are three tiles of the moments; most are absent at a time, in runs of all lengths."""
    rng = np.random.default_rng(4)
    instances = [({f"f{j}": float(rng.normal()) for j in range(140)}, True, 1.0)]
    for _ in range(70):
        shared = rng.normal()
        x = {f"f{j}": float(shared + rng.normal()) for j in rng.choice(140, int(rng.integers(1, 20)), replace=False)}
        instances.append((x, bool(sum(x.values()) > 0), 1.0))
    follow(OVFM(batch=10), PlainOVFMStream(PlainOVFM, True, b=10), instances)

"""Switches detected by the learner: joins, overlaps, switches, outages, and what does not count as one."""

import numpy as np
import pytest

import varifold
from tests.oracles.switching import replaced
from varifold import CWFE, Block
from varifold.base.nested import make_learner


def learned(model, instances):
    for x, y, w in instances:
        model.learn_one(x, y, w)
    return model


def stream(spans, d=6, flicker=0.0, seed=0, labels=2):
    """(x, y) from spans of (rows, groups seen): features 'g0'.. of group g are a Gaussian mixture of d sources."""
    rng = np.random.default_rng(seed)
    truth, mixes = rng.normal(size=(labels, d)), {}
    out = []
    for rows, groups in spans:
        for _ in range(rows):
            source = rng.normal(size=d)
            y = int(np.argmax(truth @ source + 0.3 * rng.normal(size=labels)))
            x = {}
            for group in groups:
                mix = mixes.setdefault(group, np.random.default_rng([seed, ord(group)]).normal(size=(d, d)))
                x |= {f"{group}{j}": float(v) for j, v in enumerate(source @ mix)}
            out.append(({name: v for name, v in x.items() if rng.random() >= flicker}, y))
    return out


def run(model, instances):
    return np.array(
        [
            p == y
            for p, (_, y) in zip(
                model.predict_learn_many([x for x, _ in instances], [y for _, y in instances]), instances, strict=True
            )
        ]
    )


@pytest.mark.parametrize("part", ["both", "new", "updated", "frozen"])
@pytest.mark.parametrize("name", ["cwfe", "pafe", "fesl"])
def test_detected_is_as_good_as_known(name, part):
    instances = stream([(150, "a"), (12, "ab"), (150, "b")])
    cls = varifold.models[name]
    detected, known = cls(part=part), cls(part=part, switch=162, overlap=12)
    right = [run(model, instances)[162:].mean() for model in (detected, known)]
    assert detected.switches == [163]
    assert known.switches == [162]
    assert abs(right[0] - right[1]) < 0.03


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("overlap", [5, 20, 60])
def test_flicker_neither_hides_nor_fakes_a_switch(overlap, seed):
    model = CWFE()
    run(model, stream([(120, "a"), (overlap, "ab"), (60, "b")], flicker=0.1, seed=seed))
    assert len(model.switches) == 1
    assert 120 + overlap < model.switches[0] <= 120 + 3 * overlap


@pytest.mark.parametrize("flicker", [0.0, 0.1, 0.25, 0.5, 0.75])
def test_no_switch_without_new_features(flicker):
    model = CWFE()
    run(model, stream([(200, "ab"), (60, "a"), (100, "ab"), (80, "b"), (100, "ab")], flicker=flicker))
    assert model.switches == []


def test_features_that_only_join_become_ordinary():
    model = CWFE(patience=40)
    instances = stream([(100, "a"), (200, "ab"), (100, "b")])
    run(model, instances[:130])
    assert model.features["b0"].role == "new"
    assert model.features["b0"].weight == 0.0
    run(model, instances[130:300])
    assert model.features["b0"].role == "old"
    assert model.features["b0"].weight > 0.0
    run(model, instances[300:])
    assert model.switches == []


def test_a_feature_seen_once_ends_no_overlap_and_starts_none():
    instances = stream([(100, "a"), (20, "ab"), (50, "b")])
    instances[60][0]["typo"] = 1.0
    model = CWFE()
    run(model, instances[:80])
    assert model.features["typo"].role == "old"
    run(model, instances[80:])
    assert model.switches == [121]


def test_one_alien_instance_loses_nothing():
    instances = stream([(150, "a"), (1, "b"), (60, "a")])
    model, plain = CWFE(), CWFE()
    right = run(model, instances)
    assert model.switches == []
    assert right[151:].mean() >= run(plain, instances[:150] + instances[151:])[150:].mean() - 0.02


def test_roles_and_notes():
    instances = stream([(100, "a"), (20, "ab"), (50, "b")])
    model = CWFE()
    run(model, instances[:110])
    assert {name: f.role for name, f in model.features.items() if name[1] == "0"} == {"a0": "old", "b0": "new"}
    assert any("an overlap runs since step 101" in note for note in model.traits.notes)
    run(model, instances[110:])
    assert {name: f.role for name, f in model.features.items() if name[1] == "0"} == {"a0": "mapped", "b0": "new"}
    assert any("the last at step 121; 6 old features are recovered from 6 new ones" in n for n in model.traits.notes)
    assert model.mix is not None


def test_several_switches_in_a_row():
    instances = stream([(150, "a"), (15, "ab"), (150, "b"), (15, "bc"), (150, "c"), (15, "cd"), (150, "d")])
    for model in (CWFE(), CWFE(part="updated"), CWFE(part="new"), varifold.PAFE(combine="s"), varifold.FESL()):
        right = run(model, instances)
        assert model.switches == [166, 331, 496]
        assert right[495:].mean() > 0.8
        assert right[495:505].mean() > 0.5


def test_the_map_saves_the_start_after_a_switch():
    starts = {"both": [], "new": []}
    for seed in range(10):
        instances = stream([(300, "a"), (10, "ab"), (30, "b")], seed=seed)
        for part, means in starts.items():
            means.append(run(CWFE(part=part), instances)[311:].mean())
    assert np.mean(starts["both"]) > np.mean(starts["new"]) + 0.03


def test_no_overlap_leaves_the_new_model_alone():
    model = CWFE()
    right = run(model, stream([(150, "a"), (150, "b")]))
    assert model.switches == [155]
    assert model.mix is None
    assert model.features["a0"].role == "old"
    assert right[200:].mean() > 0.8


def test_features_that_stay_are_used_as_they_are():
    model = CWFE()
    learned(model, replaced(150, 15, 60, stay=3))
    assert len(model.switches) == 1
    assert 150 < model.switches[0] <= 155
    roles = {name: feature.role for name, feature in model.features.items()}
    assert (roles["a0"], roles["a6"], roles["b0"]) == ("old", "mapped", "new")
    x = {"a0": 1.0, "a1": 0.5, "b0": 1.0, "b1": 2.0}
    parts = model.explain_one(x)
    assert set(parts) - {"(intercept)"} == set(x)
    assert sum(parts.values()) == pytest.approx(max(model.margins_one(x).values()))


def test_replacement_one_by_one():
    rng = np.random.default_rng(0)
    model, d = CWFE(), 8
    for step in range(400):
        source = rng.normal(size=d)
        x = {f"a{j}": source[j] for j in range(d) if step < 200 + 10 * j + 10}
        x |= {f"b{j}": 2 * source[j] + 1 for j in range(d) if step >= 200 + 10 * j}
        model.learn_one(x, bool(source.sum() > 0))
    assert 1 <= len(model.switches) <= d
    right = 0
    for _ in range(200):
        source = rng.normal(size=d)
        right += model.predict_one({f"b{j}": 2 * source[j] + 1 for j in range(d)}) == (source.sum() > 0)
    assert right > 180


def test_nominal_columns_switch_as_columns():
    rng = np.random.default_rng(1)
    model = CWFE()
    for step in range(300):
        hot, wet = rng.random(2) < 0.5
        old = {"old valve": "open" if hot else rng.choice(["shut", "half"]), "old t": float(hot) + rng.normal() / 4}
        new = {"new valve": "A" if hot else "B", "new wet": "yes" if wet else "no"}
        x = old if step < 140 else old | new if step < 155 else new
        model.learn_one(x, bool(hot))
    assert model.switches == [157]
    assert model.features["old valve=open"].role == "mapped"
    assert model.predict_one({"new valve": "A"}) is True
    assert model.predict_one({"new valve": "B"}) is False


@pytest.mark.parametrize("stop", [90, 105, 110, 121, 140])
@pytest.mark.parametrize("name", ["cwfe", "pafe", "fesl", "cwfe:part=frozen"])
def test_saved_anywhere_it_continues_to_the_bit(name, stop, tmp_path):
    instances = stream([(100, "a"), (20, "ab"), (30, "b"), (20, "bc"), (30, "c")], flicker=0.05, labels=3)
    block = Block.from_dicts([x for x, _ in instances], [y for _, y in instances])
    whole, parted = make_learner(name), make_learner(name)
    whole.learn_many(block)
    parted.learn_many(block.take(np.arange(stop)))
    parted.save(tmp_path / "model")
    parted = varifold.load(tmp_path / "model")
    for i, (x, y) in enumerate(instances[stop:]):
        if i % 7 == 0:
            parted.predict_proba_one(x)
        parted.learn_one(x, y)
    first, second = whole._engine.dump()[2], parted._engine.dump()[2]
    assert first.keys() == second.keys()
    for key, array in first.items():
        np.testing.assert_array_equal(array, second[key], err_msg=key)
    assert len(whole.switches) == 2


def test_eviction_takes_features_out_of_map_and_models():
    model = CWFE(max_features=14)
    right = run(model, stream([(100, "a"), (20, "ab"), (60, "b"), (20, "bc"), (60, "c"), (10, "cd"), (80, "d")]))
    assert len(model.features) <= 14
    assert model.switches == [121, 201, 271]
    assert right[-60:].mean() > 0.7


def test_drawing_is_repeatable_and_depends_on_the_seed():
    instances = stream([(100, "a"), (10, "ab"), (200, "b")])
    predictions = [run(CWFE(combine="s", seed=seed), instances) for seed in (1, 1, 2)]
    assert (predictions[0] == predictions[1]).all()
    assert (predictions[0] != predictions[2]).any()


def test_a_map_too_wide_is_reported_and_left_out():
    model = varifold.PAFE(max_dense=4)
    run(model, stream([(100, "a"), (10, "ab"), (50, "b")]))
    assert model.switches == [111]
    assert any("max_dense=4" in note for note in model.traits.notes)


def test_overlap_longer_than_switch_is_rejected():
    with pytest.raises(varifold.errors.ParameterError, match="at most switch=5"):
        CWFE(switch=5, overlap=6)

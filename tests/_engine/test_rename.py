"""rename(): a feature's state goes on under its new name, through both APIs and in files; bad names change nothing."""

from __future__ import annotations

import random

import pytest

import varifold
from varifold import AROW, OVFIV, AutoClassifier, Block, CopulaImputer, PerKey, PythonRule, Vocabulary
from varifold.errors import DataError, FeatureNameError, UnknownNameError


def pairs(n=150, seed=0, temp="temp", colour="colour"):
    rng = random.Random(seed)
    for _ in range(n):
        y = rng.random() < 0.5
        x = {temp: rng.gauss(3.0 * y, 1.0), colour: rng.choice(["red", "blue"]), "rest": rng.random()}
        yield {name: value for name, value in x.items() if rng.random() < 0.8}, y


@pytest.mark.parametrize("name", list(varifold.models))
def test_a_renamed_learner_is_one_that_always_had_the_new_names(name):
    """To the bit, up to the names: columns take their levels along, blocks find the new names."""
    plain, renamed = varifold.models[name](), varifold.models[name]()
    for (x, y), (new, _) in zip(pairs(), pairs(temp="t2", colour="farbe"), strict=True):
        renamed.learn_one(x, y)
        plain.learn_one(new, y)
    renamed.rename({"temp": "t2", "colour": "farbe"})
    assert renamed.to_bytes() == plain.to_bytes()
    later = list(pairs(60, seed=1, temp="t2", colour="farbe"))
    X, Y = zip(*later, strict=True)
    again = varifold.from_bytes(renamed.to_bytes())
    plain.learn_many(X, Y)
    renamed.learn_many(Block.from_dicts(X, Y))
    for x, y in later:
        again.learn_one(x, y)
    assert again.to_bytes() == renamed.to_bytes() == plain.to_bytes()


def test_the_old_name_is_new_again():
    model = AROW()
    for x, y in pairs():
        model.learn_one(x, y)
    weight = model.features["temp"].weight
    model.rename({"temp": "t2"})
    assert "temp" not in model.features
    assert model.features["t2"].weight == weight > 0.0
    model.learn_one({"temp": 1.0}, True)
    assert model.features["temp"].first_seen == 151


def test_a_block_that_was_bound_before_finds_the_new_name():
    vocabulary = Vocabulary()
    X, Y = zip(*pairs(), strict=True)
    first = Block.from_dicts(X, Y, vocabulary=vocabulary)
    later = Block.from_dicts([{"t2": 3.0, "colour": "red"}], [True], vocabulary=vocabulary)
    model, dicts = AROW(), AROW()
    model.learn_many(first)
    for x, y in zip(X, Y, strict=True):
        dicts.learn_one(x, y)
    for learner in (model, dicts):
        learner.rename({"temp": "t2"})
    model.learn_many(later)
    dicts.learn_one({"t2": 3.0, "colour": "red"}, True)
    model.learn_many(first)
    for x, y in zip(X, Y, strict=True):
        dicts.learn_one(x, y)
    assert model.to_bytes() == dicts.to_bytes()


def test_a_name_that_is_already_known_gives_way():
    model, twin = AROW(), AROW()
    for x, y in pairs():
        model.learn_one(x, y)
        twin.learn_one(x, y)
    for learner, name in ((model, "t2"), (twin, "temp")):
        for step in range(10):
            learner.learn_one({"rest": 0.5, name: 50.0} if learner is model else {"rest": 0.5}, step % 2)
    before = model.features
    model.learn_one({"farbe": "green", "t2": 1.0}, True)
    known = model.features["t2"]
    model.rename({"temp": "t2", "colour": "farbe"})
    after = model.features
    assert after["t2"].weight == before["temp"].weight
    assert after["t2"].last_seen == known.last_seen == 161
    assert after["t2"].first_seen == before["temp"].first_seen
    assert after["t2"].count == before["temp"].count + known.count
    assert set(after) == {"t2", "rest", "farbe=red", "farbe=blue"}
    assert varifold.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    model.learn_one({"farbe": "green", "temp": 2.0}, False)


def test_names_are_exchanged_and_chained():
    model, other = AROW(), AROW()
    for x, y in pairs():
        model.learn_one(x, y)
        other.learn_one({{"temp": "rest", "rest": "temp"}.get(k, k): v for k, v in x.items()}, y)
    model.rename({"temp": "rest", "rest": "temp"})
    for name in ("temp", "rest"):
        assert model.features[name] == pytest.approx(other.features[name])
    model.rename({"temp": "rest", "rest": 7, "colour": "temp"})
    assert set(model.features) == {7, "rest", "temp=red", "temp=blue"}
    model.rename({})


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({"nobody": "x"}, UnknownNameError, "no feature 'nobody'"),
        ({"temp": "x", "nobody": "y"}, UnknownNameError, "no feature 'nobody'"),
        ({"temp": "x", "rest": "x"}, DataError, "two features"),
        ({"colour=red": "x"}, DataError, "rename the column"),
        ({"temp": "colour=red"}, FeatureNameError, "colour=red"),
        ({"temp": None}, FeatureNameError, "None"),
        ({"temp": 1.5}, FeatureNameError, "1.5"),
        ([("temp", "x")], DataError, "takes a mapping"),
    ],
)
def test_bad_names_change_nothing(names, error, message):
    model = AutoClassifier("fast")
    for x, y in pairs():
        model.learn_one(x, y)
    before = model.to_bytes()
    with pytest.raises(error, match=message):
        model.rename(names)
    assert model.to_bytes() == before


def test_an_indicator_that_would_get_the_name_of_a_feature_is_rejected():
    model = AROW()
    model.learn_one({"colour": "red", "farbe=red": 1.0}, 0)
    before = model.to_bytes()
    with pytest.raises(FeatureNameError, match="farbe=red"):
        model.rename({"colour": "farbe"})
    assert model.to_bytes() == before


def test_one_learner_per_key_renames_in_memory_and_on_disk():
    model = PerKey(AROW(), key="device", most=2)
    plain = PerKey(AROW(), key="device", most=2)
    for step, ((x, y), (new, _)) in enumerate(zip(pairs(), pairs(temp="t2"), strict=True)):
        model.learn_one({**x, "device": step % 4}, y)
        plain.learn_one({**new, "device": step % 4}, y)
    model.learn_one({"device": "other", "rest": 1.0}, True)
    plain.learn_one({"device": "other", "rest": 1.0}, True)
    for names, error in (
        ({"nobody": "x"}, UnknownNameError),
        ({"device": "x"}, DataError),
        ({"rest": "device"}, DataError),
    ):
        with pytest.raises(error):
            model.rename(names)
    model.rename({"temp": "t2"})
    assert model.to_bytes() == plain.to_bytes()


def test_a_transformer_renames():
    imputer = CopulaImputer()
    for x, _ in pairs(80):
        imputer.learn_one(x)
    imputer.rename({"temp": "t2"})
    assert "t2" in imputer.features


class Counting(PythonRule):
    def start(self):
        self.sums = {}

    def learn(self, x, y, w):
        for name in x:
            self.sums[name] = self.sums.get(name, 0.0) + w

    def scores(self, x):
        return {}


class Renaming(Counting):
    def renamed(self, names):
        self.sums = {names.get(name, name): total for name, total in self.sums.items()}


def test_rules_in_python_move_what_they_hold_or_reject():
    for rule in (Counting(), Renaming()):
        for x, y in pairs():
            rule.learn_one(x, y)
    sums = dict(rule.sums)
    rule.rename({"colour": "farbe"})
    assert rule.sums["farbe=red"] == sums["colour=red"]
    with pytest.raises(DataError, match="define renamed"):
        Counting().rename({})


def test_a_learner_around_a_river_classifier_rejects():
    from river import linear_model

    model = OVFIV(base=linear_model.LogisticRegression())
    model.learn_one({"a": 1.0}, True)
    with pytest.raises(DataError, match="LogisticRegression"):
        model.rename({"a": "b"})


def test_the_report_names_features_with_a_new_unit():
    rng = random.Random(0)
    model = AutoClassifier("fast")
    for step in range(400):
        y = rng.random() < 0.5
        celsius = rng.gauss(20.0 + 2.0 * y, 2.0)
        x = {"temp": celsius if step < 250 else 1.8 * celsius + 32.0, "early": 1.0, "load": rng.random()}
        x["when:elapsed"] = 20_000 + step / 24 + (90 if step > 300 else 0)
        if step > 200:
            del x["early"]
        model.learn_one(x, y)
    found = {(change.what, change.feature): change.step for change in model.report().changes}
    assert 250 < found["new unit", "temp"] < 290
    assert found["vanished", "early"] == 201
    assert model.unit_changes.keys() == {"temp", "when:elapsed"}
    assert model.unit_changes["temp"] == found["new unit", "temp"]
    assert {name for what, name in found if what == "new unit"} == {"temp"}
    assert "another unit" in str(model.report())
    assert AROW().unit_changes == {}


@pytest.mark.parametrize("name", ["auto", "cwfe", "fesl", "arow"])
def test_a_name_that_was_there_next_to_the_old_one(name):
    """Old and new sensor reported side by side: such instances count once, the learner goes on and can be saved."""
    rng = random.Random(0)
    model = varifold.models[name]()
    for step in range(150):
        model.learn_one({"temp": rng.random(), "temp_v2": rng.random(), "b": rng.random()}, "pq"[step % 2])
    model.rename({"temp": "temp_v2"})
    assert model.features["temp_v2"].count == 150
    for step in range(40):
        x = {"n1": rng.random(), "n2": rng.random(), "b": rng.random()}
        model.learn_one({**x, "temp_v2": rng.random()} if step % 2 else x, "pq"[step % 2])
        assert varifold.from_bytes(model.to_bytes()).predict_one(x) == model.predict_one(x)

import pickle

import numpy as np
import pytest
from river import linear_model, naive_bayes, preprocessing

import varifold
from tests.oracles.ftrladp import PlainFTRLADP
from tests.oracles.harness import ONE, SETTINGS, Scaler, stream
from tests.oracles.ovfiv import PlainOVFIV
from tests.oracles.pa import PlainPA
from varifold import OVFIV
from varifold.errors import ModelFileError, ParameterError

FORMS = [
    ({"eta": "adaptive", "encode": "absence"}, "adaptive"),
    ({"eta": 0.05, "encode": "absence", "lam": 0.0}, 0.05),
    ({"eta": "optimal", "horizon": 200, "encode": "presence", "lam": 3.0}, ("horizon", 200)),
    ({"eta": "adaptive", "encode": "presence", "base": "pa:C=0.05"}, "adaptive"),
    ({"eta": "adaptive", "encode": "auto", "bias": False}, "adaptive"),
    ({"eta": "adaptive", "encode": "absence", "bias": False, "mix": "score"}, "adaptive"),
    ({"eta": 0.05, "encode": "absence", "base": "pa:C=0.05", "mix": "score"}, 0.05),
    ({"eta": "adaptive", "encode": "absence", "prior": 0.9}, "adaptive"),
]


def informative(n=400, seed=0):
    """Values are noise; which of them are there determines the label."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        y = bool(rng.random() < 0.5)
        there = rng.random(8) < np.where(np.arange(8) < 4, 0.9 if y else 0.4, 0.6)
        yield {f"f{j}": float(rng.normal()) for j in np.flatnonzero(there)}, y


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("form", "eta"), FORMS, ids=str)
def test_follows_the_equations(form, eta, setting):
    instances = stream(labels=setting["labels"], weights=setting["weights"])
    assert compare(form, eta, setting, instances) > 100


@pytest.mark.parametrize("labels", [2, 3])
def test_more_columns_absent_than_are_stepped_together(labels):
    setting = {"scale": "standard", "fit_intercept": True}
    instances = list(stream(n=40, d=300, labels=labels))
    assert min(300 - len(x) for x, _, _ in instances) > 64
    assert compare({"eta": "adaptive", "encode": "absence"}, "adaptive", setting, instances) > 30


def compare(form, eta, setting, instances):
    """Walk the instances with the learner and its twin; returns how many margins were compared."""
    learner = OVFIV(**form, scale=setting["scale"], fit_intercept=setting["fit_intercept"])
    make = (lambda: PlainPA("pa1", 0.05)) if "base" in form else PlainFTRLADP
    ways = {"bias": form.get("bias", True), "mix": form.get("mix", "probability"), "prior": form.get("prior", 0.5)}
    twin = PlainOVFIV(make, eta, form.get("lam", 1.0), form["encode"] == "presence", **ways)
    scaler, intercept = Scaler(setting["scale"]), {ONE: 1.0} if setting["fit_intercept"] else {}
    failed, compared = False, 0
    for step, (x, y, w) in enumerate(instances):
        if failed:
            old = {name: value for name, value in x.items() if name in twin.known}
            expected = twin.scores({**intercept, **scaler.scaled(old, 1.0, commit=False)})
            found = learner.margins_one(x)
            assert list(found) == list(expected)
            if len(found) > 1:
                np.testing.assert_allclose(
                    list(found.values()), list(expected.values()), rtol=1e-9, atol=1e-9, err_msg=f"step {step}"
                )
                compared += 1
        learner.learn_one(x, y, w)
        if w > 0:
            twin.meet(y)
            failed = True
            twin.learn({**intercept, **scaler.scaled(x, w, commit=True)}, y, w, set(x) - twin.known)
    return compared


def test_mixed_scores_are_explained_and_become_probabilities():
    model = OVFIV(mix="score", encode="absence", calibrate=False)
    for x, y in informative(300):
        model.learn_one(x, y)
    for x, _ in informative(20, seed=1):
        margins, proba = model.margins_one(x), model.predict_proba_one(x)
        for label in model.classes:
            assert sum(model.explain_one(x, label).values()) == pytest.approx(margins[label], abs=1e-9)
            assert proba[label] == pytest.approx(np.clip((1 + margins[label]) / 2, 0, 1), abs=1e-12)


def test_absence_alone_is_learned():
    model, right = OVFIV(), []
    for x, y in informative(1200):
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    assert np.mean(right[600:]) > 0.75
    assert model.weights["variation"] > 0.9


def losses(params, adversary_seed, rounds=600):
    """Square losses of OVFIV and of its base alone; the label is in the values, an adversary picks what is absent.

    Of eight masks it takes the one under which the mixture errs most: the absences contradict the label throughout.
    """
    rng = np.random.default_rng(adversary_seed)
    mixed, alone = OVFIV(base="ftrladp", **params), varifold.FTRLADP(majority_bias=False)
    lost = []
    for t in range(rounds):
        y = bool(rng.random() < 0.5)
        values = {"sure": (1.0 if y else -1.0) + 0.3 * rng.normal()}
        masks = [{f"f{j}": 1.0 for j in np.flatnonzero(rng.random(10) < 0.5)} for _ in range(8)]
        x = min(({**values, **mask} for mask in masks), key=lambda x: mixed.predict_proba_one(x).get(y, 0.0))
        if t > 1:
            lost.append([(1.0 - m.predict_proba_one(x).get(y, 0.0)) ** 2 for m in (mixed, alone)])
        mixed.learn_one(x, y)
        alone.learn_one(x, y)
    return np.cumsum(np.array(lost), axis=0)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("params", "bound"),
    [
        ({"eta": "adaptive"}, lambda t: 2 * np.sqrt(t / 2 * np.log(2)) + np.sqrt(np.log(2) / 8)),
        ({"eta": 0.05}, lambda t: np.log(2) / 0.05 + 0.05 * t / 8),
        ({"eta": "optimal", "horizon": 600}, lambda t: np.sqrt(600 / 2 * np.log(2))),
    ],
    ids=["adaptive", "fixed", "optimal"],
)
def test_never_hurts_beyond_the_bound_whatever_is_absent(params, bound, seed):
    mixed, alone = losses({**params, "lam": 0.0, "alpha": 1.0}, seed).T
    assert (mixed <= alone + bound(np.arange(3, len(mixed) + 3))).all()


def test_without_its_weights_the_adversary_would_win():
    mixed, alone = losses({"eta": 1e-9, "lam": 0.0, "alpha": 1.0}, 0).T
    assert mixed[-1] > alone[-1] + np.sqrt(600 / 2 * np.log(2))


def test_explanation_names_the_absences_and_sums_to_the_margin():
    for encode, mark in (("absence", "(absent)"), ("presence", "(present)")):
        model = OVFIV(encode=encode)
        for x, y in informative():
            model.learn_one(x, y)
        for x in ({}, {"f0": 1.0}, {"f1": 0.2, "f5": -1.0}):
            for label in (False, True):
                parts = model.explain_one(x, label)
                assert sum(parts.values()) == pytest.approx(model.margins_one(x)[label], abs=1e-9)
            spoke = {name for name in parts if str(name).endswith(mark)}
            missing = {f"f{j}" for j in range(8)} - set(x)
            allowed = missing if encode == "absence" else set(x)
            assert spoke <= {f"{name} {mark}" for name in allowed}
            assert spoke or encode == "presence"


def test_indicators_of_a_column_are_absent_together():
    model = OVFIV(encode="absence", lam=0.0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        y = bool(rng.random() < 0.5)
        x = {"age": rng.normal()}
        if rng.random() < (0.9 if y else 0.3):
            x["colour"] = str(rng.choice(["red", "green", "blue"]))
        model.learn_one(x, y)
    absent = [name for name in model.explain_one({"age": 0.0}) if str(name).endswith("(absent)")]
    assert absent == ["colour (absent)"]
    assert model.predict_one({"age": 0.0}) is False
    assert model.predict_one({"age": 0.0, "colour": "red"}) is True


def test_auto_goes_over_to_presence_without_changing_its_mind():
    rng = np.random.default_rng(0)
    auto, absence = OVFIV(lam=0.1), OVFIV(lam=0.1, encode="absence")
    rows = [({f"word {j}": 1.0 for j in rng.integers(0, 3000, 20)}, bool(i % 2)) for i in range(64)]
    for x, y in rows:
        auto.learn_one(x, y)
        absence.learn_one(x, y)
    assert auto._engine.model.presence
    assert "present" in auto.traits.notes[0]
    assert "absent" in absence.traits.notes[0]
    for x, _ in rows[:10]:
        assert auto.margins_one(x)[True] == pytest.approx(absence.margins_one(x)[True], rel=1e-9)


def test_auto_stays_with_absence_where_most_is_there():
    model = OVFIV()
    for x, y in informative(300):
        model.learn_one(x, y)
    assert not model._engine.model.presence


@pytest.mark.parametrize("base", ["arow:r=1", varifold.GaussianNB(prior=2.0), "olvf:C=0.1,B=0.5"])
def test_saved_and_continued(base, tmp_path):
    model = OVFIV(base=base)
    rows = list(informative(300))
    for x, y in rows[:150]:
        model.learn_one(x, y)
    model.save(tmp_path / "model")
    again = varifold.load(tmp_path / "model")
    for x, y in rows[150:]:
        assert again.margins_one(x) == model.margins_one(x)
        model.learn_one(x, y)
        again.learn_one(x, y)


RIVER = OVFIV(base=linear_model.LogisticRegression())


@pytest.mark.parametrize(
    "check",
    [c for c in varifold.checks.yield_checks(RIVER) if c.__name__ not in ("check_saved", "check_bytes")],
    ids=lambda c: c.__name__,
)
def test_around_a_river_classifier_the_contract_holds(check):
    check(RIVER)


@pytest.mark.parametrize("base", [naive_bayes.GaussianNB(), linear_model.LogisticRegression()])
def test_around_a_river_classifier_a_pickle_continues_and_a_file_is_rejected(base, tmp_path):
    rows = [(x | {"colour": "red" if y else "blue"}, y) for x, y in informative(160)]
    whole, model = OVFIV(base=base), OVFIV(base=base)
    for x, y in rows[:80]:
        whole.learn_one(x, y)
        model.learn_one(x, y)
    with pytest.raises(ModelFileError, match="pickle the learner instead"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    model = pickle.loads(pickle.dumps(model))
    for x, y in rows[80:]:
        assert model.margins_one(x) == whole.margins_one(x)
        whole.learn_one(x, y)
        model.learn_one(x, y)


@pytest.mark.parametrize(
    "base", [naive_bayes.GaussianNB(), preprocessing.StandardScaler() | linear_model.LogisticRegression()]
)
def test_a_river_classifier_within(base):
    rows = list(informative(200))
    one, many = OVFIV(base=base), OVFIV(base=base)
    alone, mixed = base.clone(), []
    for x, y in rows:
        mixed.append(one.predict_one(x))
        one.learn_one(x, y)
        if x:
            alone.learn_one(x, y)
    assert many.predict_learn_many([x for x, _ in rows], [y for _, y in rows]) == mixed
    probe = {"f0": 0.3, "f5": -1.0}
    assert one.margins_one(probe) == many.margins_one(probe)
    within = one._engine.model.base.learner.predict_proba_one(probe)
    for index, label in enumerate(one.classes):
        assert within[index] == pytest.approx(alone.predict_proba_one(probe)[label])
    again = pickle.loads(pickle.dumps(one))
    again.learn_one(probe, True)
    assert one.margins_one(probe) != again.margins_one(probe)
    one.learn_one(probe, True)
    assert one.margins_one(probe) == again.margins_one(probe)


def test_an_error_of_a_river_classifier_is_raised(tmp_path):
    class Broken(naive_bayes.GaussianNB):
        def learn_one(self, x, y):
            raise RuntimeError("no more")

    model = OVFIV(base=Broken())
    with pytest.raises(RuntimeError, match="no more"):
        model.learn_one({"a": 1.0}, True)
    with pytest.raises(RuntimeError, match="no more"):
        model.learn_many([{"a": 1.0}], [True])
    with pytest.raises(ModelFileError, match="Broken"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"eta": "optimal"}, "horizon"),
        ({"horizon": 10}, "horizon"),
        ({"base": "arow:radius=1"}, "no parameter 'radius'"),
        ({"base": "arrow"}, "did you mean arow"),
        ({"base": "collections:Counter"}, "no model 'collections'"),
        ({"base": 3}, "must be the name of a model"),
        ({"base": "arow:r"}, "key=value"),
        ({"base": varifold.AROW(max_features=5)}, "max_features"),
    ],
)
def test_what_makes_no_sense_is_rejected(params, match):
    with pytest.raises((ParameterError, KeyError), match=match):
        OVFIV(**params)

"""Objectives and costs: predictions follow from the probabilities by the rule, in every learner, through both APIs."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import varifold
from varifold import AROW, NB3, OLVF, OVFIV, AutoClassifier, Block, GaussianNB, PerKey, datasets
from varifold.errors import ParameterError
from varifold.evaluate import prequential

LABELS = ("common", "rare", "late")
COSTS = {"rare": 6.0, "late": 0.5}
MATRIX = {"rare": {"common": 8.0, "late": 2.0}, "common": {"rare": 0.5, "common": -0.25}}
RULES = ({"costs": COSTS}, {"costs": MATRIX}, {"objective": "balanced"})


def pairs(n=160, seed=3):
    """A rare label, a label that comes late, string values, instances without any feature."""
    rng = np.random.default_rng(seed)
    for step in range(n):
        y = LABELS[rng.choice(3, p=[0.8, 0.2, 0.0] if step < n // 2 else [0.6, 0.15, 0.25])]
        shift = 0.7 * LABELS.index(y)
        x = {f"f{j}": float(rng.normal(shift)) for j in range(4) if rng.random() < 0.7 and step % 31}
        if step % 3 == 0 and step % 31:
            x["kind"] = str(rng.choice(["a", "b"]))
        yield x, y


def margins(rule, labels, shares, counts):
    """The decision in plain NumPy: log of cost times probability, or minus the expected cost."""
    p = np.maximum([shares[y] for y in labels], 1e-300)
    if rule.get("costs") is MATRIX:
        cost = [[MATRIX.get(t, {}).get(a, float(t != a)) for a in labels] for t in labels]
        return -(p @ np.array(cost))
    if "costs" in rule:
        return np.log(p) + np.log([COSTS.get(y, 1.0) for y in labels])
    return np.log(p) - np.log([counts[y] / sum(counts.values()) for y in labels])


def made(name, rule):
    parameters = {"auto": {"budget": "fast"}}.get(name, {})
    return varifold.models[name](**parameters, **rule)


CLASSIFIERS = [name for name, cls in varifold.models.items() if issubclass(cls, varifold.VaryingClassifier)]


@pytest.mark.parametrize("rule", RULES, ids=["costs", "matrix", "balanced"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_predictions_follow_the_rule_in_both_apis(name, rule):
    model, plain, block_api = made(name, rule), made(name, {}), made(name, rule)
    counts: dict[str, float] = {}
    predictions, differing = [], 0
    for step, (x, y) in enumerate(pairs()):
        predictions.append(model.predict_one(x))
        if counts:
            shares = model.predict_proba_one(x)
            assert shares == plain.predict_proba_one(x), "probabilities stay as they are"
            expected = margins(rule, model.classes, shares, counts)
            found = model.margins_one(x)
            assert list(found.values()) == pytest.approx(expected.tolist(), rel=1e-9, abs=1e-9)
            assert predictions[-1] == model.classes[int(np.argmax(list(found.values())))]
            differing += predictions[-1] != plain.predict_one(x)
            if step % 5 == 0:
                for label, margin in found.items():
                    parts = model.explain_one(x, label)
                    assert math.fsum(parts.values()) == pytest.approx(margin, rel=1e-9, abs=1e-9)
        w = 1.0 + step % 2
        for learner in (model, plain):
            learner.learn_one(x, y, w)
        counts[y] = counts.get(y, 0.0) + w
    assert differing, "the rule changes predictions"
    X, Y = zip(*pairs(), strict=True)
    weights = [1.0 + step % 2 for step in range(len(X))]
    codes, _ = block_api.run_block(Block.from_dicts(X, Y, weights))
    assert [block_api.classes[c] if c >= 0 else None for c in codes] == predictions
    assert block_api.to_bytes() == model.to_bytes()
    assert model.predict_many(X) == [model.predict_one(x) for x in X]


def test_the_fused_pass_over_a_block_and_late_labels_follow_the_rule():
    X, Y = zip(*pairs(200), strict=True)
    for rule in RULES:
        one, many = AROW(**rule), AROW(**rule)
        predictions = []
        for x, y in zip(X, Y, strict=True):
            predictions.append(one.predict_one(x))
            one.learn_one(x, y)
        assert many.predict_learn_many(X, Y) == predictions
        assert (
            prequential(AROW(**rule), zip(X, Y, strict=True), delay=20).cer
            != prequential(AROW(), zip(X, Y, strict=True), delay=20).cer
        )


def test_explanations_name_the_cost():
    model, matrix = AROW(costs=COSTS), AROW(costs=MATRIX)
    for x, y in pairs():
        model.learn_one(x, y)
        matrix.learn_one(x, y)
    x = {"f0": 1.0, "f1": -0.5}
    assert model.explain_one(x, "rare")["(decision)"] == pytest.approx(math.log(6.0))
    assert model.explain_one(x, "common")["(decision)"] == 0.0
    parts = matrix.explain_one(x, "rare")
    assert parts["(minus expected cost)"] == matrix.margins_one(x)["rare"]
    assert parts["f0"] == AROW.explain_one(model, x, "rare")["f0"], "features explain the score, as without costs"
    assert "(decision)" not in AROW().explain_one(x)


@pytest.mark.parametrize("given", [{"objective": "balanced"}, {"costs": {"p": 5.0, "q": 0.1}}])
def test_explanations_sum_next_to_a_large_score(given):
    model = varifold.OLIDS(scale="none", **given)
    for step in range(40):
        model.learn_one({"a": 1e150 if step % 9 == 8 else step / 7, "b": float(step % 3)}, "pq"[step % 2])
    x = {"a": 0.3, "b": 0.2}
    margins, parts = model.margins_one(x), model.explain_one(x)
    predicted = model.predict_one(x)
    largest = max(abs(part) for part in parts.values())
    assert math.isclose(math.fsum(parts.values()), margins[predicted], rel_tol=1e-9, abs_tol=1e-9 * (1 + largest))


def test_balanced_names_one_over_the_frequency():
    model = NB3(objective="balanced")
    for x, y in pairs():
        model.learn_one(x, y, 2.0)
    labels = [y for _, y in pairs()]
    for label in LABELS:
        share = labels.count(label) / len(labels)
        assert model.explain_one({"f0": 1.0}, label)["(decision)"] == pytest.approx(-math.log(share))


@pytest.mark.parametrize(
    "costs", [{1: 2.0, 2.5: 3.0, "1": 4.0, b"x": 5.0, ("a", 1): 6.0}, {1: {"1": 2.0}, "1": {1: 3.0}}, {True: 2.0}]
)
def test_costs_keep_the_types_of_labels_in_files_pickles_and_clones(costs):
    model = GaussianNB(costs=costs)
    for label in costs:
        model.learn_one({"a": float(len(str(label)))}, label)
    for again in (varifold.from_bytes(model.to_bytes()), pickle.loads(pickle.dumps(model)), model.clone()):
        assert again.costs == costs
        assert [type(label) for label in again.costs] == [type(label) for label in costs]
    again = varifold.from_bytes(model.to_bytes())
    assert again.margins_one({"a": 1.0}) == model.margins_one({"a": 1.0})
    assert again.predict_one({}) == model.predict_one({})


def test_the_costs_of_a_learner_are_its_own():
    costs = {np.int64(1): 5.0}
    model = NB3(costs=costs)
    costs[np.int64(1)] = 99.0
    assert model.costs == {1: 5.0}
    assert type(next(iter(model.costs))) is int


@pytest.mark.parametrize(
    "given",
    [
        {"costs": {"a": 0.0}},
        {"costs": {"a": -1.0}},
        {"costs": {"a": math.inf}},
        {"costs": {"a": True}},
        {"costs": {}},
        {"costs": [1.0, 2.0]},
        {"costs": {None: 1.0}},
        {"costs": {"a": 1.0, "b": {"a": 1.0}}},
        {"costs": {"a": {"b": math.nan}}},
        {"costs": {"a": {None: 1.0}}},
        {"objective": "auroc"},
        {"objective": None},
    ],
)
def test_bad_objectives_and_costs_are_rejected(given):
    name = next(iter(given))
    with pytest.raises(ParameterError, match=f"'{name}' parameter of NB3"):
        NB3(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"objective": "balanced", "costs": {"a": 2.0}},
        {"objective": "log_loss", "threshold": 0.3},
        {"costs": {"a": 2.0}, "threshold": 0.3},
    ],
)
def test_two_rules_for_the_prediction_are_rejected(given):
    with pytest.raises(ParameterError, match=" and ".join(repr(name) for name in given)):
        AutoClassifier(**given)


def test_the_base_of_ovfiv_has_no_rule_of_its_own():
    with pytest.raises(ParameterError, match="to OVFIV itself"):
        OVFIV(base=AROW(objective="balanced"))


def test_log_loss_predicts_the_most_probable_label_without_the_guard():
    """Where the label is noise, the guard predicts the majority; the most probable label is another one at times."""
    for make in (AutoClassifier, OLVF):
        guarded, free = make(), make(objective="log_loss")
        rng = np.random.default_rng(0)
        predictions: dict[str, set[str]] = {"guarded": set(), "free": set()}
        for _ in range(120):
            x = {f"f{j}": float(rng.normal()) for j in range(6)}
            if free.classes:
                shares = free.predict_proba_one(x)
                assert free.predict_one(x) == max(shares, key=shares.get)
            predictions["guarded"].add(guarded.predict_one(x))
            predictions["free"].add(free.predict_one(x))
            y = "rare" if rng.random() < 0.3 else "common"
            guarded.learn_one(x, y)
            free.learn_one(x, y)
        assert "rare" in predictions["free"]
        assert varifold.from_bytes(free.to_bytes()).to_bytes() == free.to_bytes()


def test_one_learner_per_key_obeys():
    model = PerKey(NB3(costs={"rare": 100.0}), key="device")
    for y in ["common"] * 20 + ["rare"]:
        model.learn_one({"device": "a", "f": 1.0}, y)
    assert model.predict_one({"device": "a", "f": 1.0}) == "rare"


@pytest.mark.real_data
def test_balanced_finds_a_rare_label_on_a_real_set():
    """svmguide3 with one positive in fifty: the most probable label is never the rare one."""
    block = datasets.load("svmguide3").block
    rows, labels = list(block.rows()), np.array(block.y)
    values, sizes = np.unique(labels, return_counts=True)
    rare = values[sizes.argmin()]
    common, few = np.flatnonzero(labels != rare), np.flatnonzero(labels == rare)[: sizes.max() // 50]
    order = np.random.default_rng(100).permutation(np.concatenate([common, few]))
    plain, balanced = (
        prequential(AutoClassifier("fast", objective=rule), [(rows[i], labels[i]) for i in order], positive=rare)
        for rule in ("accuracy", "balanced")
    )
    assert plain.balanced_accuracy + 0.05 < balanced.balanced_accuracy
    assert balanced.balanced_accuracy > plain.balanced_accuracy + 0.03
    assert balanced.auroc == plain.auroc

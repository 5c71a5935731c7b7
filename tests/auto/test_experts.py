"""Paused and disabled experts, the bounded deficit of the guard, many labels, extreme values and weights, files."""

import pickle
import random

import numpy as np
import pytest

from tests.base.kept_files import stream
from tests.engines import class_engine
from varifold import AutoClassifier
from varifold.auto._classification import ClassificationMixture
from varifold.auto.experts import Expert, classifier_experts
from varifold.base import files
from varifold.errors import ModelFileError
from varifold.linear._additive import AdditiveRule
from varifold.linear._arow import AROWRule
from varifold.naive_bayes._frequency import FrequencyModel

K = len(classifier_experts("fast"))


def useless_line(pausing):
    """A linear expert learns nothing from a band; the additive expert does, and the stack ignores the former."""
    return [
        Expert(
            name="additive",
            model=lambda: AdditiveRule(30.0, 20_000),
            temperature=2.0,
            stack_weight=1.0,
            stack_variance=0.1,
        ),
        Expert(name="linear", model=lambda: AROWRule(10.0), pausing=pausing, temperature=2.0, stack_variance=1e-9),
    ]


def test_a_paused_expert_learns_from_every_eighth_instance():
    rng = np.random.default_rng(0)
    engine = class_engine(ClassificationMixture(useless_line("late")))
    learned_at, before = [], None
    for step in range(800):
        a = float(rng.normal())
        engine.learn_one({"a": a}, abs(a) < 0.6)
        after = engine.dump()[2]["model.1.state"].tobytes()
        if step >= 600 and after != before:
            learned_at.append(step)
        before = after
    assert engine.model.paused_experts() == ["linear"]
    assert all(step % 8 == 0 for step in learned_at)
    assert len(learned_at) > 15


@pytest.mark.parametrize(("pausing", "first"), [("late", 500), ("early", 200)])
def test_an_expert_is_not_paused_before_its_first_rounds(pausing, first):
    rng = np.random.default_rng(0)
    engine = class_engine(ClassificationMixture(useless_line(pausing)))
    for step in range(first + 1):
        assert engine.model.paused_experts() == [], step
        a = float(rng.normal())
        engine.learn_one({"a": a}, abs(a) < 0.6)
    assert engine.model.paused_experts() == ["linear"]


def test_no_expert_is_paused_while_the_mixture_explains_little():
    """The labels depend on nothing: a line that is far too sure is paused from instance 1,000 on, and not before."""
    experts = [
        Expert(name="class frequencies", model=FrequencyModel, stack_weight=1.0, stack_variance=0.1),
        Expert(name="linear", model=lambda: AROWRule(1000.0), pausing="early", temperature=20.0, stack_variance=1e-9),
    ]
    rng = np.random.default_rng(0)
    engine = class_engine(ClassificationMixture(experts))
    waited = 0
    for step in range(1100):
        engine.learn_one({f"f{j}": float(v) for j, v in enumerate(rng.normal(size=5))}, bool(rng.random() < 0.4))
        arrays = {name.removeprefix("model."): values for name, values in engine.dump()[2].items()}
        shares = 0.999 * arrays["class_weight"] / arrays["class_weight"].sum() + 0.0005
        _, loss, count = arrays["recent_loss"].ravel()
        waits = arrays["recent_error"].ravel()[2] < 1000 and loss > -0.9 * shares @ np.log(shares)
        useless = count > 200 and arrays["excess_loss"][1] > 0.05 and arrays["stack_use"][1] < 0.1
        assert engine.model.paused_experts() == (["linear"] if useless and not waits else []), step
        waited += useless and waits
    assert waited > 500
    assert engine.model.paused_experts() == ["linear"]


MATRICES = ["latent", "Gaussian"]


def wide(model, labels, features, count=60):
    rng = np.random.default_rng(0)
    for step in range(count):
        x = {f"f{j}": float(v) for j, v in enumerate(rng.normal(size=features))}
        model.learn_one(x, step % labels)
    return model


@pytest.mark.parametrize(("labels", "features", "disabled"), [(16, 64, []), (17, 64, MATRICES), (17, 60, [])])
def test_experts_whose_matrices_would_become_too_large_are_disabled(labels, features, disabled):
    model = wide(AutoClassifier(), labels, features)
    reasons = {name: state.reason for name, state in model.report().states.items() if state.status == "disabled"}
    assert sorted(reasons) == sorted([*disabled, "categories"])
    assert all("more than 65,536 numbers" in reasons[name] for name in disabled)
    again = AutoClassifier.from_bytes(model.to_bytes())
    x = {"f0": 1.0, "f5": -1.0}
    assert again.predict_proba_one(x) == model.predict_proba_one(x)


def test_a_label_or_a_feature_may_exceed_the_limit():
    by_label, by_feature = wide(AutoClassifier(), 16, 64), wide(AutoClassifier(), 17, 60)
    assert [by_label._engine.model.disabled_experts(), by_feature._engine.model.disabled_experts()] == [[], []]
    by_label.learn_one({"f0": 1.0}, "another")
    by_feature.learn_one({f"g{j}": 1.0 for j in range(8)}, 0)
    for model in (by_label, by_feature):
        assert sorted(model._engine.model.disabled_experts()) == sorted(MATRICES)


def test_the_deficit_of_the_guard_is_bounded_by_ten():
    """One instance of weight 100 on which the mixture is wrong and the most frequent class right."""
    engine = class_engine(ClassificationMixture(classifier_experts("fast")))
    for step in range(200):
        engine.learn_one({"a": 1.0 if step % 5 < 3 else -1.0}, step % 5 < 3)
    assert engine.predict_one({"a": -1.0}) is False
    engine.learn_one({"a": -1.0}, True, 100.0)
    right_lead, loss_lead, behind, _ = engine.dump()[2]["model.guard"]
    assert (right_lead, loss_lead) == (-10.0, -10.0)
    assert behind > 10.0


def extreme_rows(count, seed):
    rng = random.Random(seed)
    sizes = (0.0, -0.0, 1e-300, 1.0, -1.0, 3.5, 1e9, -1e9, 1e100, -1e140, 1e150, 1e300, -1.7e308)
    for _ in range(count):
        x = {f"f{rng.randrange(12)}": rng.choice(sizes) for _ in range(rng.randrange(6))}
        if rng.random() < 0.3:
            x["s"] = rng.choice("abc")
        yield x, f"y{rng.randrange(3)}", 10.0 ** rng.uniform(-9, 9)


@pytest.mark.parametrize("budget", ["fast", "balanced"])
def test_extreme_values_and_weights_up_to_a_billion_leave_no_nan(budget):
    model = AutoClassifier(budget)
    xs, ys, ws = zip(*extreme_rows(20_000, seed=1), strict=True)
    model.learn_many(xs, ys, ws)
    for name, array in model._engine.dump()[2].items():
        assert array.dtype.kind != "f" or np.isfinite(array).all(), name
    predicted = model.predict_proba_one({"f1": 1.0})
    assert sum(predicted.values()) == pytest.approx(1.0)


def labelled(count, labels, seed=0):
    rng = random.Random(seed)
    for step in range(count):
        y = step if step < labels else rng.randrange(labels)
        yield {"a": y % 10 + rng.gauss(0, 0.1), "b": y // 10 + rng.gauss(0, 0.1)}, y


@pytest.mark.parametrize(("labels", "biases"), [(3, 3), (64, 64), (65, 0), (130, 0)])
def test_beyond_64_labels_the_stack_has_no_biases(labels, biases):
    model = AutoClassifier("fast")
    for x, y in labelled(3 * labels, labels):
        model.learn_one(x, y)
    arrays = model._engine.dump()[2]
    assert len(arrays["model.stack.mean"]) == K + biases
    assert arrays["model.stack.covariance"].shape == ((K + biases) ** 2,)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba_one({"a": 1.0}) == model.predict_proba_one({"a": 1.0})


def test_dropped_biases_leave_the_experts_weights_as_they_were():
    model = AutoClassifier("fast")
    for x, y in labelled(300, 64):
        model.learn_one(x, y)
    before = model._engine.dump()[2]
    model.learn_one({"a": 3.0}, "one more")
    after = model._engine.dump()[2]
    without_biases = before["model.stack.covariance"].reshape(64 + K, 64 + K)[:K, :K].ravel()
    assert (after["model.stack.covariance"] == without_biases).all()
    assert (after["model.stack.mean"] == before["model.stack.mean"][:K]).all()


def test_a_file_whose_stack_has_other_biases_is_rejected():
    model, other = AutoClassifier("fast"), AutoClassifier("fast")
    for x, y in labelled(200, 70):
        model.learn_one(x, y)
    names, labels, arrays = model._engine.dump()
    mean = np.concatenate([arrays["model.stack.mean"], np.ones(70)])
    with pytest.raises(ValueError, match=r"stack\.mean"):
        other._engine.fill(names, labels, {**arrays, "model.stack.mean": mean})


def learned(model, count=40):
    for x, y in stream(count):
        model.learn_one(x, y)
    return model


def test_a_file_names_its_experts():
    header, _ = files.decode(learned(AutoClassifier()).to_bytes(), "test")
    assert header["experts"] == [expert.name for expert in classifier_experts("balanced")]
    assert "window forest" in header["experts"]


def test_a_learner_with_some_experts_is_saved_and_loaded_with_these():
    model = AutoClassifier()
    model._names = ["linear", "window forest"]
    model._engine = model._make_engine()
    learned(model)
    again = AutoClassifier.from_bytes(model.to_bytes())
    assert list(again.report().experts) == ["linear", "window forest", "stack"]
    assert again.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("experts", [["linear", "oracle"], ["additive", "linear"], None])
def test_a_file_with_unknown_experts_is_rejected(experts):
    header, arrays = files.decode(learned(AutoClassifier()).to_bytes(), "test")
    with pytest.raises(ModelFileError, match="experts"):
        AutoClassifier.from_bytes(files.encode({**header, "experts": experts}, arrays))


def test_beyond_256_labels_expensive_experts_are_disabled():
    model = AutoClassifier()
    for x, y in labelled(257, 257):
        assert model._engine.model.disabled_experts() == []
        model.learn_one(x, y)
    assert model._engine.model.disabled_experts() == [
        e.name for e in classifier_experts("balanced") if e.pausing != "never"
    ]
    assert "window forest: disabled, there are more than 256 labels" in model.report().notes
    for x, y in labelled(600, 300):
        model.learn_one(x, y)
    assert np.isfinite(list(model.predict_proba_one({"a": 1.0, "b": 2.0}).values())).all()

import math

import numpy as np
import pytest
from river import linear_model

from varifold import AROW
from varifold.ask import POLICIES, AskingClassifier, AskPolicy
from varifold.ask.estimate import WeightedMean
from varifold.errors import ParameterError
from varifold.evaluate import prequential, repeat


def rows(n, seed=0, flip=None):
    rng = np.random.default_rng(seed)
    heat, noise = rng.normal(size=n), rng.normal(size=n)
    truth = heat > 0
    if flip is not None:
        truth[flip:] = ~truth[flip:]
    return [({"heat": float(heat[i]), "noise": float(noise[i])}, bool(truth[i])) for i in range(n)]


class Sure:
    """A classifier whose certainty is a feature."""

    def predict_proba_one(self, x):
        return {False: x["p"], True: 1.0 - x["p"]}


@pytest.mark.parametrize("by", POLICIES)
@pytest.mark.parametrize("budget", [0.01, 0.05, 0.3, 1.0])
def test_the_budget_holds_over_every_window(by, budget):
    rng = np.random.default_rng(3)
    policy = AskPolicy(budget, by=by)
    asked = np.array([policy.should_ask(Sure(), {"p": float(p)}) for p in rng.random(5000)])
    window = np.convolve(asked, np.ones(1000), "valid")
    assert window.max() <= 1000 * budget + policy.burst
    assert asked.sum() >= 0.8 * budget * len(asked)
    assert policy.asked == asked.sum()


@pytest.mark.parametrize("by", ["mixed", "margin", "entropy"])
def test_unsure_instances_are_requested_more_often(by):
    rng = np.random.default_rng(3)
    policy, probabilities, asked = AskPolicy(0.1, by=by), rng.random(5000), []
    for p in probabilities.tolist():
        asked.append(policy.should_ask(Sure(), {"p": p}))
    asked = np.array(asked)
    unsure = np.abs(probabilities - 0.5) < 0.05
    assert asked[unsure].mean() > 5 * asked[~unsure].mean() > 0


def test_features_that_no_labelled_instance_had_are_requested():
    policy = AskPolicy(0.05, by="novelty", seed=1)
    for _ in range(1000):
        policy.should_ask(Sure(), {"p": 0.9})
    assert policy.should_ask(Sure(), {"p": 0.9, "new": 1.0})


def test_asking_changes_neither_learner_nor_depends_on_the_process():
    model = AROW()
    for x, y in rows(50):
        model.learn_one(x, y)
    before = model.to_bytes()
    decisions = [[policy.should_ask(model, x) for x, _ in rows(500)] for policy in (AskPolicy(), AskPolicy())]
    assert model.to_bytes() == before
    assert decisions[0] == decisions[1] != [AskPolicy(seed=5).should_ask(model, x) for x, _ in rows(500)]


def test_the_weighted_mean_is_that_of_its_equations():
    rng = np.random.default_rng(0)
    values, chances = (rng.random(200) < 0.3).astype(float), rng.uniform(0.1, 1.0, size=200)
    mean = WeightedMean()
    for value, chance in zip(values.tolist(), chances.tolist(), strict=True):
        mean.add(value, chance)
    w = 1.0 / chances
    expected = (w * values).sum() / w.sum()
    deviation = np.sqrt((w**2 * (values - expected) ** 2).sum()) / w.sum()
    estimate = mean.estimate()
    np.testing.assert_allclose([estimate.error, estimate.standard_error], [expected, deviation], rtol=1e-12)
    assert (estimate.labels, estimate.plain) == (200, values.mean())


def test_the_estimate_of_the_error_is_honest_where_the_plain_one_is_not():
    gaps, plain = [], []
    for seed in range(12):
        policy = AskPolicy(0.1, explore=0.5, seed=seed)
        rng = np.random.default_rng(seed)
        wrong = []
        for p in rng.random(4000).tolist():
            is_wrong = bool(rng.random() < min(p, 1 - p))  # the classifier is calibrated
            wrong.append(is_wrong)
            if policy.should_ask(Sure(), {"p": p}):
                policy.score(not is_wrong)
        estimate = policy.estimate()
        gaps.append((estimate.error - np.mean(wrong)) / estimate.standard_error)
        plain.append(estimate.plain - np.mean(wrong))
    assert abs(np.mean(gaps)) < 1.0
    assert np.mean(np.abs(gaps) < 2.5) > 0.8
    assert np.mean(plain) > 0.1


def test_requested_labels_are_worth_more_than_random_ones():
    stream = rows(4000)
    errors = {by: prequential(AROW(), stream, ask=AskPolicy(0.02, by=by)).cer for by in ("margin", "random")}
    assert errors["margin"] < errors["random"]


def test_a_change_is_found_although_the_classifier_is_sure():
    result = prequential(AROW(), rows(8000, flip=4000), ask=0.1)
    assert result.curve.window_cer[-20:].mean() < 0.15


def test_prequential_learns_only_what_is_requested():
    model = AROW()
    result = prequential(model, rows(2000), ask=0.05)
    assert result.requested is not None
    assert 90 <= result.requested.labels <= 110
    assert next(iter(model.features.values())).count == result.requested.labels
    assert result.scored == 2000


def test_every_repeat_has_a_policy_of_its_own():
    from varifold import to_block

    data = rows(1000)
    summary = repeat(AROW, to_block([x for x, _ in data], [y for _, y in data]), repeats=2, shuffle=True, ask=0.05)
    assert all(45 <= result.requested.labels <= 60 for result in summary.results)


def test_river_classifiers_are_asked_too():
    learner = AskingClassifier(linear_model.LogisticRegression(), AskPolicy(0.1))
    for x, y in rows(1000):
        learner.learn_one(x, y)
    assert 90 <= learner.policy.asked <= 110
    assert learner.predict_one({"heat": 2.0, "noise": 0.0}) is True


def test_no_labels_no_estimate():
    estimate = AskPolicy().estimate()
    assert estimate.labels == 0
    assert math.isnan(estimate.error)


@pytest.mark.parametrize("params", [{"budget": 0.0}, {"budget": 1.5}, {"by": "magic"}, {"explore": 0}, {"burst": 0}])
def test_wrong_parameters_are_rejected(params):
    with pytest.raises(ParameterError, match=next(iter(params))):
        AskPolicy(**params)


def test_regressors_are_rejected():
    from varifold import AROWRegressor

    with pytest.raises(ParameterError, match="ask is for classifiers"):
        prequential(AROWRegressor(), rows(10), ask=0.5)


def test_the_command_line_shows_the_labels_requested(tmp_path, capsys):
    from varifold.cli import main

    path = tmp_path / "plant.csv"
    lines = [f"{x['heat']},{x['noise']},{'hot' if y else 'cold'}" for x, y in rows(2000)]
    path.write_text("\n".join(["heat,noise,state", *lines]))
    assert main(["run", str(path), "--target", "state", "--model", "arow", "--ask", "0.05:margin"]) == 0
    out = capsys.readouterr().out
    assert "labels requested" in out
    assert "cer estimated from them" in out
    assert main(["run", str(path), "--target", "state", "--ask", "many"]) == 2
    assert "BUDGET[:POLICY]" in capsys.readouterr().err

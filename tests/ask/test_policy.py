import itertools
import json
import math

import numpy as np
import pytest
from river import linear_model, naive_bayes, neighbors, preprocessing, tree

from varifold import AROW, AutoClassifier
from varifold.ask import POLICIES, AskingClassifier, AskPolicy
from varifold.ask.estimate import ErrorEstimator
from varifold.ask.worth import Regions, entropy, expected_gradient, margin
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
@pytest.mark.parametrize(("budget", "explore"), [(0.01, 0.2), (0.05, 0.2), (0.05, 1.0), (0.3, 0.5), (1.0, 0.2)])
def test_the_budget_is_kept_within_a_hundredth_over_every_thousand_rows(by, budget, explore):
    rng = np.random.default_rng(3)
    policy = AskPolicy(budget, by=by, explore=explore)
    sure = np.where(np.arange(6000) // 1000 % 2, 0.02, 1.0)  # whole stretches are hardly worth a label
    asked = np.array([policy.should_ask(Sure(), {"p": float(p)}) for p in 0.5 + (rng.random(6000) - 0.5) * sure])
    share = np.convolve(asked, np.ones(1000), "valid") / 1000
    assert share.max() <= budget + 0.01
    assert share[1000:].min() >= budget - 0.01
    assert abs(share[0] - budget) <= 0.01
    assert abs(asked.mean() - budget) <= 0.002
    assert policy.asked == asked.sum()


@pytest.mark.parametrize("by", ["mixed", "margin", "entropy", "split"])
def test_unsure_instances_are_requested_more_often(by):
    rng = np.random.default_rng(3)
    policy, probabilities, asked = AskPolicy(0.1, by=by), rng.random(5000), []
    for p in probabilities.tolist():
        asked.append(policy.should_ask(Sure(), {"p": p}))
    asked = np.array(asked)
    unsure = np.abs(probabilities - 0.5) < 0.05
    assert asked[unsure].mean() > (1.5 if by == "split" else 3) * asked[~unsure].mean() > 0


def test_features_that_no_labelled_instance_had_are_requested():
    policy = AskPolicy(0.05, by="novelty", seed=1)
    for _ in range(1500):
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


def test_the_worth_is_that_of_its_equations():
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    p = np.array(list(shares.values()))
    assert margin(shares) == pytest.approx(1 - (0.5 - 0.3))
    assert entropy(shares) == pytest.approx(-(p * np.log(p)).sum() / np.log(3))
    lengths = [np.linalg.norm(p - np.eye(3)[y]) for y in range(3)]
    assert expected_gradient(shares) == pytest.approx(p @ lengths)
    assert (margin({"a": 1.0}), entropy({"a": 1.0}), expected_gradient({"a": 1.0})) == (0.0, 0.0, 0.0)


def test_regions_count_requests_by_value_and_by_deviations_from_the_mean():
    values = np.random.default_rng(1).normal(3.0, 2.0, size=200)
    regions = Regions()
    for v in values.tolist():
        regions.observe({"heat": v, "kind": "a", "gone": None})
    np.testing.assert_allclose(regions.moments["heat"][1:], [values.mean(), values.var() * 200], rtol=1e-12)
    high, low = values.mean() + 0.5 * values.std(), values.mean() - 0.5 * values.std()
    assert regions.length({"heat": high, "kind": "a"}) == pytest.approx(math.sqrt(0.25 + 1.0))
    assert regions.novelty({"heat": high, "kind": "a"}) == 1.0
    regions.request({"heat": high, "kind": "a"})
    assert regions.novelty({"heat": high, "kind": "a"}) == 0.5
    assert regions.novelty({"heat": low, "kind": "a", "new": None}) == pytest.approx((1.0 + 0.5) / 2)
    assert regions.novelty({"heat": high, "kind": "b", "new": 1.0}) == pytest.approx((0.5 + 1.0 + 1.0) / 3)
    assert regions.novelty({}) == 0.0


def test_regions_forget_and_bear_extreme_values(monkeypatch):
    monkeypatch.setattr("varifold.ask.worth._MOST_NAMES", 5)
    monkeypatch.setattr("varifold.ask.worth._MOST_CELLS", 2)
    regions = Regions()
    for i in range(20):
        x = {f"f{i}": 1e308 * (-1) ** i, "same": 1e308 * (-1) ** i, "word": f"w{i}", "flag": True, "none": math.nan}
        assert 0.0 <= regions.novelty(x) <= 1.0
        assert math.isfinite(regions.length(x))
        regions.observe(x)
        regions.request(x)
    assert len(regions.moments) == len(regions.requested) == 5
    assert len(regions.requested["word"]) <= 2
    assert np.isfinite([v for moments in regions.moments.values() for v in moments]).all()


def test_thresholds_follow_the_paper():
    """Žliobaitė et al.: below the threshold a label is requested and the threshold falls by 1 %, else it rises."""
    policy, threshold = AskPolicy(0.3, by="split", explore=0.01), 1.0
    for p in np.random.default_rng(0).uniform(0.5, 1.0, size=2500).tolist():
        credit, asked = policy._credit, policy.asked
        decision = policy.decide({}, {True: p, False: 1.0 - p})
        available = credit + policy._rate
        if asked < policy.start or available >= policy.burst:
            threshold *= 0.99
        elif available >= 1.0:
            assert decision.ask == (p < threshold) or decision.drawn
            threshold *= 0.99 if p < threshold else 1.01
        assert policy._tuning == pytest.approx(threshold)


def test_passive_aggressive_chances_need_no_budget_by_worth():
    policy = AskPolicy(0.5, by="paa", explore=1.0)
    for step in range(400):
        policy.decide({}, [{}, {"a": 1.0}, {"a": 0.5, "b": 0.5}][step % 3])
    assert 190 <= policy.asked <= 210 + policy.burst


@pytest.mark.parametrize("by", ["variable", "split", "paa"])
@pytest.mark.parametrize("probabilities", [{}, {"a": 1.0}, {"a": 0.5, "b": 0.5}])
def test_thresholds_stay_finite_and_above_0(by, probabilities):
    for start in (1e-323, 1e308):
        policy = AskPolicy(1.0, by=by)
        policy._tuning = start
        tunings = [policy.decide({}, probabilities).tuning for _ in range(20)]
        assert 0.0 < min(tunings) <= max(tunings) <= 1e100


def test_passive_aggressive_chances_spend_the_budget():
    policy = AskPolicy(0.1, by="paa")
    chances = []
    for p in np.random.default_rng(0).uniform(0.5, 1.0, size=3000).tolist():
        chances.append((p, policy.decide({}, {True: p, False: 1.0 - p}).chance))
    late = np.array(chances[1200:])
    between = late[(late[:, 1] < 1.0) & (late[:, 1] > policy.explore * policy.budget + 1e-9)]
    assert np.corrcoef(between.T)[0, 1] < -0.4  # the smaller the margin, the larger the chance
    assert 0.09 <= policy.asked / policy.seen <= 0.11


@pytest.mark.parametrize("by", POLICIES)
def test_a_policy_continues_from_its_state_and_from_its_decisions(by):
    def decide(policy, i):
        p = 0.5 + (i * 37 % 100) / 200
        x = {"heat": float(i % 17), "kind": f"k{i % 7}"}
        decision = policy.decide(x, {"a": p, "b": 1.0 - p})
        if decision.ask:
            policy.score(i % 3 > 0)
        return x, decision

    whole, log, first, second = AskPolicy(0.2, by=by), [], [], []
    for i in range(1600):
        log.append(decide(whole, i))
        first = first or ([json.loads(json.dumps(whole.dump()))] if i == 1199 else [])
    again, repeated = AskPolicy.load(first[0]), AskPolicy.load(first[0])
    for i in range(1200, 1600):
        second.append(decide(again, i))
        repeated.repeat(*log[i])
    assert second == log[1200:]
    assert again.dump() == whole.dump()
    assert len(whole.dump()["latest"]) == 200  # the window of this budget
    assert {**repeated.dump(), "sums": None} == {**whole.dump(), "sums": None}
    assert again.estimate() == whole.estimate()


def test_one_row_of_each_stratum_is_drawn():
    policy = AskPolicy(0.07, explore=0.3)
    drawn = []
    for _ in range(5000):
        size, at_random = policy._stratum()
        drawn += [(policy.seen, size)] if at_random else []
        policy.seen += 1
    steps, sizes = np.array(drawn).T
    assert abs(len(drawn) - 5000 * 0.021) <= 1
    assert set(sizes.tolist()) == {47, 48}
    np.testing.assert_array_equal(np.floor(steps * 0.021), np.arange(len(drawn)))
    assert 0.3 < np.mean(steps / (1 / 0.021) % 1) < 0.7


def test_the_estimate_is_that_of_its_equations():
    rng = np.random.default_rng(0)
    wrong, chances, claims = (rng.random(200) < 0.3), rng.uniform(0.1, 1.0, size=200), rng.uniform(0.5, 1.0, size=200)
    sums = ErrorEstimator()
    for value, chance, claim in zip(wrong.tolist(), chances.tolist(), claims.tolist(), strict=True):
        sums.add(not value, chance, claim)
    w = 1.0 / chances
    expected = (w * wrong).sum() / w.sum()
    variances = w * (w - 1.0)
    typical = variances.sum() / (w - 1.0).sum()
    more, values = np.append(w, [typical, typical]), np.append(wrong, [0.0, 1.0])
    centre = (more * values).sum() / more.sum()
    squares = np.append(variances, [typical**2, typical**2]) * (values - centre) ** 2
    n = (w - 1.0).sum() / typical + 2.0
    deviation = np.sqrt(squares.sum() * n / (n - 3.0)) / more.sum()
    bins = np.minimum(9, (claims * 10).astype(int))
    gaps = [abs((w * (claims - ~wrong))[bins == k].sum()) for k in range(10)]
    estimate = sums.estimate()
    np.testing.assert_allclose([estimate.error, estimate.standard_error], [expected, deviation], rtol=1e-12)
    np.testing.assert_allclose(estimate.confidence, (w * claims).sum() / w.sum(), rtol=1e-12)
    np.testing.assert_allclose(estimate.calibration_error, sum(gaps) / w.sum(), rtol=1e-12)
    assert (estimate.labels, estimate.plain) == (200, wrong.mean())
    assert f"error {expected:.1%} ± {deviation:.1%}, estimated from 200 requested labels weighted" in str(estimate)


@pytest.mark.parametrize("by", POLICIES)
def test_the_chances_of_all_decisions_add_up_to_the_requests(by):
    """A chance that leaves out that an instance may be drawn as well would bias the estimate, which divides by it."""
    policy, p = AskPolicy(0.2, by=by, explore=0.5), np.random.default_rng(0).uniform(0.5, 1.0, size=6000).tolist()
    chances = np.array([policy.decide({"heat": one}, {True: one, False: 1.0 - one}).chance for one in p])
    assert abs(chances.sum() - policy.asked) < 3.0 * np.sqrt((chances * (1.0 - chances)).sum())


def test_only_requested_instances_are_scored():
    policy = AskPolicy(0.05)
    for _ in range(500):
        policy.should_ask(Sure(), {"p": 0.9})
        policy.score(True)
    assert policy.estimate().labels == policy.asked < 100


def drawn(rng, n, rate, of_all):
    """Simulate errors of a calibrated classifier and draws by worth and at random; return truth, outcomes, chances."""
    confidence = 1.0 - 0.5 * rng.random(n) ** rate
    wrong = rng.random(n) < 1.0 - confidence
    rank = np.argsort(np.argsort(-confidence)) / n
    chances = 1.0 - (1.0 - of_all) * (1.0 - 0.5 * rank ** (0.125 / of_all - 1.0))
    chances[: n // 50] = 1.0
    asked = rng.random(n) < chances
    return wrong.mean(), wrong[asked], chances[asked]


def test_two_standard_errors_contain_the_true_error_in_95_percent_of_all_cases():
    rng = np.random.default_rng(7)
    held = []
    for of_all, rate in itertools.product((0.01, 0.02, 0.04), (1.0, 2.0, 4.0)):  # errors of 25, 17 and 10 %
        for _ in range(300):
            truth, wrong, chances = drawn(rng, 2500, rate, of_all)
            sums = ErrorEstimator()
            for one, chance in zip(wrong.tolist(), chances.tolist(), strict=True):
                sums.add(not one, chance)
            held.append(abs(sums.estimate().error - truth) < 2.0 * sums.estimate().standard_error)
    assert 0.93 <= np.mean(held) <= 0.97


def test_outcomes_that_are_all_equal_do_not_make_the_error_certain():
    sums = ErrorEstimator()
    for _ in range(10):
        sums.add(True, 0.1)
    assert sums.estimate().error == 0.0
    assert sums.estimate().standard_error > 0.07
    certain = ErrorEstimator()
    for right in (True, True, False):
        certain.add(right, 1.0)
    assert (certain.estimate().error, certain.estimate().standard_error) == (1 / 3, 0.0)
    assert "error 33.3% (uncertainty not yet known), estimated from 3 " in str(certain.estimate())


@pytest.mark.parametrize("budget", [0.01, 0.1, 0.5])
def test_the_number_of_rows_that_help_states_is_requested(budget):
    assert AskPolicy(budget).start == round(8 + 800 * budget)


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
    assert np.mean(plain) > 0.03


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


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LogisticRegression(),
        naive_bayes.GaussianNB(),
        tree.HoeffdingTreeClassifier(grace_period=20),
        neighbors.KNNClassifier(),
        preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_river_classifiers_are_asked_too(model):
    result = prequential(model.clone(), rows(800), ask=0.1)
    assert 85 <= result.requested.labels <= 115
    assert result.cer < 0.25


def test_no_labels_no_estimate():
    policy = AskPolicy()
    policy.score(True)  # nothing was requested
    estimate = policy.estimate()
    assert estimate.labels == 0
    assert math.isnan(estimate.error)
    assert str(estimate) == "no requested label has arrived, so the error is unknown"


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
    html = tmp_path / "page.html"
    options = ["--model", "arow", "--ask", "0.05:margin", "--html", str(html)]
    assert main(["run", str(path), "--target", "state", *options]) == 0
    assert "Only requested labels were learned. What they alone show: error " in html.read_text()
    out = capsys.readouterr().out
    assert "labels requested" in out
    assert "cer estimated from them" in out
    assert "calibration error estimated from them" in out
    assert "weighted by the inverse of the chance that it was requested" in out
    assert main(["run", str(path), "--target", "state", "--ask", "many"]) == 2
    assert "BUDGET[:POLICY]" in capsys.readouterr().err


def test_a_comparison_runs_classifiers_that_request_labels(tmp_path, monkeypatch, capsys):
    from varifold.cli import main

    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plant.csv"
    lines = [f"{x['heat']},{x['noise']},{'hot' if y else 'cold'}" for x, y in rows(400)]
    path.write_text("\n".join(["heat,noise,state", *lines]))
    asking = "varifold.ask:AskingClassifier:classifier=(arow),policy=0.05:margin"
    assert main(["bench", "run", "--data", str(path), "--target", "state", "--models", f"arow,{asking}"]) == 0
    assert "AskingClassifier" in capsys.readouterr().out
    with pytest.raises(ParameterError, match="not of the form BUDGET"):
        AskingClassifier(AROW(), "many")


def test_the_table_of_policies_names_what_exists():
    from varifold.base.spec import parse_model
    from varifold.bench import plan
    from varifold.bench.tables import find_tables

    (table,) = find_tables("asking")
    made = [parse_model(text, imports=True)() for text in {cell.model for cell in plan([table])}]
    policies = [model.policy for model in made if isinstance(model, AskingClassifier)]
    assert {(policy.budget, policy.by) for policy in policies} == {
        (budget, by) for budget in (0.01, 0.02, 0.05, 0.1) for by in POLICIES
    }


@pytest.mark.parametrize("unlabelled", ["learn", "ignore"])
def test_instances_that_are_not_requested_are_learned_without_a_label_if_the_classifier_can(unlabelled):
    model = AskingClassifier(AutoClassifier("fast", unlabelled=unlabelled), 0.05)
    alone, policy = AutoClassifier("fast", unlabelled=unlabelled), AskPolicy(0.05)
    for x, y in rows(400):
        model.learn_one(x, y)
        alone.learn_one(x, y if policy.should_ask(alone, x) else None)
    assert model.classifier.steps == (400 if unlabelled == "learn" else model.policy.asked)
    assert model.classifier.to_bytes() == alone.to_bytes()

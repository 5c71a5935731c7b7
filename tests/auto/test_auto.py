import collections
import math
import pickle

import numpy as np
import pytest
import river.base

import varifold
from tests.engines import class_engine
from tests.oracles.auto import Combination
from varifold import evaluate
from varifold._engine.models.python_rule import PythonModel
from varifold.auto._classification import ClassificationMixture
from varifold.auto.experts import Expert, classifier_experts
from varifold.base import to_block
from varifold.cli.sensors import plant
from varifold.linear._additive import AdditiveRule
from varifold.linear._arow import AROWRule


def stream(n, labels, seed=0, width=8):
    rng = np.random.default_rng(seed)
    rows, y = [], []
    for t in range(n):
        z = rng.normal(size=width)
        rows.append({f"f{j}": float(z[j]) for j in range(width) if rng.random() < 0.7} or {"f0": float(z[0])})
        y.append(labels[t] if t < len(labels) else labels[int(abs(2 * z[0] + z[1])) % len(labels)])
    return rows, y


class Frequencies:
    """Class frequencies, half a count added to each."""

    def __init__(self):
        self.counts = {}

    def predict_proba_one(self, x):
        total = sum(self.counts.values()) + 0.5 * len(self.counts)
        return {c: (n + 0.5) / total for c, n in self.counts.items()}

    def learn_one(self, x, y):
        self.counts[y] = self.counts.get(y, 0) + 1


class TakesNoPart:
    """An expert that takes no part."""

    def predict_proba_one(self, x):
        return collections.defaultdict(lambda: math.nan)

    def learn_one(self, x, y):
        pass


class Presence(Frequencies):
    """Naive Bayes on presence: Bernoulli rates since a feature was first seen, Laplace's rule."""

    def __init__(self):
        super().__init__()
        self.seen, self.since = {}, {}

    def predict_proba_one(self, x):
        scores = []
        for c, n in self.counts.items():
            score = math.log(n + 0.5)
            for f, seen in self.seen.items():
                rate = (seen.get(c, 0) + 1) / (n - self.since[f].get(c, 0) + 2)
                score += math.log(rate if f in x else 1 - rate)
            scores.append(score)
        p = np.exp(np.array(scores) - max(scores))
        return dict(zip(self.counts, p / p.sum(), strict=True))

    def learn_one(self, x, y):
        for f in x:
            self.since.setdefault(f, dict(self.counts))
            seen = self.seen.setdefault(f, {})
            seen[y] = seen.get(y, 0) + 1
        super().learn_one(x, y)


@pytest.mark.parametrize("late", [0, 9])
@pytest.mark.parametrize("labels", [("a", "b"), ("a", "b", "c")])
def test_the_combination_follows_the_oracle(labels, late):
    """Labels come at once or `late` rows later; they are learned with the memos of their predictions."""
    rows, y = stream(500, labels)
    model = varifold.AutoClassifier(budget="fast")
    experts = [
        (varifold.AROW(majority_bias=False, calibrate=False), rows),
        (class_engine(AdditiveRule(3.0, 0, 100.0)), rows),
        (varifold.Additive(calibrate=False), rows),
        (varifold.GaussianNB(scale="standard", calibrate=False), rows),
        (Presence(), rows),
        (Frequencies(), rows),
        (TakesNoPart(), rows),
    ]
    oracle = Combination(
        [(e.temperature, e.stack_weight, e.stack_variance) for e in classifier_experts("fast")],
        len(labels),
        [e.counts_labels for e in classifier_experts("fast")],
    )
    waiting = collections.deque()
    for t in range(len(rows)):
        known = model.classes
        if len(known) == len(labels):
            probabilities = np.array([[e.predict_proba_one(xs[t])[c] for c in known] for e, xs in experts])
            expected = oracle.predict(probabilities)
            predicted = model.predict_proba_one(rows[t])
            assert [predicted[c] for c in known] == pytest.approx(expected.tolist(), abs=1e-8)
            issued = probabilities, oracle.members[-1], oracle.experts_mixed
            waiting.append((t, issued, model.memo_one(rows[t]), oracle.counts.sum()))
            if len(waiting) <= late:
                continue
            i, (probabilities, *issued), memo, then = waiting.popleft()
            model.learn_one(rows[i], y[i], memo=memo)
            oracle.learn(probabilities, known.index(y[i]), oracle.counts.sum() - then, issued)
        else:
            i = t
            model.learn_one(rows[i], y[i])
            if len(model.classes) == len(labels):
                _adopt(oracle, model)
        for e, xs in experts:
            e.learn_one(xs[i], y[i])
    assert len(oracle.lates) > 400 if late else not oracle.lates
    assert model._engine.dump()[2]["model.new_odds"].item() == pytest.approx(oracle.new_odds, abs=1e-8)


def _adopt(oracle, model):
    _, _, arrays = model._engine.dump()
    oracle.a, oracle.variance = arrays["model.temperature"].T.copy()
    oracle.mean = arrays["model.stack.mean"].copy()
    oracle.cov = arrays["model.stack.covariance"].reshape(len(oracle.mean), -1).copy()
    logs = arrays["model.weights"][1:], arrays["model.slow_weights"], arrays["model.pace"]
    oracle.fast, oracle.slow, oracle.pace = (np.exp(held) / np.exp(held).sum() for held in logs)
    oracle.right_lead, oracle.loss_lead, oracle.behind, oracle.unjudged = arrays["model.guard"].tolist()
    oracle.final[:2] = arrays["model.final_temperature"].tolist()
    oracle.counts = arrays["counts"].copy()
    oracle.new_odds, oracle.last = arrays["model.new_odds"].item(), arrays["model.last_label"].item()


def test_regret_stays_below_its_bound_when_the_best_expert_changes():
    """Two experts on different features; which one is right changes every 150 instances."""
    rng = np.random.default_rng(3)
    mixture = _unguarded()
    guarded = varifold.AutoClassifier(budget="fast")
    ours, after_guard, theirs, rounds = 0.0, 0.0, np.zeros(len(classifier_experts("fast")) + 1), 0
    for t in range(1200):
        a, b = rng.normal(size=2)
        y = bool((a if t // 150 % 2 else -b) > 0)
        x = {"a": float(a), "b": float(b)} if rng.random() < 0.8 else {"a": float(a)}
        if len(mixture.target.labels) == 2:
            ours -= math.log(mixture.predict_proba_one(x)[y])
            after_guard -= math.log(guarded.predict_proba_one(x)[y])
            theirs += _member_losses(mixture, x, y)
            rounds += 1
        mixture.learn_one(x, y)
        guarded.learn_one(x, y)
    bound = (math.log(len(theirs) + 3) + rounds * math.log(1 / (1 - 0.01))) / 0.5 + rounds * 1e-3
    assert ours <= theirs.min() + bound
    assert ours < rounds * math.log(2), "the mixture must be better than guessing"
    assert after_guard <= theirs.min() + bound, "the guard must not cost what the mixture saves"


def _unguarded():
    return class_engine(ClassificationMixture(classifier_experts("fast"), guard=0.0))


def _member_losses(engine, x, y):
    """Compute the log loss of each calibrated expert and of the stack from the weights of a copy that learns."""
    names, labels, arrays = engine.dump()
    before = arrays["model.weights"][1:]
    twin = _unguarded()
    twin.fill(names, labels, arrays)
    twin.learn_one(x, y)
    after = np.exp(twin.dump()[2]["model.weights"][1:])
    share, eta, k = 0.01, 0.5, len(after)
    after = after / after.sum()
    v = (after - share / k) / (1 - share)
    prior = np.exp(before) / np.exp(before).sum()
    likelihood = (v / prior) ** (1 / eta)
    # scale: the mixture's probability is the mean of the likelihoods under the weights of both paces
    slow, pace = (np.exp(arrays[f"model.{name}"]) for name in ("slow_weights", "pace"))
    portions = (pace[0] * prior + pace[1] * slow / slow.sum()) / pace.sum()
    p = engine.predict_proba_one(x)[y]
    return -np.log(likelihood / (portions @ likelihood) * p)


def test_an_expensive_expert_of_no_use_is_paused_and_reported():
    rng = np.random.default_rng(0)
    rows = [{f"f{j}": float(v) for j, v in enumerate(rng.normal(size=12))} for _ in range(3000)]
    y = [bool(abs(x["f0"]) < 0.6) for x in rows]
    model = varifold.AutoClassifier()
    model.learn_many(rows, y)
    report = model.report()
    assert report.experts["window forest"] + report.experts["stack"] > 0.8
    assert abs(sum(report.experts.values()) - 1) < 1e-9
    paused = next(note for note in report.notes if "every 8th instance" in note).partition(": ")[2]
    assert set(paused.split("; ")) <= set(report.experts), "names contain commas"
    assert next(iter(report.features)) == "f0"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"costs": {True: 8.0}},
        {"costs": {True: {False: 5.0}, False: {True: 0.5}}},
        {"objective": "balanced"},
        {"threshold": 0.1},
    ],
)
def test_the_recent_error_is_that_of_the_labels_that_are_predicted(params):
    rng = np.random.default_rng(3)
    model, recent, long, most_probable = varifold.AutoClassifier("fast", **params), 0.0, 0.0, 0.0
    for step in range(401):
        x = {f"f{j}": float(v) for j, v in enumerate(rng.normal(size=4))}
        y = bool(x["f0"] + rng.normal() > 1.2)
        wrong = float(model.predict_one(x) != y)
        chances = model.predict_proba_one(x)
        best = max(chances, key=chances.__getitem__) if chances else None
        model.learn_one(x, y)
        if step:  # before the first there is no prediction
            recent += (wrong - recent) / min(step, 50)
            long += (wrong - long) / min(step, 1000)
            most_probable += ((best != y) - most_probable) / min(step, 1000)
    assert model.report().recent["error"] == pytest.approx(recent, abs=1e-9)
    assert model.report().recent["error_long"] == pytest.approx(long, abs=1e-9)
    if params:
        assert long > most_probable + 0.02, "the stream must tell the two apart"


def test_the_report_has_no_error_before_a_prediction_was_judged():
    model = varifold.AutoClassifier()
    for _ in range(2):
        assert "no error measured yet" in str(model.report())
        model.learn_one({"x": 1.0}, "a")
    assert "error so far 0.0%" in str(model.report())


def test_the_report_says_over_how_many_instances_errors_are_averaged():
    model = varifold.AutoClassifier("fast")
    texts = {50: "; error so far ", 51: ", so far ", 1000: ", so far ", 1001: ", over the last thousand "}
    for step, text in texts.items():
        while model.steps < step:
            model.learn_one({"x": float(model.steps)}, model.steps % 2)
        assert text in str(model.report()), step


def test_the_report_counts_the_first_instances_of_labels_as_errors():
    """No label can be predicted before it was seen: five wrong of five are an error of 100 %."""
    model, wrong = varifold.AutoClassifier(), 0
    for y in ("a", "b", "c", "d", "e"):
        wrong += model.predict_one({"x": 1.0}) != y
        model.learn_one({"x": 1.0}, y)
    assert wrong == 5
    assert model.report().recent["error"] == model.report().recent["error_long"] == 1.0
    assert "error so far 100.0%" in str(model.report())


def test_the_report_gives_the_step_of_each_vanished_feature():
    model = varifold.AutoClassifier(budget="fast")
    for t in range(900):
        ends = {"first": 300, "second": 400, "third": 400}
        model.learn_one({"a": t % 7} | {name: t % 5 for name, end in ends.items() if t < end}, t % 7 > 3)
    assert "Vanished: second, third, first (last seen at steps 400, 300)." in str(model.report())


def test_the_report_lists_vanished_and_new_features_and_a_rise_of_the_error():
    rng = np.random.default_rng(5)
    model = varifold.AutoClassifier(budget="fast")
    for t in range(1290):
        signal = rng.normal()
        x = {"noise": float(rng.normal()), "old" if t < 1060 else "new": float(signal if t < 1250 else -signal)}
        model.learn_one(x, signal > 0)
        if t == 1249:
            before = str(model.report())
    assert "Vanished: old (last seen at step 1,060)." in before
    assert "New and already important: new" in before
    assert "The error rose" not in before
    assert "The error rose" in str(model.report())


def test_informative_absence_is_used():
    rng = np.random.default_rng(4)
    rows, y = [], []
    for _ in range(1500):
        sick = bool(rng.random() < 0.5)
        rows.append({f"test {j}": float(rng.normal()) for j in range(10) if rng.random() > (0.1 if sick else 0.4)})
        y.append(sick)
    guesses = varifold.AutoClassifier(budget="fast").predict_learn_many(rows, y)
    assert np.mean([g != label for g, label in zip(guesses[300:], y[300:], strict=True)]) < 0.2


def test_threshold_changes_the_prediction_and_not_the_probability():
    rng = np.random.default_rng(2)
    rows = [{"x": float(v)} for v in rng.normal(size=1000)]
    y = ["rare" if x["x"] + rng.normal() > 2 else "common" for x in rows]
    plain, eager = varifold.AutoClassifier(budget="fast"), varifold.AutoClassifier(budget="fast", threshold=0.1)
    for model in (plain, eager):
        model.learn_many(rows, y)
    assert plain.predict_proba_one({"x": 1.5}) == pytest.approx(eager.predict_proba_one({"x": 1.5}))
    counts = {name: sum(m.predict_one(x) == "rare" for x in rows) for name, m in (("plain", plain), ("eager", eager))}
    assert counts["eager"] > 1.5 * counts["plain"]
    for x in rows[:200]:
        assert (eager.predict_one(x) == "rare") == (eager.predict_proba_one(x)["rare"] > 0.1)


def test_another_number_of_experts_is_rejected():
    block = to_block([{"a": 1.0}, {"a": 2.0}], [0, 1])
    linear = Expert(name="linear", model=lambda: AROWRule(10.0))
    one = class_engine(ClassificationMixture([linear]))
    one.run(block)
    two = class_engine(ClassificationMixture([linear, Expert(name="other", model=lambda: AROWRule(1.0))]))
    with pytest.raises(ValueError, match="other experts"):
        two.fill(*one.dump())


def test_never_half_a_percent_behind_the_majority_class_on_short_streams():
    """Noise and a faint signal, half absent, three of four labels equal: without the guard the start costs .02."""
    cost = {0.0: 0.0, 1.5: 0.0}
    rounds = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = (60, 120, 200)[seed % 3]
        truth = (rng.random(rows) < 0.25).astype(int)
        values = rng.normal(size=(rows, 30))
        values[:, 0] += 0.3 * truth * (seed % 2)
        block = to_block(np.where(rng.random((rows, 30)) < 0.5, values, np.nan), truth)
        for guard in cost:
            codes, _, _ = class_engine(ClassificationMixture(classifier_experts("balanced"), guard=guard)).run(block)
            cost[guard] += float(np.sum(codes != _in_order(truth)))
            cost[guard] -= round(rows * evaluate.prequential(varifold.AutoClassifier("fast"), block).majority_cer)
        rounds += rows
    assert cost[1.5] < 0.005 * rounds
    assert cost[0.0] > 0.005 * rounds, "the streams must be hard enough to show the difference"


def test_the_guard_costs_nothing_with_balanced_or_easy_labels():
    for share, signal in ((0.5, 1.0), (0.25, 3.0)):
        wrong = {0.0: 0, 1.5: 0}
        for seed in range(3):
            rng = np.random.default_rng(seed)
            truth = (rng.random(300) < share).astype(int)
            block = to_block(rng.normal(size=(300, 6)) + signal * truth[:, None] * [1, 1, 0, 0, 0, 0], truth)
            for guard in wrong:
                codes, _, _ = class_engine(ClassificationMixture(classifier_experts("fast"), guard=guard)).run(block)
                wrong[guard] += int(np.sum(codes != _in_order(truth)))
        assert wrong[1.5] <= 1.02 * wrong[0.0] + 3, (share, wrong)


def test_the_guard_does_not_hold_before_predictions_were_judged():
    """Labels come in runs and 100 rows late: the rows before the first judged prediction are not all one label."""
    made = plant(n=3000, seed=4)
    block = to_block(made.rows()[:500], made.labels[:500])
    errors = []
    for learner in (varifold.AutoClassifier("fast"), varifold.AROW()):
        result = evaluate.prequential(learner, block, delay=100, predictions=True).predictions
        errors.append(np.mean(result.predicted[200:] != result.truth[200:]))
    assert errors[1] < 0.1
    assert errors[0] < 0.3, "0.54 when the guard counted all labels"


def test_the_first_instance_of_a_label_does_not_update_the_combination():
    rng = np.random.default_rng(0)
    engine = class_engine(ClassificationMixture(classifier_experts("fast")))
    for _ in range(40):
        engine.learn_one({"a": float(rng.normal())}, "usual")
    before = engine.dump()[2]
    engine.learn_one({"a": 9.0}, "new")
    after = engine.dump()[2]
    for name in ("model.temperature", "model.weights", "model.guard"):
        assert (before[name] == after[name]).all()


@pytest.mark.parametrize("noise", [0.05, 0.4])
@pytest.mark.parametrize("where", [0.0, 8.0])
def test_one_instance_of_a_new_label_does_not_capture_the_next_prediction(where, noise):
    """After 300 rows of two labels; the new one comes far away from them, or among them."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(310, 6))
        y = (z @ rng.normal(size=6) > 0) ^ (rng.random(310) < noise)
        rows = [{f"f{j}": v for j, v in enumerate(row) if rng.random() < 0.7} or {"f0": row[0]} for row in z.tolist()]
        model = varifold.AutoClassifier()
        model.learn_many(rows[:300], y[:300].tolist())
        new = {f"f{j}": where + float(rng.normal()) for j in range(6)}
        model.learn_one(new, "new")
        assert max(model.predict_proba_one(row)["new"] for row in rows[300:]) < 0.1
        if where:
            assert model.predict_proba_one(new)["new"] > 0.25, "it is found again where it was"


def _clusters(y, seed):
    """Return rows of 8 features, of which .3 are absent, around a centre by label."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(max(y) + 1, 8))[y] + rng.normal(size=(len(y), 8))
    return [{f"f{j}": v for j, v in enumerate(row) if rng.random() < 0.7} or {"f0": row[0]} for row in z.tolist()]


def test_the_second_instance_of_a_label_is_found_where_labels_come_in_runs():
    """26 labels of 20 rows each, sorted; judged by their counts alone, most second instances are mispredicted."""
    wrong = []
    for seed in range(5):
        y = [label for label in range(26) for _ in range(20)]
        model = varifold.AutoClassifier()
        for i, (x, label) in enumerate(zip(_clusters(y, seed), y, strict=True)):
            if i % 20 == 1 and i > 20:
                wrong.append(model.predict_one(x) != label)
            model.learn_one(x, label)
    assert np.mean(wrong) < 0.35


def test_labels_that_no_longer_come_in_runs_are_judged_by_their_counts_again():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = [label for label in range(8) for _ in range(30)] + rng.integers(8, size=310).tolist()
        rows = _clusters(y, seed)
        model = varifold.AutoClassifier()
        model.learn_many(rows[:240], y[:240])
        assert model._engine.dump()[2]["model.new_odds"].item() > 0
        model.learn_many(rows[240:540], y[240:540])
        model.learn_one({f"f{j}": float(rng.normal()) for j in range(8)}, "new")
        assert np.mean([model.predict_proba_one(row)["new"] for row in rows[540:]]) < 0.05


def test_the_most_probable_of_many_labels_stay_apart():
    """Twenty clusters: naive Bayes, which is right here, rules most labels out and is sure which of two is likelier."""
    rng = np.random.default_rng(1)
    centres, truth = rng.normal(0, 1.5, (20, 12)), rng.integers(20, size=1500)
    values = centres[truth] + rng.normal(0, 1.2, (1500, 12))
    rows = [{f"f{j}": v for j, v in enumerate(row) if rng.random() < 0.75} for row in values.tolist()]
    losses = []
    for model in (varifold.AutoClassifier(), varifold.GaussianNB()):
        _, probabilities = model.run_block(to_block(rows, truth.tolist()))
        columns = [model.classes.index(label) for label in truth.tolist()]
        losses.append(-np.log(probabilities[np.arange(1500), columns][500:]).mean())
    assert losses[0] < 1.03 * losses[1]


def test_runs_are_remembered_in_files_and_learned_alike_by_rows_and_batches(tmp_path):
    """The file is written where the second instance of a label comes next."""
    y = [label for label in range(8) for _ in range(20)]
    rows = _clusters(y, 0)
    one, many = varifold.AutoClassifier(), varifold.AutoClassifier()
    for x, label in zip(rows[:121], y[:121], strict=True):
        one.learn_one(x, label)
    many.learn_many(rows[:121], y[:121])
    many.save(tmp_path / "model.json")
    loaded = varifold.load(tmp_path / "model.json")
    for x, label in zip(rows[121:], y[121:], strict=True):
        expected = one.predict_proba_one(x)
        assert many.predict_proba_one(x) == loaded.predict_proba_one(x) == expected
        for model in (one, many, loaded):
            model.learn_one(x, label)


def test_an_exception_of_an_expert_is_raised():
    class Broken(river.base.Classifier):
        def learn_one(self, x, y):
            raise ZeroDivisionError("inside")

        def predict_proba_one(self, x):
            return {}

    experts = [Expert(name="theirs", model=lambda: PythonModel(Broken())), *classifier_experts("fast")]
    engine = class_engine(ClassificationMixture(experts))
    with pytest.raises(ZeroDivisionError, match="inside"):
        engine.learn_one({"a": 1.0}, 1)


def _in_order(codes):
    """Renumber codes in the order of their first occurrence, as an engine numbers its labels."""
    order = {c: i for i, c in enumerate(dict.fromkeys(codes.tolist()))}
    return np.array([order[c] for c in codes.tolist()])


def test_a_hundred_thousand_features_disable_expensive_experts():
    rng = np.random.default_rng(0)
    rows, y = [], []
    for t in range(3000):
        label = bool(t % 2)
        rows.append({int(i): 1.0 for i in rng.integers(0, 100_000, size=40)} | {"sign": float(rng.normal() + label)})
        y.append(label)
    model = varifold.AutoClassifier()
    guesses = model.predict_learn_many(rows, y)
    notes = " ".join(model.report().notes)
    for name in ("latent", "Gaussian"):
        assert f"{name}: disabled" in notes
    assert "their absence is not looked at" in notes
    assert np.mean([g != label for g, label in zip(guesses[1000:], y[1000:], strict=True)]) < 0.45
    kept = pickle.loads(pickle.dumps(model))
    assert kept.predict_proba_many(rows[:5]) == model.predict_proba_many(rows[:5])


def test_predicting_before_learning_changes_nothing():
    """Predictions are reused for learning, but only for the same instance."""
    rows, y = stream(700, ("a", "b", "c"))
    predicting, learning, block = (varifold.AutoClassifier() for _ in range(3))
    for t, x in enumerate(rows):
        if t % 3:
            predicting.predict_proba_one(x if t % 2 else rows[t - 1])
        if t % 5 == 1:
            predicting.explain_one(x)
        predicting.learn_one(x, y[t])
        learning.learn_one(x, y[t])
    block.predict_learn_many(rows, y)
    expected = learning.predict_proba_many(rows[:50])
    assert predicting.predict_proba_many(rows[:50]) == expected
    assert block.predict_proba_many(rows[:50]) == expected

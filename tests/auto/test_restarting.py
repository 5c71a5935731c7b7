"""Experts that restart after drift: compared with a plain oracle, on recurring concepts, and in files."""

import random

import pytest

from tests.engines import class_engine
from tests.oracles.restarting import Restarting
from varifold import AutoClassifier
from varifold.auto._restarting import RestartingModel
from varifold.linear._additive import AdditiveRule
from varifold.linear._arow import AROWRule
from varifold.naive_bayes._frequency import FrequencyModel
from varifold.report.auto import draw_report


class Counts:
    """Predict the most frequent label; of equally frequent ones the first."""

    def __init__(self, labels):
        self.counts = dict.fromkeys(labels, 0)

    def predict(self, x):
        return max(self.counts, key=lambda y: self.counts[y])

    def learn(self, x, y):
        wrong = self.predict(x) != y
        self.counts[y] += 1
        return wrong


def phases(n, seed, labels="abc"):
    """Labels of which another one is the most frequent in each phase; phases differ in length and recur."""
    rng = random.Random(seed)
    common, left = 0, 0
    yield from labels
    for _ in range(n):
        if left == 0:
            common, left = rng.randrange(len(labels)), rng.randrange(20, 700)
        left -= 1
        yield labels[common] if rng.random() < 0.7 else rng.choice(labels)


@pytest.mark.parametrize("seed", range(6))
def test_copies_follow_the_oracle(seed):
    engine = class_engine(RestartingModel(FrequencyModel))
    oracle = Restarting(lambda: Counts("abc"))
    for step, y in enumerate(phases(4000, seed)):
        if step >= 3:
            assert engine.predict_one({"f": 1.0}) == oracle.predict(None), step
        engine.learn_one({"f": 1.0}, y)
        if step < 3:
            oracle.active.learn(None, y)  # errors count from the second label on
            if step:
                oracle.errors.update(1.0)
        else:
            oracle.learn(None, y, step)
    steps = [
        (*(c[name] for name in ("step", "since")), bool(c["revived"]), c["instances"])
        for c in engine.model.restart_records()
    ]
    assert steps == [restart[:4] for restart in oracle.restarts[-32:]]
    errors = [[c[name] for name in ("before", "error", "successor")] for c in engine.model.restart_records()]
    assert errors == [pytest.approx(restart[4:]) for restart in oracle.restarts[-32:]]
    assert any(restart[2] for restart in oracle.restarts)
    assert not all(restart[2] for restart in oracle.restarts)


def flipping(n, every, seed=0):
    """A line whose labels are exchanged every `every` rows."""
    rng = random.Random(seed)
    for t in range(n):
        x = {f"f{i}": rng.gauss(0.0, 1.0) for i in range(3)}
        yield x, (x["f0"] + x["f1"] > 0) != (t // every % 2 == 1)


def errors(engine, rows):
    wrong = []
    for x, y in rows:
        wrong.append(engine.predict_one(x) != y)
        engine.learn_one(x, y)
    return wrong


@pytest.mark.parametrize("make", [lambda: AROWRule(10.0), lambda: AdditiveRule(30.0, 20_000)])
def test_a_recurring_concept_is_remembered(make):
    rows = list(flipping(3000, 500))
    engine, plain = class_engine(RestartingModel(make)), class_engine(make())
    wrong = errors(engine, rows)
    records = engine.model.restart_records()
    assert [r["revived"] for r in records] == [0, 1, 1, 1, 1]
    assert all(r["step"] - 1 - 500 * (i + 1) < 40 for i, r in enumerate(records))
    assert sum(wrong) < 0.5 * sum(errors(plain, rows))
    assert sum(wrong[1540:2000]) < 25, "the kept copy must be as good as it was"


def test_a_stable_stream_restarts_nothing():
    rng = random.Random(3)
    rows = [(x, y != (rng.random() < 0.1)) for x, y in flipping(5000, 10**9)]
    engine, plain = class_engine(RestartingModel(lambda: AROWRule(10.0))), class_engine(AROWRule(10.0))
    assert errors(engine, rows) == errors(plain, rows)
    assert engine.model.restarts == 0


@pytest.mark.parametrize("stop", range(500, 560, 7))
def test_a_loaded_model_continues_a_trial_to_the_bit(stop):
    rows = list(flipping(1300, 500, seed=1))
    model = AutoClassifier("fast")
    for x, y in rows[:stop]:
        model.learn_one(x, y)
    again = AutoClassifier.from_bytes(model.to_bytes())
    for x, y in rows[stop:]:
        assert again.predict_proba_one(x) == model.predict_proba_one(x)
        again.learn_one(x, y)
        model.learn_one(x, y)
    assert again.to_bytes() == model.to_bytes()
    assert any(drift.what == "revived" for drift in again.report().drifts)


def test_blocks_and_dicts_leave_the_same_state_through_restarts():
    rows = list(flipping(1300, 500, seed=2))
    one, many = AutoClassifier("fast"), AutoClassifier("fast")
    for x, y in rows:
        one.learn_one(x, y)
    many.learn_many([x for x, _ in rows], [y for _, y in rows])
    assert one.to_bytes() == many.to_bytes()


def test_copies_follow_evictions_and_new_labels():
    rng = random.Random(0)
    model = AutoClassifier("fast", max_features=6)
    for t in range(1500):
        y = rng.choice("ab" if t < 700 else "abc")
        sign = {"a": -1.0, "b": 1.0, "c": 3.0}[y] * (-1.0 if t // 400 % 2 else 1.0)
        model.learn_one({f"f{(t // 50 + i) % 11}": rng.gauss(sign, 1.0) for i in range(4)}, y)
    again = AutoClassifier.from_bytes(model.to_bytes())
    assert again.predict_proba_one({"f1": 1.0}) == model.predict_proba_one({"f1": 1.0})
    assert set(model.report().experts) >= {"linear", "linear, recent"}


def test_the_report_lists_restarts_with_their_evidence(tmp_path):
    model = AutoClassifier("fast")
    for x, y in flipping(1500, 700):
        model.learn_one(x, y)
    report = model.report()
    rises = [drift for drift in report.drifts if drift.what == "error rose"]
    assert [abs(drift.since - 701) < 30 or abs(drift.since - 1401) < 30 for drift in rises] == [True] * len(rises)
    assert rises[0].before < 0.1 < 0.4 < rises[0].error
    linear = [drift for drift in report.drifts if drift.expert == "linear"]
    assert [drift.what for drift in linear] == ["restarted", "revived"]
    assert all(drift.successor < drift.error and drift.since <= drift.step for drift in linear)
    assert "linear (error" in str(report)
    assert "The error rose from" in str(report)
    draw_report(report, tmp_path / "drifts.svg")
    assert "expert revived" in (tmp_path / "drifts.svg").read_text()


@pytest.mark.parametrize(
    ("name", "corrupt"),
    [
        ("role", lambda a: a * 0),
        ("trial.counters", lambda a: a + 7),
        ("detector", lambda a: a[:-1]),
        ("trial.scores", lambda a: a[:2]),
        ("restarts.steps", lambda a: -a - 1),
    ],
)
def test_files_with_impossible_copies_are_rejected(name, corrupt):
    engine = class_engine(RestartingModel(lambda: AROWRule(10.0)))
    errors(engine, flipping(1200, 500))
    names, labels, arrays = engine.dump()
    arrays[f"model.{name}"] = corrupt(arrays[f"model.{name}"])
    with pytest.raises((ValueError, IndexError)):
        class_engine(RestartingModel(lambda: AROWRule(10.0))).fill(names, labels, arrays)


def test_a_new_label_next_to_a_new_copy_has_memory_in_it() -> None:
    """The row after an alarm makes a copy of an expert; if the row has a new label, the copy needs memory for it."""
    rng = random.Random(0)
    rows, labels = [], []
    for i in range(506):
        c = rng.randrange(4)
        rows.append({f"f{j}": float((c + (i >= 500)) % 4 == j) + rng.gauss(0.0, 0.2) for j in range(4)})
        labels.append(c)
    for n in (503, 504, 505, 506):
        stream = [*rows[:n], rows[0], *rows[:60]]
        targets = [*labels[:n], "new", *("new" if i % 2 else 0 for i in range(60))]
        one, many = AutoClassifier(), AutoClassifier()
        for x, y in zip(stream, targets, strict=True):
            one.learn_one(x, y)
        many.learn_many(stream, targets)
        assert one.to_bytes() == many.to_bytes(), n

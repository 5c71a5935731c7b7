"""Memos: a truth that comes late judges the prediction that was issued."""

import math

import numpy as np
import pytest

import varifold
from varifold.base import to_block
from varifold.checks.material import state
from varifold.errors import DataError
from varifold.evaluate import prequential

METHODS = {
    "auto": lambda: varifold.AutoClassifier(coverages=(0.9,)),
    "arow": lambda: varifold.AROW(coverages=(0.8, 0.9)),
    "gaussiannb": lambda: varifold.GaussianNB(),
    "arow without memo": lambda: varifold.AROW(calibrate=False),
    "autoregressor": lambda: varifold.AutoRegressor(coverages=(0.9,)),
    "arowregressor": lambda: varifold.AROWRegressor(coverages=(0.9,)),
    "per key": lambda: varifold.PerKey("arow", key="key"),
}


def rows(n, numeric=False, seed=0):
    """Make a stream of three labels, the third of which first comes at row 100, or of numbers."""
    rng = np.random.default_rng(seed)
    made = []
    for t in range(n):
        x = {f"f{i}": float(v) for i, v in enumerate(rng.normal(size=4)) if rng.random() < 0.8}
        total = sum(x.values()) + 0.3 * float(rng.normal())
        y = total if numeric else "c" if t >= 100 and total > 1.5 else "a" if total > 0 else "b"
        made.append(({**x, "key": f"k{t % 2}"}, y))
    return made


def of(name):
    return rows(300, name.endswith("regressor"))


def bytes_of(learner):
    return learner.to_bytes()


@pytest.mark.parametrize("name", METHODS)
def test_a_memo_that_is_used_at_once_changes_nothing(name):
    plain, with_memos = METHODS[name](), METHODS[name]()
    for x, y in of(name):
        plain.learn_one(x, y)
        before = bytes_of(with_memos) if len(x) == 5 else None
        memo = with_memos.memo_one(x)
        assert before is None or bytes_of(with_memos) == before
        with_memos.learn_one(x, y, memo=memo)
    assert bytes_of(plain) == bytes_of(with_memos)


@pytest.mark.parametrize("name", METHODS)
def test_blocks_and_dicts_lead_to_the_same_state(name):
    """With labels 12 rows late, also where an instance is predicted in one block and learned in the next."""
    made, late = of(name), 12
    one, many, evaluated = METHODS[name](), METHODS[name](), METHODS[name]()
    memos, expected = [], []
    for t, (x, _) in enumerate(made):
        expected.append(one.predict_one(x))
        memos.append(one.memo_one(x))
        if t >= late:
            one.learn_one(*made[t - late], memo=memos[t - late])
    for t in range(len(made) - late, len(made)):
        one.learn_one(*made[t], memo=memos[t])
    block = to_block([x for x, _ in made], [y for _, y in made], numeric=name.endswith("regressor"))
    end = len(made)
    plan = [s for t in range(end + late) for s in [t + 1] * (t < end) + [late - t - 1] * (t >= late)]
    many.run_block(block, np.array(plan), [None] * len(made))
    assert bytes_of(one) == bytes_of(many)
    result = prequential(evaluated, iter(made[:150] + made[150:]), delay=late, predictions=True)
    assert bytes_of(evaluated) == bytes_of(one)
    assert result.instances == len(made)


def test_judging_what_was_issued_matters():
    """Twenty rows in a row share a random label, which comes when they are over: nothing can be predicted."""
    rng = np.random.default_rng(2)
    made = []
    for _ in range(120):
        place, y = rng.normal(size=3), bool(rng.random() < 0.3)
        made += [({f"f{i}": float(v + 0.05 * rng.normal()) for i, v in enumerate(place)}, y) for _ in range(20)]
    block = to_block([x for x, _ in made], [y for _, y in made])
    late = 20
    plan = [s for t in range(len(made)) for s in [t + 1] + [late - t - 1] * (t >= late)]
    losses = {}
    for memos in (None, [None] * len(made)):
        learner = varifold.AutoClassifier()
        _, chances = learner.run_block(block, np.array(plan), memos)
        of_truth = [chances[t, learner.classes.index(made[t][1])] for t in range(400, len(made))]
        losses[memos is None] = -np.mean(np.log(np.maximum(of_truth, 1e-9)))
    base_rate = -(0.3 * math.log(0.3) + 0.7 * math.log(0.7))
    assert losses[False] < 1.3 * base_rate < losses[True]


@pytest.mark.parametrize("late", [0, 20])
def test_intervals_hold_the_share_of_late_targets(late):
    rng = np.random.default_rng(4)
    made, level = [], 0.0
    for _ in range(3000):
        level = 0.95 * level + float(rng.normal())
        a, b = rng.normal(size=2)
        made.append(({"a": float(a), "b": float(b)}, level + 3 * float(a)))
    block = to_block([x for x, _ in made], [y for _, y in made], numeric=True)
    plan = [s for t in range(len(made)) for s in [t + 1] + [late - t - 1] * (t >= late)]
    _, bounds = varifold.AutoRegressor(coverages=(0.9,)).run_intervals(block, np.array(plan), [None] * len(made))
    y = np.array([y for _, y in made])
    assert 0.87 <= ((bounds[:, 0, 0] <= y) & (y <= bounds[:, 0, 1]))[300:].mean() <= 0.93


@pytest.mark.parametrize(
    ("memo", "message"),
    [
        ("text", "the memo is str; pass the bytes that memo_one"),
        (b"1234567", "the memo of 7 bytes was not made by this learner"),
        (np.array([1.0, 2.0]).tobytes(), "the memo of 16 bytes was not made by this learner"),
        (np.full(83, np.nan).tobytes(), "was not made by this learner"),
    ],
)
def test_a_memo_of_something_else_is_rejected_and_nothing_is_learned(memo, message):
    learner = varifold.AutoClassifier()
    for x, y in rows(50):
        learner.learn_one(x, y)
    before = bytes_of(learner)
    with pytest.raises(DataError, match=message):
        learner.learn_one({"f0": 1.0}, "a", memo=memo)
    assert bytes_of(learner) == before
    assert not learner.memo_fits({}, memo)


def test_memos_for_another_number_of_rows_are_rejected():
    block = to_block([{"a": 1.0}, {"a": 2.0}], ["x", "y"])
    learner = varifold.AROW()
    with pytest.raises(DataError, match="1 memos for 2 rows; pass one per row"):
        learner.run_block(block, np.array([1, -1]), [None])
    assert learner.steps == 0


def test_numbers_within_a_memo_cannot_do_harm():
    """A memo of the right size with any finite numbers leaves a learner that predicts and can be saved."""
    rng = np.random.default_rng(3)
    for make, numeric in ((METHODS["auto"], False), (METHODS["autoregressor"], True)):
        learner = make()
        for x, y in rows(60, numeric):
            learner.learn_one(x, y)
        for x, y in rows(60, numeric, seed=1):
            numbers = np.frombuffer(learner.memo_one(x)).copy()
            at = rng.integers(3, len(numbers), size=5)  # after number and checksum of the labels
            numbers[at] = rng.choice([0.0, -1.0, 1e300, -1e300, 7.0, 1e-300], size=5)
            learner.learn_one(x, y, memo=numbers.tobytes())
        again = type(learner).from_bytes(bytes_of(learner))
        for x, _ in rows(20, numeric, seed=2):
            assert again.predict_one(x) == learner.predict_one(x)
            assert numeric is False or math.isfinite(learner.predict_one(x))


def test_a_label_that_was_new_in_between_is_learned():
    learner = varifold.AutoClassifier()
    for x, y in rows(90):
        learner.learn_one(x, y)
    memo = learner.memo_one({"f0": 1.0})
    learner.learn_one({"f0": 5.0}, "new")
    learner.learn_one({"f0": 1.0}, "new", memo=memo)
    assert learner.memo_fits({}, memo)
    assert set(learner.predict_proba_one({"f0": 1.0})) == {"a", "b", "new"}


@pytest.mark.parametrize("classes", [-5.0, -1.0, 0.0, 1.0, 1.5, 3.0, 4.0, 1e6, 1e300])
@pytest.mark.parametrize("coverages", [(), (0.9,)])
def test_a_memo_of_another_number_of_labels_is_rejected(classes, coverages):
    """Its length is right: the number alone must not lead outside of the arrays."""
    learner = varifold.AutoClassifier(coverages=coverages)
    for x, y in rows(90):
        learner.learn_one(x, y)
    numbers = np.frombuffer(learner.memo_one({"f0": 1.0})).copy()
    numbers[0] = classes
    with pytest.raises(DataError, match="was not made by this learner"):
        learner.learn_one({"f0": 1.0}, "a", memo=numbers.tobytes())


def test_a_memo_of_labels_in_another_order_is_rejected():
    made = rows(60)
    one, other = varifold.AutoClassifier(), varifold.AutoClassifier()
    for x, y in made:
        one.learn_one(x, y)
        other.learn_one(x, {"a": "b", "b": "a"}[y])
    memo = one.memo_one({"f0": 1.0})
    assert one.memo_fits({}, memo)
    assert varifold.from_bytes(one.to_bytes()).memo_fits({}, memo)
    assert not other.memo_fits({}, memo)


@pytest.mark.parametrize("name", ["auto", "autoregressor"])
def test_what_was_predicted_before_any_truth_is_not_judged(name):
    """A backlog of instances is predicted first: learning it with memos must not weigh the experts by hindsight."""
    learner, made = METHODS[name](), of(name)[:100]
    memos = [learner.memo_one(x) for x, _ in made]
    before = learner.report().experts
    for (x, y), memo in zip(made, memos, strict=True):
        learner.learn_one(x, y, memo=memo)
    assert learner.report().experts == pytest.approx(before)


def test_a_bad_memo_of_a_block_is_found_before_anything_is_learned():
    block = to_block([{"a": 1.0}, {"a": 2.0}], ["x", "y"])
    learner, memos = varifold.AROW(), [None, b"12345678"]
    with pytest.raises(DataError, match="was not made by this learner"):
        learner.run_block(block, np.array([-1, -2]), memos)
    assert (learner.steps, memos) == (0, [None, b"12345678"])


def test_learning_without_the_label_leaves_the_memo_for_it():
    made = rows(60)
    block = to_block([x for x, _ in made], [y for _, y in made])
    learner = varifold.AutoClassifier(unlabelled="learn")
    memos = [None] * 60
    learner.run_block(block, np.array([*range(-40, 0), 41, 42, -(60 + 41)]), memos)
    assert memos[40]
    assert memos[41]
    assert learner.memo_fits({}, memos[40])


@pytest.mark.parametrize("name", ["auto", "arow", "arowregressor"])
def test_a_memo_is_for_its_block_alone(name):
    """A block without memos judges the predictions that are made in it."""
    made = of(name)[:120]
    one, other = METHODS[name](), METHODS[name]()
    numeric = name.endswith("regressor")
    first = to_block([x for x, _ in made[:60]], [y for _, y in made[:60]], numeric=numeric)
    schedule = np.array([step for i in range(60) for step in (i + 1, -(i + 1))])
    one.run_block(first, schedule, [None] * 60)
    for x, y in made[:60]:
        other.learn_one(x, y, memo=other.memo_one(x))
    one.learn_many([x for x, _ in made[60:]], [y for _, y in made[60:]])
    for x, y in made[60:]:
        other.learn_one(x, y)
    assert state(one) == state(other)

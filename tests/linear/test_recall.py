"""The rule that sees absence and recalls what columns read before, against its definition in plain Python."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.engines import class_engine
from tests.oracles.harness import follow, mixed_stream
from tests.oracles.recall import Recall
from varifold.base import to_block
from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.linear._recall import RecallRule


@declared
class Recalling(VaryingClassifier):
    """The rule as a learner of its own."""

    r: float = 10.0
    binned: bool = False
    memory: float = 0.0
    most: int = 64

    def _model(self) -> RecallRule:
        return RecallRule(self.r, self.binned, self.memory, self.most)


FORMS = [{}, {"binned": True}, {"binned": True, "memory": 40.0, "r": 30.0}, {"memory": 20.0}]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("labels", "weights", "strings"), [(2, False, False), (2, True, True), (3, False, True)])
def test_follows_the_oracle(form, labels, weights, strings):
    rows = mixed_stream(260, labels=labels, weights=weights, strings=strings, seed=3)
    follow(Recalling(**form), Recall(**{"r": 10.0, **form}), rows, 1e-12)


@pytest.mark.parametrize("form", FORMS[:2])
def test_instances_without_a_label_are_recalled(form):
    rows = mixed_stream(400, labels=3, weights=False, strings=True, seed=6)
    few = [(x, y if t % 3 == 0 else None, w) for t, (x, y, w) in enumerate(rows)]
    follow(Recalling(**form), Recall(**{"r": 10.0, **form}), few, 1e-12)


@pytest.mark.parametrize("form", FORMS[:2])
def test_only_the_columns_seen_last_are_recalled(form):
    rows = mixed_stream(260, labels=2, weights=False, strings=False, seed=4)
    follow(Recalling(**form, most=3), Recall(**{"r": 10.0, **form}, most=3), rows, 1e-12)
    with pytest.raises(AssertionError):
        follow(Recalling(**form, most=4), Recall(**{"r": 10.0, **form}, most=3), rows, 1e-12)


@pytest.mark.parametrize("strings", [False, True])
def test_an_evicted_column_is_recalled_no_more(strings):
    rows = mixed_stream(260, labels=2, weights=False, strings=strings, seed=5)
    follow(Recalling(max_features=6), Recall(10.0), rows, 1e-12)


def outage(n=1200, seed=0):
    """Two sensors of one slow driver; one is silent in every other stretch of 100 rows and reads high before."""
    rng = np.random.default_rng(seed)
    driver, rows, y = 0.0, [], []
    for t in range(n):
        driver = 0.98 * driver + 0.2 * rng.normal()
        x = {"steady": driver + rng.normal(), "failing": 5.0 + driver + 0.1 * rng.normal()}
        if t // 100 % 2:
            del x["failing"]
        rows.append(x)
        y.append(bool(driver > 0))
    return rows, y


def test_what_a_silent_sensor_read_before_helps():
    rows, y = outage()
    wrong = {}
    for most in (0, 64):
        codes, _, _ = class_engine(RecallRule(10.0, most=most)).run(to_block(rows, y))
        order = list(dict.fromkeys(y))
        wrong[most] = np.mean([order[c] != label for c, label in zip(codes, y, strict=True)])
    assert wrong[64] < 0.8 * wrong[0]


def test_both_apis_and_copies_agree_to_the_bit():
    stream = mixed_stream(200, labels=3, weights=True, strings=True, seed=6)
    rows, y, w = zip(*[row for row in stream if row[2] > 0], strict=True)
    one, many = Recalling(binned=True, most=4), Recalling(binned=True, most=4)
    for t, (x, label, weight) in enumerate(zip(rows, y, w, strict=True)):
        one.learn_one(x, label, weight)
        if t == 90:
            one = pickle.loads(pickle.dumps(one))
    many.learn_many(rows, y, w)
    assert one.predict_proba_many(rows[:40]) == many.predict_proba_many(rows[:40])


def test_the_parts_of_an_explanation_sum_to_the_margin():
    rows, y = outage(300)
    model = Recalling(binned=True)
    model.learn_many(rows, y)
    for x in (rows[0], rows[-1], {"steady": 1.0}, {"failing": 2.0}):
        parts = model.explain_one(x)
        assert set(parts) >= {"steady", "failing"}
        assert sum(parts.values()) == pytest.approx(model.margins_one(x)[model.predict_one(x)], abs=1e-12)

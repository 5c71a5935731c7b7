"""Vote: the mean of its learners' probabilities; a learner like any other, in files too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from river import naive_bayes

import varifold
from varifold import AROW, OLVF, GaussianNB, TailDetector, Vote, checks
from varifold.base import files
from varifold.base.shares import share_of
from varifold.checks.material import learn, stream
from varifold.errors import DataError, FeatureNameError, ModelFileError, ParameterError, VarifoldError


@pytest.mark.parametrize("learner", [Vote([AROW(), AROW(r=3.0), GaussianNB()]), Vote([varifold.ORF3V(seed=1), AROW()])])
def test_it_keeps_the_contract(learner: Vote) -> None:
    checks.check_learner(learner)


def test_the_prediction_is_the_mean_of_those_that_have_learned() -> None:
    one, other = learn(AROW(), stream(80)), learn(GaussianNB(), stream(80, seed=2, labels=("yes", "maybe")))
    vote = Vote([one, other, AROW()])
    assert vote.classes == [*one.classes, "maybe"]
    for x, _ in stream(20, seed=3):
        a, b = one.predict_proba_one(x), other.predict_proba_one(x)
        expected = {label: (a.get(label, 0.0) + b.get(label, 0.0)) / 2 for label in vote.classes}
        assert vote.predict_proba_one(x) == expected
        assert vote.predict_one(x) == max(expected, key=expected.__getitem__)


def test_each_instance_is_learned_by_one() -> None:
    vote = learn(Vote([AROW() for _ in range(4)]), stream(400))
    assert sum(learner.steps for learner in vote.learners) == vote.steps == 400
    assert all(70 <= learner.steps <= 130 for learner in vote.learners)


def test_shares_are_even_and_the_same_for_one_and_for_many() -> None:
    many = share_of(np.arange(10_000, dtype=np.uint64), 8)
    assert many[:50].tolist() == [share_of(number, 8) for number in range(50)]
    assert np.bincount(many.astype(int)).min() > 1_100
    alternating = many[::2].astype(int)
    assert np.bincount(alternating, minlength=8).min() > 500


def test_a_saved_vote_loads_with_varifold_load(tmp_path: Any) -> None:
    vote = learn(Vote([AROW(), GaussianNB()]), stream(60, labels=("a", "b", "c")))
    vote.reading = {"target": "label"}
    vote.save(tmp_path / "vote")
    again = varifold.load(tmp_path / "vote")
    assert isinstance(again, Vote)
    assert again.reading == {"target": "label"}
    assert [type(learner) for learner in again.learners] == [AROW, GaussianNB]
    learn(vote, stream(60, seed=3))
    learn(again, stream(60, seed=3))
    assert again.to_bytes() == vote.to_bytes()


def test_learners_of_others_vote_but_are_not_saved() -> None:
    vote = Vote([naive_bayes.GaussianNB(), AROW()])
    for t in range(60):
        vote.learn_one({"f": float(t % 2) + 0.1 * math.sin(t)}, bool(t % 2))
    assert vote.predict_many([{"f": 1.0}, {"f": 0.0}]) == [True, False]
    with pytest.raises(ModelFileError, match="holds a GaussianNB, which a model file cannot hold"):
        vote.to_bytes()


def test_many_without_labels_are_rejected() -> None:
    vote = Vote([AROW()])
    for call in (vote.learn_many, vote.predict_learn_many):
        with pytest.raises(DataError, match="y is missing"):
            call([{"f": 1.0}])
    vote.learn_many([{"f": 1.0}, {"f": 2.0}], [True, None])
    assert vote.steps == 1


def test_what_cannot_vote_is_rejected() -> None:
    arow = AROW()
    for given, message in (
        ([], "list of classifiers, each one once. Got none"),
        (3, "Got a int instead"),
        ([AROW], "Got the class AROW in it"),
        ([TailDetector()], "Got a TailDetector in it"),
        ([arow, arow], "Got one of them twice"),
    ):
        with pytest.raises(ParameterError, match=message):
            Vote(given)


def test_damaged_votes_are_rejected() -> None:
    vote = learn(Vote([AROW(), GaussianNB()]), stream(30))
    header, arrays = files.decode(vote.to_bytes(), "test")
    swapped = {**arrays, "learners.offsets": arrays["learners.offsets"][::-1].copy()}
    for bad_header, bad_arrays in (
        ({**header, "labels": ["other"]}, arrays),
        (header, swapped),
        (header, {**arrays, "learners": arrays["learners"][:-5].copy()}),
        ({**header, "learned": "x"}, arrays),
    ):
        with pytest.raises(ModelFileError):
            varifold.from_bytes(files.encode(bad_header, bad_arrays))
    with pytest.raises(ModelFileError, match="holds a AROW, not a Vote"):
        Vote.from_bytes(AROW().to_bytes())


def test_numpy_labels_are_kept_as_plain_ones() -> None:
    for learner in (Vote([AROW(), AROW()]), varifold.PerKey(AROW(), key="k")):
        for step in range(20):
            learner.learn_one({"k": "a", "x": float(step % 2)}, np.int64(step % 2))
        assert [type(label) for label in learner.classes] == [int, int]
        assert varifold.from_bytes(learner.to_bytes()).classes == learner.classes


def test_steps_with_a_learner_that_counts_none() -> None:
    vote = Vote([AROW(), naive_bayes.GaussianNB()])
    vote.learn_one({"x": 1.0}, True)
    assert vote.steps in (0, 1)


@pytest.mark.parametrize("call", ["learn_many", "predict_learn_many"])
def test_a_rejected_block_changes_nothing(call: str) -> None:
    vote = Vote([AROW(), OLVF()])
    for step in range(4):
        vote.learn_one({"a=b": 1.0, "c": step}, "p")
    before = vote.to_bytes()
    with pytest.raises(FeatureNameError, match="a=b"):
        getattr(vote, call)([{"c": 1.0}, {"a": "b"}], ["p", "q"])
    assert vote.to_bytes() == before


@pytest.mark.parametrize("label", [None, float("nan")])
def test_an_instance_without_a_label_is_ignored(label: Any) -> None:
    """The naive Bayes learner alone would learn from its features."""
    model = Vote([GaussianNB(), GaussianNB()])
    model.learn_one({"f": 1.0}, "a")
    before = model.to_bytes()
    model.learn_one({"f": 2.0}, label)
    model.learn_many([{"f": 2.0}], [label])
    with pytest.raises(VarifoldError):
        model.learn_one({"f": [2.0]}, label)
    assert model.to_bytes() == before


def test_what_is_no_list_of_learners_is_rejected() -> None:
    with pytest.raises(ParameterError, match="must be a list of classifiers"):
        Vote(5)  # type: ignore[arg-type]

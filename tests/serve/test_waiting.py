"""Instances that wait for their label: bounded by count and age."""

from __future__ import annotations

from typing import Any

import pytest

import varifold
from varifold.base.json_text import write_json
from varifold.serve.core import learners
from varifold.serve.core.errors import ConflictError, ExpiredError, NotFoundError, RejectedError
from varifold.serve.core.state import Limits, ModelState


def apply(state: ModelState, body: dict[str, Any]) -> dict[str, Any]:
    return state.apply(body, write_json(body))


def test_waiting_instances_are_bounded_by_count_and_age() -> None:
    state = ModelState("m", learners.make("arow", {}), Limits(waiting=3, waiting_ms=1_000), "abcdef")
    ids = []
    for i in range(5):
        state.tick(10 * i)
        ids.append(apply(state, {"x": {"a": float(i)}, "keep": True})["id"])
    assert len(state.waiting) == 3
    for given, error in ((ids[0], ExpiredError), ("m.abcdef.6", NotFoundError), ("m.abcdef.0", NotFoundError)):
        with pytest.raises(error):
            apply(state, {"id": given, "y": "up"})
    apply(state, {"id": ids[4], "y": "up"})
    with pytest.raises(ConflictError):
        apply(state, {"id": ids[4], "y": "up"})
    state.tick(2_000)
    apply(state, {"x": {"a": 1.0}, "keep": True})
    assert len(state.waiting) == 1
    with pytest.raises(ExpiredError):
        apply(state, {"id": ids[3], "y": "up"})


@pytest.mark.parametrize("x", [{}, {"x": {"a": 1.0}}], ids=["label", "instance"])
def test_a_label_that_comes_too_late_is_not_learned(x: dict[str, Any]) -> None:
    state = ModelState("m", learners.make("arow", {}), Limits(waiting_ms=1_000))
    for given in ("early", "late"):
        apply(state, {"x": {"a": 1.0}, "keep": True, "id": given})
    state.tick(1_000)
    apply(state, {**x, "y": "up", "id": "early"})
    assert state.learner.steps == 1
    state.tick(1_001)
    with pytest.raises(ExpiredError, match="'late' waits no longer"):
        apply(state, {**x, "y": "up", "id": "late"})
    assert (state.learner.steps, len(state.waiting)) == (1, 0)


def rows(n: int) -> list[tuple[dict[str, Any], str]]:
    """Make instances in runs of ten of the same label, so that what is learned in between tells the label."""
    return [({"a": float(i % 7), "b": float(i // 10 % 3)}, "up" if i // 10 % 2 else "down") for i in range(n)]


@pytest.mark.parametrize("method", ["auto", "arow"])
def test_a_late_label_judges_the_prediction_that_was_sent(method: str) -> None:
    """The server keeps the memo of a prediction, learns with it, and learns the same when the changes are replayed."""
    state, again = (ModelState("m", learners.make(method, {}), Limits(), "abcdef") for _ in range(2))
    library = learners.make(method, {})
    stored: list[bytes] = []
    for x, y in rows(60):
        apply(state, {"x": x, "y": y})
        library.learn_one(x, y)
        again._replay(0, write_json({"x": x, "y": y}))
    kept = []
    for x, y in rows(30):
        kept.append((apply(state, {"x": x, "keep": True})["id"], library.memo_one(x), x, y))
    state._unwritten.changes.clear()
    for given, memo, x, y in kept:
        apply(state, {"id": given, "y": y})
        library.learn_one(x, y, memo=memo)
    for change in state._unwritten.changes:
        stored += change.rows
    assert learners.digest(state.learner) == learners.digest(library)
    for data in stored:
        again._replay(0, data)
    assert learners.digest(again.learner) == learners.digest(library)


def test_a_label_is_learned_though_the_learner_that_predicted_was_replaced() -> None:
    state = ModelState("m", learners.make("auto", {}), Limits(), "abcdef")
    for x, y in rows(40):
        apply(state, {"x": x, "y": y})
    kept = apply(state, {"x": {"a": 1.0}, "keep": True})["id"]
    state.restore(learners.to_bytes(learners.make("arow", {})))
    apply(state, {"id": kept, "y": "up"})
    assert state.learner.steps == 1


def test_labels_of_instances_that_another_learner_predicted_do_no_harm() -> None:
    """The restored learner has fewer labels, and memos of the same length."""
    state = ModelState("m", learners.make("auto", {"budget": "fast", "coverages": [0.9]}), Limits(), "abcdef")
    for i in range(70):
        apply(state, {"x": {"a": float(i % 7)}, "y": f"label {i % 7}"})
    kept = [apply(state, {"x": {"a": 1.0}, "keep": True})["id"] for _ in range(20)]
    other = learners.make("auto", {"coverages": [0.9]})
    for i in range(30):
        other.learn_one({"a": float(i % 3)}, f"label {i % 3}")
    state.restore(learners.to_bytes(other))
    for given in kept:
        apply(state, {"id": given, "y": "label 1"})
    assert state.learner.steps == 50


@pytest.mark.parametrize(
    ("method", "key", "kind"),
    [("arowregressor", None, "regressor"), ("taildetector", None, "detector"), ("arow", "k", "classifier by key")],
)
def test_a_file_of_another_kind_is_not_restored(method: str, key: str | None, kind: str) -> None:
    state = ModelState("m", learners.make("arow", {}), Limits(), "abcdef")
    apply(state, {"x": {"a": 1.0}, "y": "up"})
    before = learners.digest(state.learner)
    with pytest.raises(RejectedError, match=f"the file holds a {kind}, and the model 'm' is a classifier"):
        state.restore(learners.to_bytes(learners.make(method, {}, key)))
    assert (learners.digest(state.learner), state.seq) == (before, 1)


def test_a_label_for_a_forgotten_key_of_a_detector_waits_no_longer() -> None:
    learner = varifold.PerKeyDetector(varifold.AutoDetector(), key="device", max_keys=2)
    state = ModelState("m", learner, Limits())
    for i in range(9):
        apply(state, {"x": {"f": float(i % 3)}, "key": "a"})
    kept = apply(state, {"x": {"f": 9.0}, "key": "a", "keep": True})
    for key in "bc":
        apply(state, {"x": {"f": 1.0}, "key": key})
    state.take_unwritten()
    before = learner.to_bytes()
    with pytest.raises(ExpiredError, match="the key 'a' has no detector"):
        apply(state, {"id": kept["id"], "y": True})
    assert (len(state.waiting), learner.keys, learner.to_bytes()) == (0, ["b", "c"], before)
    with pytest.raises(ConflictError, match="has its label already"):
        apply(state, {"id": kept["id"], "y": True})
    apply(state, {"x": {"f": 1.0}, "key": "b"})
    written = state.take_unwritten()
    assert written is not None
    assert written.labelled == [1]


def test_a_label_for_a_forgotten_key_of_a_classifier_is_learned_anew() -> None:
    state = ModelState("m", varifold.PerKey(varifold.AROW(), key="device", max_keys=2), Limits())
    apply(state, {"x": {"f": 1.0}, "key": "a", "y": "low"})
    kept = apply(state, {"x": {"f": 9.0}, "key": "a", "keep": True})
    for key in "bc":
        apply(state, {"x": {"f": 1.0}, "key": key, "y": "low"})
    apply(state, {"id": kept["id"], "y": "high"})
    assert (len(state.waiting), state.learner.keys) == (0, ["c", "a"])

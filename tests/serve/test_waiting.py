"""Instances that wait for their label: bounded by count and age."""

from __future__ import annotations

from typing import Any

import pytest

from varifold.base.json_text import write_json
from varifold.serve.core import learners
from varifold.serve.core.errors import ConflictError, ExpiredError, NotFoundError
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

"""Instances that wait for their label: bounded by count and age."""

from __future__ import annotations

import pytest

from varifold.serve.core import learners
from varifold.serve.core.errors import ConflictError, ExpiredError, NotFoundError
from varifold.serve.core.journal import KEEP, LABEL, LEARN
from varifold.serve.core.state import Limits, ModelState


def test_waiting_instances_are_bounded_by_count_and_age() -> None:
    state = ModelState("m", learners.make("arow", {}), Limits(waiting=3, waiting_ms=1_000), "abcdef")
    ids = []
    for i in range(5):
        state.tick(10 * i)
        ids.append(state.apply(KEEP, {"x": {"a": float(i)}, "keep": True})["id"])
    assert len(state.waiting) == 3
    for given, error in ((ids[0], ExpiredError), ("m.abcdef.6", NotFoundError), ("m.abcdef.0", NotFoundError)):
        with pytest.raises(error):
            state.apply(LABEL, {"id": given, "y": "up"})
    state.apply(LABEL, {"id": ids[4], "y": "up"})
    with pytest.raises(ConflictError):
        state.apply(LABEL, {"id": ids[4], "y": "up"})
    state.tick(2_000)
    state.apply(KEEP, {"x": {"a": 1.0}, "keep": True})
    assert len(state.waiting) == 1
    with pytest.raises(ExpiredError):
        state.apply(LABEL, {"id": ids[3], "y": "up"})


@pytest.mark.parametrize("kind", [LABEL, LEARN])
def test_a_label_that_comes_too_late_is_not_learned(kind: int) -> None:
    state = ModelState("m", learners.make("arow", {}), Limits(waiting_ms=1_000))
    for given in ("early", "late"):
        state.apply(KEEP, {"x": {"a": 1.0}, "keep": True, "id": given})
    state.tick(1_000)
    state.apply(kind, {"x": {"a": 1.0}, "y": "up", "id": "early"})
    assert state.learner.steps == 1
    state.tick(1_001)
    with pytest.raises(ExpiredError, match="'late' waits no longer"):
        state.apply(kind, {"x": {"a": 1.0}, "y": "up", "id": "late"})
    assert (state.learner.steps, len(state.waiting)) == (1, 0)

"""An overlap and its map take their memory before an instance changes anything."""

import copy

import pytest

from tests._engine.test_out_of_memory import assert_same, failing, state
from tests.evolving.test_detected_switch import stream
from varifold import CWFE, FESL, PAFE
from varifold._numeric.memory import fail_at

SPANS = [(60, "a"), (15, "ab"), (40, "b"), (15, "bc"), (40, "c")]


@pytest.fixture(autouse=True)
def _all_succeed():
    yield
    fail_at(0)


@pytest.mark.parametrize(
    "learner",
    [CWFE(), PAFE(), FESL(ridge=0.1), CWFE(combine="s", switch=70, overlap=15), PAFE(switch=70, overlap=0)],
    ids=str,
)
def test_every_failed_request_of_an_overlap_leaves_the_learner_as_it_was(learner):
    twin = copy.deepcopy(learner)
    during_overlap = 0
    for x, y in stream(SPANS, flicker=0.05, labels=3):
        before = state(learner)
        k = 1
        while failing(lambda x=x, y=y: learner.learn_one(x, y), k) is not None:
            assert_same(state(learner), before)
            during_overlap += learner.steps > 60
            k += 1
        twin.learn_one(x, y)
        assert_same(state(learner), state(twin))
    assert during_overlap > 5
    assert learner.switches


def test_an_overlap_wider_than_max_dense_learns_no_map():
    learner = CWFE(max_dense=2)
    for x, y in stream(SPANS):
        learner.learn_one(x, y)
    assert learner._engine.model.map.outputs == 0
    assert any("max_dense=2" in note for note in learner._engine.model.notes())


def test_the_memory_of_an_overlap_is_given_back_after_the_switch():
    learner = CWFE()
    held = []
    for x, y in stream([(60, "a"), (15, "ab"), (40, "b")]):
        learner.learn_one(x, y)
        held.append(learner._engine.model.map.nbytes())
    assert max(held) > held[-1] > 0


@pytest.mark.parametrize("slot", [-1, 10**6])
def test_the_role_of_a_slot_that_there_is_not_is_rejected(slot):
    learner = CWFE()
    learner.learn_one({"a": 1.0}, True)
    with pytest.raises(IndexError, match="no feature has the slot"):
        learner._engine.model.role(slot)

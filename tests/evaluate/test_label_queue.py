"""The queue of late labels: numbers, what became of an instance, limits, and labels that come at a known time."""

from __future__ import annotations

import random

import pytest

from varifold.evaluate.label_queue import LabelQueue, Waiting


def test_numbers_and_what_became_of_them() -> None:
    queue = LabelQueue(most=2)
    assert [queue.add(Waiting(t, b"{}", "up")) for t in range(4)] == [1, 2, 3, 4]
    assert [queue.status(n) for n in range(6)] == ["unknown", "expired", "expired", "waiting", "waiting", "unknown"]
    queue.remove(4)
    assert (queue.status(4), len(queue), queue.expired) == ("labelled", 1, 2)


def test_age_is_a_limit() -> None:
    queue = LabelQueue(oldest=10)
    queue.add(Waiting(0))
    queue.add(Waiting(5))
    assert queue.get(1, 10) is not None
    assert queue.get(1, 11) is None
    queue.expire(11)
    assert [queue.status(1), queue.status(2)] == ["expired", "waiting"]


def test_labels_that_are_due_come_in_their_order() -> None:
    rng = random.Random(1)
    queue = LabelQueue()
    dues = [rng.choice([rng.randrange(50), 7]) for _ in range(200)]
    for t, due in enumerate(dues):
        queue.add(Waiting(t, due=due))
    expected = sorted((due, number) for number, due in enumerate(dues, 1))
    found = []
    for now in range(0, 60, 3):
        taken = queue.take_due(now)
        assert all(due < now for due, _ in taken)
        found += taken
    assert found == expected
    assert (len(queue), queue.status(1)) == (0, "labelled")


def test_what_expired_is_not_due_and_what_has_no_time_stays() -> None:
    queue = LabelQueue(most=2)
    for t, due in enumerate((1.0, 2.0, float("inf"))):
        queue.add(Waiting(t, due=due))
    assert queue.take_due(100.0) == [(2.0, 2)]
    assert queue.status(3) == "waiting"


def test_a_queue_comes_back_as_it_was() -> None:
    queue, again = LabelQueue(3, 100), LabelQueue(3, 100)
    for t in range(5):
        queue.add(Waiting(t, b'{"a": 1}', None if t == 3 else ("pair", t)))
    queue.remove(4)
    again.fill(queue.dump())
    assert again.dump() == queue.dump()
    assert again[5] == Waiting(4, b'{"a": 1}', ("pair", 4))
    with pytest.raises(KeyError):
        again[4]

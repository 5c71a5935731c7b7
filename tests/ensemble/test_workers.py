"""A process that dies takes nothing along but the item that kills it."""

from __future__ import annotations

import os
import signal

from varifold.ensemble.workers import each

DEADLY = 7


def work(item: int) -> str:
    if item == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{item} done"


def test_a_deadly_item_is_reported_and_the_others_are_done() -> None:
    found = list(each(work, range(12), 2, None, lambda item: f"{item} died"))
    assert sorted(found) == sorted([f"{i} done" for i in range(12) if i != DEADLY] + [f"{DEADLY} died"])

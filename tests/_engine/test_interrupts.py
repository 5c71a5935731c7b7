"""Ctrl-C stops a block between two rows."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import varifold


def learn_while(thread: threading.Thread, learner: Any, block: Any) -> None:
    thread.start()
    for _ in range(1_000):
        learner.learn_many(block)


def learn_until_ctrl_c(block: Any) -> Any:
    """Return a learner whose `learn_many` was interrupted by Ctrl-C."""
    learner = varifold.models["gaussiannb"]()
    main = threading.main_thread()

    def press() -> None:
        time.sleep(0.02)
        signal.pthread_kill(main.ident or 0, signal.SIGINT)

    thread = threading.Thread(target=press)
    with pytest.raises(KeyboardInterrupt):
        learn_while(thread, learner, block)
    thread.join()
    return learner


def test_ctrl_c_inside_a_block_leaves_whole_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 20))
    y = (X[:, 0] > 0).astype(int)
    block = varifold.to_block(X, y)
    # On a busy machine the signal can arrive between two blocks: then try again.
    for _ in range(20):
        learner = learn_until_ctrl_c(block)
        whole, rest = divmod(learner.steps, len(block))
        if rest:
            break
    assert rest, "Ctrl-C never stopped inside a block"
    twin = varifold.models["gaussiannb"]()
    for _ in range(whole):
        twin.learn_many(block)
    twin.learn_many(block[:rest])
    ours: Any = learner._engine.dump()[2]
    for name, array in twin._engine.dump()[2].items():
        assert array.tobytes() == ours[name].tobytes(), name

"""Ctrl-C stops a block between two rows."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import varifold


def learn_again_and_again(learner: Any, block: Any) -> None:
    for _ in range(200):
        learner.learn_many(block)


def test_ctrl_c_inside_a_block_leaves_whole_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 20))
    y = (X[:, 0] > 0).astype(int)
    block = varifold.to_block(X, y)
    learner, twin = varifold.models["gaussiannb"](), varifold.models["gaussiannb"]()
    main = threading.main_thread()

    def press() -> None:
        time.sleep(0.02)
        signal.pthread_kill(main.ident or 0, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        learn_again_and_again(learner, block)
    thread.join()
    learned = learner.steps
    whole, rest = divmod(learned, len(block))
    assert rest
    for _ in range(whole):
        twin.learn_many(block)
    twin.learn_many(block[:rest])
    ours: Any = learner._engine.dump()[2]
    for name, array in twin._engine.dump()[2].items():
        assert array.tobytes() == ours[name].tobytes(), name

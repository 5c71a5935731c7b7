"""The numbers behind the picture of a stream."""

import numpy as np
import pytest

from varifold import Block, streams
from varifold.streams.presence import presence


def test_shares_by_column_and_stretch():
    rows = [{"a": 1.0} if i < 50 else {"a": 1.0, "s": "u"} if i % 2 else {} for i in range(100)]
    found = presence(Block.from_dicts(rows, ["p" if i < 25 else "q" for i in range(100)]), stretches=4)
    assert found.names == ["a", "s"]
    assert found.starts.tolist() == [0, 25, 50, 75]
    assert found.shares.tolist() == [[1.0, 1.0, 12 / 25, 13 / 25], [0.0, 0.0, 12 / 25, 13 / 25]]
    assert found.absent == pytest.approx([0.5, 0.5, 13 / 25, 12 / 25])
    assert found.absent_share == pytest.approx(0.5)
    assert found.balance.tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]]
    assert (found.counts, found.empty) == ([25, 75], 25)


def test_trapezoidal_looks_like_stairs():
    block = Block.from_dicts([{f"c{j}": 1.0 for j in range(10)}] * 1000)
    found = presence(streams.prepare(block, "trapezoidal").block, stretches=10)
    assert np.array_equal(found.shares, np.triu(np.ones((10, 10))))


def test_nothing_is_something():
    assert presence(Block.from_dicts([])).absent_share == 0.0
    assert presence(Block.from_dicts([{}, {}])).empty == 2

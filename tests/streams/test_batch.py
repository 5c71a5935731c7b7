"""A batch keeps what belongs to its rows together."""

import numpy as np

from varifold import Block
from varifold.streams import Batch, read


def batch(count, first=0):
    rows = [{"a": float(first + i)} for i in range(count)]
    ids = [f"id{first + i}" for i in range(count)]
    return Batch(Block.from_dicts(rows, [i % 2 for i in range(count)]), ids=ids, rows=rows)


def test_parts_and_choices():
    whole = batch(5)
    for chosen, wanted in ((whole.part(1, 3), [1, 2]), (whole.take(np.array([4, 0])), [4, 0])):
        assert list(chosen.block.rows()) == chosen.rows == [{"a": float(i)} for i in wanted]
        assert chosen.ids == [f"id{i}" for i in wanted]
        assert chosen.times is None


def test_one_after_another():
    early = batch(2)
    vocabulary, labels = early.block.vocabulary, early.block.labels
    rows = [{"a": 7.0}]
    late = Batch(Block.from_dicts(rows, [1], None, vocabulary, labels), rows=rows)
    joined = late.after(early)
    assert list(joined.block.rows()) == joined.rows == [{"a": 0.0}, {"a": 1.0}, {"a": 7.0}]
    assert joined.ids is None


def test_a_stream_gives_pairs_as_rivers_streams_do() -> None:
    rows = [{"a": 1.0, "c": "red", "y": "p"}, {"a": None, "c": "blue", "y": "q"}]
    assert list(read(rows, target="y")) == [({"a": 1.0, "c": "red"}, "p"), ({"c": "blue"}, "q")]

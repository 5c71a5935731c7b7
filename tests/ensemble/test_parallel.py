"""One stream in shards through joblib: each instance learned once, then merged or voting."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import varifold
from varifold import Vote, learn_parallel
from varifold.base.shares import share_of
from varifold.checks.material import learn, state, stream
from varifold.errors import DataError, ParameterError

PAIRS = stream(300, labels=("a", "b", "c"))


def whole() -> varifold.Block:
    return varifold.to_block([x for x, _ in PAIRS], [y for _, y in PAIRS])


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_it_is_what_the_shards_learn_merged(backend: str) -> None:
    to = share_of(np.arange(300, dtype=np.uint64), 3)
    shards = [learn(varifold.AROW(r=2.0), [PAIRS[i] for i in np.flatnonzero(to == k)]) for k in range(3)]
    found = learn_parallel(whole(), "arow:r=2.0", shards=3, jobs=2, backend=backend)
    assert state(found) == state(varifold.merge(shards))


def test_blocks_may_be_cut_anywhere() -> None:
    block = whole()
    pieces = [block[:7], block[7:8], block[8:8], block[8:]]
    one, many = (learn_parallel(given, "nb3", shards=4, backend="threading") for given in (block, pieces))
    assert state(one) == state(many)


def test_a_file_is_read_by_every_worker(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({**{str(k): v for k, v in x.items()}, "label": y}) + "\n" for x, y in PAIRS))
    found = learn_parallel(path, "gaussiannb", shards=3, backend="threading", target="label", block_rows=64)
    one = varifold.GaussianNB()
    for block in varifold.streams.read(path, target="label").blocks():
        one.learn_many(block)
    assert found.steps == 300
    for x, _ in stream(20, seed=7):
        assert found.predict_proba_one(x) == pytest.approx(one.predict_proba_one(x), abs=1e-12)


def test_methods_that_cannot_be_merged_vote() -> None:
    found = learn_parallel(whole(), varifold.Neighbours(), shards=2, backend="threading")
    assert isinstance(found, Vote)
    assert found.steps == 300
    assert isinstance(learn_parallel(whole(), "arow", shards=2, backend="threading", join="vote"), Vote)
    with pytest.raises(ParameterError, match="cannot be merged"):
        learn_parallel(whole(), "neighbours", shards=2, backend="threading", join="merge")


def test_what_is_wrong_is_reported() -> None:
    for options, message in (
        ({"shards": 0}, "'shards' parameter of learn_parallel must be an int >= 1"),
        ({"join": "mean"}, "'join' parameter of learn_parallel"),
        ({"target": "label"}, "'target' for files only"),
    ):
        with pytest.raises(ParameterError, match=message):
            learn_parallel(whole(), "arow", backend="threading", **options)
    with pytest.raises(DataError, match="takes paths or Blocks"):
        learn_parallel([{"a": 1.0}], "arow", backend="threading")

"""Scenarios on files give what they give on the whole in memory."""

import io
import sys

import numpy as np
import pytest

from varifold import streams
from varifold._engine.block import concatenate
from varifold.errors import ParameterError

ROW_WISE = ["none", "delay:3", "vfs:0.5", "vfs:0.5,min=1", "capricious", "uninformative", "vfs:0.3+delay:2"]
MEASURED = ["vfs:0.5,mode=exact", "capricious:mode=pairs", "trapezoidal", "informative", "outage", "rotating", "bursts",
            "trapezoidal:3+vfs:0.5"]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "many.csv"
    draw = np.random.default_rng(0)
    lines = ["a,b,c,d,e,kind,y"]
    for i in range(700):
        cells = [f"{x:.3f}" if draw.random() < 0.8 else "" for x in draw.normal(size=5)]
        lines.append(",".join([*cells, "uvw"[i % 3], str(i % 2)]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("spec", ROW_WISE + MEASURED)
def test_block_by_block_is_as_in_one_piece(file, spec):
    whole = concatenate(list(streams.read(file, target="y").blocks()))
    wanted = streams.prepare(whole, spec, seed=4, shuffle=False)
    varied = streams.vary(streams.read(file, target="y", block_rows=64), spec, seed=4)
    got = concatenate(list(varied.blocks()))
    assert varied.delay == wanted.delay
    for part in ("indptr", "indices", "values", "codes"):
        assert np.array_equal(getattr(got, part), getattr(wanted.block, part))


@pytest.mark.parametrize("spec", ["balanced", "mixed", "evolvable", "mixed+vfs:0.5"])
def test_what_needs_all_values_is_left_to_prepare(file, spec):
    assert streams.vary(streams.read(file, target="y"), spec) is None


def test_standard_input_is_read_once(monkeypatch):
    text = io.TextIOWrapper(io.BytesIO(b"a,y\n1,0\n2,1\n"))
    monkeypatch.setattr(sys, "stdin", text)
    assert streams.vary(streams.read("-", target="y"), "trapezoidal") is None
    varied = streams.vary(streams.read("-", target="y"), "vfs:0.0")
    assert [len(block) for block in varied.blocks()] == [2]


def test_a_seed_is_not_negative(file):
    with pytest.raises(ParameterError, match="seed"):
        streams.vary(streams.read(file, target="y"), "vfs:0.5", seed=-1)

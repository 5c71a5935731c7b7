"""Scenarios on files give what they give on the whole in memory."""

import io
import sys

import numpy as np
import pytest

from varifold import streams
from varifold._engine.data.block import concatenate
from varifold.errors import DataError, ParameterError

ROW_WISE = ["none", "delay:3", "vfs:0.5", "vfs:0.5,min=1", "capricious", "uninformative", "vfs:0.3+delay:2"]
MEASURED = ["vfs:0.5,mode=exact", "capricious:mode=pairs", "capricious:mode=atmost",
            "trapezoidal", "informative", "outage", "rotating", "silent:rows=50", "bursts",
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
def test_what_needs_all_values_reads_the_whole_stream(file, spec):
    whole = concatenate(list(streams.read(file, target="y").blocks()))
    wanted = streams.prepare(whole, spec, seed=4, shuffle=False)
    varied = streams.vary(streams.read(file, target="y", block_rows=64), spec, seed=4)
    got = concatenate(list(varied.blocks()))
    assert (varied.scored_from, varied.delay) == (wanted.scored_from, wanted.delay)
    for part in ("indptr", "indices", "values", "codes"):
        assert np.array_equal(getattr(got, part), getattr(wanted.block, part))


def test_standard_input_is_read_once(monkeypatch):
    text = io.TextIOWrapper(io.BytesIO(b"a,y\n1,0\n2,1\n"))
    monkeypatch.setattr(sys, "stdin", text)
    stream = streams.read("-", target="y")
    assert [len(block) for block in streams.vary(stream, "vfs:0.0").blocks()] == [2]
    with pytest.raises(DataError, match="only once"):
        stream.blocks()


def test_standard_input_is_held_where_it_would_be_read_twice(monkeypatch):
    text = io.TextIOWrapper(io.BytesIO(b"a,b,y\n1,3,0\n2,4,1\n"))
    monkeypatch.setattr(sys, "stdin", text)
    varied = streams.vary(streams.read("-", target="y"), "trapezoidal:2")
    assert [list(block.rows()) for block in varied.blocks()] == [[{"a": 1.0}, {"a": 2.0, "b": 4.0}]]


def test_an_empty_stream_cannot_be_held():
    with pytest.raises(DataError, match="no instances"):
        streams.vary(streams.read([]), "balanced")


@pytest.mark.parametrize("given", [None, [{"a": 1.0}], "file.csv"])
def test_only_a_stream_varies(given):
    with pytest.raises(DataError, match="needs a Stream"):
        streams.vary(given)


def test_a_seed_is_not_negative(file):
    with pytest.raises(ParameterError, match="seed"):
        streams.vary(streams.read(file, target="y"), "vfs:0.5", seed=-1)


@pytest.mark.parametrize("spec", ROW_WISE + MEASURED)
def test_the_key_of_a_stream_is_neither_hidden_nor_counted(tmp_path, file, spec):
    bare = tmp_path / "bare.csv"
    keyed = [line.split(",") for line in file.read_text().splitlines()]
    bare.write_text("\n".join(",".join(cells[:5] + cells[6:]) for cells in keyed) + "\n")
    varied = streams.vary(streams.read(file, target="y", key="kind", block_rows=64), spec, seed=4)
    got = [x for block in varied.blocks() for x in block.rows()]
    assert [x.pop("kind") for x in got] == [cells[5] for cells in keyed[1:]]
    wanted = streams.vary(streams.read(bare, target="y", block_rows=64), spec, seed=4)
    assert got == [x for block in wanted.blocks() for x in block.rows()]


def test_numbers_as_keys_keep_their_place_targets_and_weights(tmp_path):
    path = tmp_path / "devices.csv"
    path.write_text("a,device,b,w,y\n" + "".join(f"{i},{i % 3},1,{i},{i / 7:.3f}\n" for i in range(60)))
    stream = streams.read(path, target="y", target_type="number", key="device", weight="w")
    block = concatenate(list(streams.vary(stream, "vfs:1").blocks()))
    assert list(block.rows()) == [{"device": i % 3} for i in range(60)]
    assert block.weights.tolist() == list(range(60))
    assert block.targets.tolist() == [round(i / 7, 3) for i in range(60)]


@pytest.mark.parametrize("spec", ["mixed", "evolvable", "balanced+vfs:0.5"])
def test_scenarios_that_would_change_the_key_are_rejected(file, spec):
    stream = streams.read(file, target="y", key="kind")
    with pytest.raises(ParameterError, match=r"would change the key 'kind'"):
        streams.vary(stream, spec)


@pytest.mark.parametrize("spec", ["balanced", "sample:100", "stretch:15+delay:2"])
def test_scenarios_that_choose_rows_keep_the_key(file, spec):
    stream = streams.read(file, target="y", key="kind")
    rows = [x for block in streams.vary(stream, spec, seed=3).blocks() for x in block.rows()]
    assert rows
    assert all("kind" in x for x in rows)

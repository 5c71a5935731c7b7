"""The same rows in every format are the same blocks."""

import json

import numpy as np
import pytest
from scipy import sparse

from varifold import OLVF, streams
from varifold.errors import DataError, ParameterError
from varifold.streams.readers._numbers import parse_number

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
arrow = pytest.importorskip("pyarrow")


def records(n=300, seed=0):
    draw = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        x = {"a": float(draw.normal()), "b": float(draw.integers(5)), "c": str(draw.choice(["red", "blue", "green"]))}
        row = {name: (None if draw.random() < 0.3 else value) for name, value in x.items()}
        out.append({**row, "y": str(draw.choice(["no", "yes"]))})
    return out


def as_rows(stream):
    return [(row, y) for block in stream.blocks() for row, y in zip(block.rows(), block.y, strict=True)]


@pytest.fixture(scope="module")
def expected():
    return [({k: v for k, v in r.items() if k != "y" and v is not None}, r["y"]) for r in records()]


def write(tmp_path, kind):
    data = records()
    frame = polars.DataFrame(data)
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        frame.write_csv(path)
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in data))
    elif kind == "parquet":
        frame.write_parquet(path, row_group_size=50)
    elif kind == "arrow":
        frame.write_ipc(path)
    elif kind == "feather":
        frame.write_ipc_stream(path)
    elif kind == "arff":
        head = (
            "@relation t\n@attribute a real\n@attribute b real\n@attribute c {red,blue,green}\n@attribute y {no,yes}\n"
        )
        lines = [",".join("?" if v is None else str(v) for v in row.values()) for row in data]
        path.write_text(f"{head}@data\n" + "\n".join(lines))
    return path


@pytest.mark.parametrize("block_rows", [7, 65_536])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "feather", "arff"])
def test_files(tmp_path, kind, block_rows, expected):
    stream = streams.read(write(tmp_path, kind), target="y", block_rows=block_rows)
    assert as_rows(stream) == expected
    assert as_rows(stream) == expected
    assert {name: column.type for name, column in stream.columns.items()} == {
        "a": "numeric", "b": "numeric", "c": "category"
    }  # fmt: skip


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, lambda r: arrow.Table.from_pylist(r), list, iter])
def test_memory(make, expected):
    assert as_rows(streams.read(make(records()), target="y", block_rows=100)) == expected


def test_pairs_as_river_gives_them(expected):
    assert as_rows(streams.read(iter(expected))) == expected


def test_matrices():
    x = sparse.random(50, 20, density=0.2, random_state=0, format="csr")
    y = [i % 2 for i in range(50)]
    found = as_rows(streams.read(x, target=y, block_rows=8))
    assert [label for _, label in found] == y
    assert sum(len(row) for row, _ in found) == x.nnz
    dense = np.where(x.toarray() == 0, np.nan, x.toarray())
    assert as_rows(streams.read(dense, target=y)) == found
    with pytest.raises(DataError, match="3 labels for 50 rows"):
        list(streams.read(x, target=y[:3]).blocks())


def test_learning_from_a_file_is_learning_from_dicts(tmp_path, expected):
    by_file, by_dict = OLVF(), OLVF()
    for block in streams.read(write(tmp_path, "csv"), target="y", block_rows=33).blocks():
        by_file.learn_many(block)
    for x, y in expected:
        by_dict.learn_one(x, y)
    assert by_file.features == by_dict.features


def test_infinity_in_a_table_is_reported_by_row(tmp_path):
    frame = polars.DataFrame({"a": [1.0, 2.0, float("inf"), 4.0], "y": [0, 1, 0, 1]})
    with pytest.raises(DataError, match="the data frame, line 3: feature 'a' is inf"):
        list(streams.read(frame, target="y").blocks())
    stream = streams.read(frame, target="y", on_error="skip")
    assert sum(len(b) for b in stream.blocks()) == 3
    assert stream.skipped == 1


def test_types_can_be_given_for_tables():
    frame = polars.DataFrame(
        {"code": [1, 2, 3], "text": ["a b a", "c", None], "num": ["1.5", "?", "x"], "y": [0, 1, 0]}
    )
    stream = streams.read(frame, target="y", types={"code": "category", "text": "text", "num": "numeric"})
    assert [row for row, _ in as_rows(stream)] == [
        {"code": "1", "text:a": 2.0, "text:b": 1.0, "num": 1.5},
        {"code": "2", "text:c": 1.0},
        {"code": "3", "num": "x"},
    ]


def test_broken_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 nothing of the kind")
    with pytest.raises(DataError, match=r"t\.parquet cannot be read as parquet"):
        list(streams.read(path).blocks())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"types": {"a": "number"}}, "must be one of numeric, category, text"),
        ({"on_error": "ignore"}, "on_error must be"),
        ({"omitted": "one"}, "omitted must be"),
        ({"block_rows": 0}, "block_rows must be"),
        ({"format": "xls"}, "format must be one of"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(ParameterError, match=words):
        streams.read("a.csv", **options)


def test_what_cannot_be_a_stream():
    with pytest.raises(DataError, match="cannot read a stream from int"):
        streams.read(5)
    with pytest.raises(DataError, match="the iterable, line 1: a int where a dict"):
        list(streams.read([1, 2]).blocks())


def test_numbers_are_read_as_python_reads_them():
    draw = np.random.default_rng(0)
    bits = draw.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    spelled = [repr(float(x)) for x in bits] + [repr(float(x)) for x in draw.normal(size=20_000)]
    spelled += [f"{a}.{b}e{c}" for a, b, c in draw.integers([0, 0, -30], [10**9, 10**9, 30], (20_000, 3)).tolist()]
    spelled += ["1" * 25, "9007199254740993", "0.1e1", "00012.500", "1e-400", "-0.0", "4.35", "123456789012345678e-5"]
    for text in spelled:
        assert parse_number(text) == pytest.approx(float(text), rel=0, abs=0, nan_ok=True), text
    assert [parse_number(t) for t in ("", "1_0", "0x1", "1e", ".", "1.2.3", "one")] == [None] * 7
    assert parse_number("1,5", ",") == 1.5

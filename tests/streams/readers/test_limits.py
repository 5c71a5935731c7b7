"""Lines, numbers and nesting without bound: a row that cannot be read, with file and line, in bounded memory."""

import gzip
import json
import subprocess
import sys

import pytest

from varifold import streams
from varifold.errors import DataError, ParameterError

LONG = 3000
HEADS = {"csv": "a,y\n", "arff": "@relation r\n@attribute a numeric\n@attribute y {0,1}\n@data\n"}
ROWS = {"csv": "{},0\n", "jsonl": '{{"a": {}, "y": 0}}\n', "svm": "0 1:{}\n", "arff": "{},0\n"}
NEXT = {"csv": "1,1\n", "jsonl": '{"a": 1, "y": 1}\n', "svm": "1 1:1\n", "arff": "1,1\n"}


def write(folder, suffix, text, name="rows"):
    path = folder / f"{name}.{suffix}"
    path.write_text(text)
    return path


def labels(stream):
    return [y for block in stream.blocks() for y in block.y]


def target(suffix):
    return None if suffix == "svm" else "y"


@pytest.mark.parametrize("suffix", ROWS)
def test_a_line_longer_than_the_limit_is_a_row_that_cannot_be_read(tmp_path, suffix):
    line = ROWS[suffix].format("1" + "0" * LONG)
    path = write(tmp_path, suffix, HEADS.get(suffix, "") + NEXT[suffix] + line + NEXT[suffix])
    number = 2 + HEADS.get(suffix, "").count("\n")
    options = {"target": target(suffix), "max_line": 1000}
    with pytest.raises(DataError, match=rf"rows\.{suffix}, line {number}: longer than 1,000 bytes.*max_line"):
        labels(streams.read(path, **options))
    skipping = streams.read(path, on_error="skip", **options)
    assert labels(skipping) == [1, 1]
    assert skipping.skipped == 1


@pytest.mark.parametrize("suffix", ROWS)
def test_a_line_as_long_as_the_limit_is_read(tmp_path, suffix):
    line = ROWS[suffix].format("1")
    path = write(tmp_path, suffix, HEADS.get(suffix, "") + line + line.rstrip("\n"))
    longest = max(len(line) for line in path.read_text().splitlines(keepends=True))
    assert labels(streams.read(path, target=target(suffix), max_line=longest)) == [0, 0]


@pytest.mark.parametrize("given", [0, -1, 1.5, "64", None])
def test_the_limit_is_a_whole_number(given):
    with pytest.raises(ParameterError, match="max_line must be a whole number >= 1"):
        streams.read([{"a": 1.0}], max_line=given)


@pytest.mark.parametrize(
    ("suffix", "row", "message"),
    [
        ("jsonl", '{"a": ' + "[" * 100_000 + "]" * 100_000 + ', "y": 0}\n', "nested too deep"),
        ("jsonl", '{"a": ' * 400 + "1" + "}" * 400 + "\n", "nested more than 50 deep"),
        ("jsonl", json.dumps({"p" * 100_000: dict.fromkeys(map(str, range(90)), 1)}) + "\n", "names of more than 8 MB"),
        ("jsonl", '{"a": ' + "1" * 10_000 + ', "y": 0}\n', "thousands of digits"),
        ("jsonl", '{"a": ' + "1" * 4_000 + ', "y": 0}\n', "infinite|large|overflow"),
        ("jsonl", '{"a": 1, "y": "\\ud800"}\n', "not valid Unicode"),
        ("svm", "0 " + "1" * 10_000 + ":1\n", "is not index:value"),
        ("svm", "0 ²:1\n", "is not index:value"),
        ("arff", "'" + "x" * 200_000 + "',0\n", "cannot be separated"),
        ("arff", "{" + "1" * 10_000 + " 5}\n", "is not 'index value'"),
    ],
)
def test_what_a_parser_rejects_is_a_row_that_cannot_be_read(tmp_path, suffix, row, message):
    path = write(tmp_path, suffix, HEADS.get(suffix, "") + NEXT[suffix] + row + NEXT[suffix])
    number = 2 + HEADS.get(suffix, "").count("\n")
    with pytest.raises(DataError, match=rf"line {number}: .*({message})") as caught:
        labels(streams.read(path, target=target(suffix)))
    assert len(str(caught.value)) < 1000
    skipping = streams.read(path, target=target(suffix), on_error="skip")
    assert labels(skipping) == [1, 1]
    assert skipping.skipped == 1


def test_levels_of_an_attribute_that_cannot_be_separated(tmp_path):
    path = write(tmp_path, "arff", "@relation r\n@attribute a {'" + "x" * 200_000 + "'}\n@data\n1\n")
    with pytest.raises(DataError, match=r"rows\.arff, line 2: .*cannot be separated"):
        labels(streams.read(path))


def test_dicts_that_hold_themselves():
    loop = {"y": 1}
    loop["self"] = loop
    stream = streams.read([{"a": 1.0, "y": 0}, loop], target="y", on_error="skip")
    assert labels(stream) == [0]
    assert "nested more than 50 deep" in stream.problems[0]


def test_a_long_record_without_line_ends_is_one_row(tmp_path):
    path = write(tmp_path, "csv", "y\n1\n" + "7" * (5 << 20) + "\n0\n")
    stream = streams.read(path, target="y", max_line=1 << 20, on_error="skip")
    assert labels(stream) == [1, 0]
    assert stream.skipped == 1
    assert stream.problems == [
        f"{path}, line 3: longer than 1 MB (is a quote left open here?); a larger max_line reads it"
    ]


@pytest.mark.parametrize("suffix", ["jsonl", "svm"])
def test_memory_stays_bounded(tmp_path, suffix):
    """A line of 400 MB from a small file; the process that reads it may have 300 MB more than it starts with."""
    path = tmp_path / f"rows.{suffix}.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"a": "' if suffix == "jsonl" else b"0 1:")
        for _ in range(400):
            file.write(b"1" * (1 << 20))
    code = (
        "import resource, sys; from varifold import streams\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"s = streams.read({str(path)!r}, target=None, on_error='skip'); n = sum(map(len, s.blocks()))\n"
        "print(n, s.skipped, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    kilobytes = int(out[2]) if sys.platform != "darwin" else int(out[2]) // 1024
    assert out[:2] == ["0", "1"]
    assert kilobytes < 300_000


def test_lines_of_other_encodings_and_compressions_are_whole(tmp_path):
    """What a decoder returns beyond the size asked for is kept."""
    rows = [{"a": "é" * 1000, "y": i % 2} for i in range(2000)]
    text = "".join(f'{{"a": "{row["a"]}", "y": {row["y"]}}}\n' for row in rows)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(text.encode("latin-1"))
    assert labels(streams.read(path, target="y", encoding="latin-1")) == [row["y"] for row in rows]
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "rows.jsonl.zst"
    one = zstandard.ZstdCompressor().compress(text.encode())
    few = [zstandard.ZstdCompressor().compress(b'{"b": 1, "y": 0}\n')] * 3000
    path.write_bytes(b"".join([one, *few]))
    assert labels(streams.read(path, target="y")) == [row["y"] for row in rows] + [0] * 3000


def test_damaged_compression(tmp_path):
    """A deflate block of a kind that does not exist: zlib raises its own error, not OSError."""
    path = tmp_path / "rows.jsonl.gz"
    data = bytearray(gzip.compress(b'{"a": 1, "y": 0}\n' * 100, mtime=0))
    data[10] = 0b111
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"rows\.jsonl\.gz cannot be read"):
        labels(streams.read(path, target="y"))

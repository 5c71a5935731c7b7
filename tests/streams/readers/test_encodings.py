"""The encoding of each file is detected; files that differ are named before the first row is read."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from varifold import streams
from varifold.errors import DataError, VarifoldWarning

TEXT = "größe,y\n1.5,süß\n2.5,sauer\n"
ROWS = [({"größe": 1.5}, "süß"), ({"größe": 2.5}, "sauer")]


def write(folder: Path, **encodings: str) -> list[Path]:
    paths = [folder / f"{name}.csv" for name in encodings]
    for path, encoding in zip(paths, encodings.values(), strict=True):
        path.write_bytes(TEXT.encode(encoding))
    return paths


def read(source: Any, **options: Any) -> tuple[list[Any], list[str]]:
    """Return the rows with their labels, and the warnings before the first row."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stream = streams.read(source, target="y", **options)
        blocks = list(stream.blocks())
        assert list(stream.blocks())  # a second pass does not warn again
    rows = [(x, y) for block in blocks for x, y in zip(block.rows(), block.y, strict=True)]
    return rows, [str(w.message) for w in caught if issubclass(w.category, VarifoldWarning)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_is_detected_without_a_warning(tmp_path, encoding):
    assert read(write(tmp_path, a=encoding)) == (ROWS, [])


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_western_european_text_is_detected_and_reported(tmp_path, encoding):
    rows, (message,) = read(write(tmp_path, a=encoding))
    assert rows == ROWS
    assert message.startswith(f"{tmp_path / 'a.csv'} is not UTF-8; read as cp1252, such as 'größe'")


def test_a_file_that_differs_is_named_before_the_first_row(tmp_path):
    paths = write(tmp_path, january="utf-8", february="latin-1", march="utf-8")
    rows, (message,) = read(paths)
    assert rows == ROWS * 3
    assert f"{paths[1]} is not UTF-8, unlike the other 2; read as cp1252" in message
    with pytest.warns(VarifoldWarning, match=r"february.csv is not UTF-8"):
        next(iter(streams.read(paths, target="y").blocks()))  # a row of january


def test_utf_16_among_others_is_reported(tmp_path):
    _, (message,) = read(write(tmp_path, january="utf-8", february="utf-16"))
    assert "february.csv is not UTF-8, unlike the other file; read as utf-16" in message


def test_compressed_files_are_detected(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode("latin-1")))
    rows, (message,) = read(path)
    assert rows == ROWS
    assert "read as cp1252" in message


def test_bytes_that_windows_does_not_define_are_latin_1(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n1,\x8f\xe4\n2,b\n")
    rows, (message,) = read(path)
    assert rows[0][1] == "\x8fä"
    assert "read as latin-1" in message


def test_single_invalid_bytes_in_utf_8_are_reported_with_their_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("x,y\nä,ö\nü,ß\n".encode() + b"a\xff,b\n")
    with pytest.raises(DataError, match=r"a.csv, line 4, column 'x': byte 0xff is not UTF-8"):
        read(path)


def test_json_is_utf_8(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps({"x": "ä", "y": 1}, ensure_ascii=False).encode("latin-1"))
    with pytest.raises(DataError, match="byte 0xe4 is not UTF-8"):
        read(path)


def test_a_given_encoding_is_used_for_every_file(tmp_path):
    assert read(write(tmp_path, a="latin-1", b="latin-1"), encoding="latin-1") == (ROWS * 2, [])

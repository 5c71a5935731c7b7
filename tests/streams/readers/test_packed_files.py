"""Packed files are known by their content, whatever they are called."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from varifold.errors import DataError
from varifold.streams import read

TEXT = b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(5000))


def zipped(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return made.getvalue()


PACKED: dict[str, bytes] = {
    "gzip": gzip.compress(TEXT),
    "zstandard": zstandard.compress(TEXT),
    "zstandard after a skippable frame": b"\x52\x2a\x4d\x18\x02\x00\x00\x00xy" + zstandard.compress(TEXT),
    "zip": zipped("inside.csv"),
    "zip with a folder of macOS": zipped("inside.csv", "__MACOSX/._inside.csv"),
    "nothing": TEXT,
}


def rows_in(path: Path | str) -> int:
    return sum(len(block) for block in read([path], target="y").blocks())


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.csv.zst", "rows.zip", "rows"])
@pytest.mark.parametrize("kind", PACKED)
def test_the_content_shows_how_a_file_is_packed(kind: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(PACKED[kind])
    assert rows_in(tmp_path / name) == 5000


@pytest.mark.parametrize("kind", ["gzip", "zstandard", "nothing"])
def test_packed_standard_input(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PACKED[kind])))
    assert rows_in("-") == 5000


def test_the_name_inside_a_zip_shows_the_format(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("rows.jsonl", '  {"a": 1, "y": 0}\n' * 3)
    (tmp_path / "rows.csv").write_bytes(made.getvalue())
    assert rows_in(tmp_path / "rows.csv") == 3


def broken(change: Callable[[bytes], bytes], folder: Path, data: bytes) -> str:
    (folder / "rows.csv").write_bytes(change(data))
    with pytest.raises(DataError) as caught:
        rows_in(folder / "rows.csv")
    return str(caught.value)


def test_what_cannot_be_unpacked_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "of 2 files (a.csv, b.csv), not of one; extract it" in broken(bytes, tmp_path, zipped("a.csv", "b.csv"))
    sheet = zipped("[Content_Types].xml", "xl/workbook.xml")
    assert "save the spreadsheet as CSV" in broken(bytes, tmp_path, sheet)
    assert "cannot be read as a zip archive" in broken(lambda d: d[:100], tmp_path, PACKED["zip"])
    assert "cannot be read" in broken(lambda d: d[:-20], tmp_path, PACKED["gzip"])
    damaged = bytearray(PACKED["zip"])
    damaged[60] ^= 0xFF
    assert "cannot be read" in broken(lambda _: bytes(damaged), tmp_path, b"")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PACKED["zip"])))
    with pytest.raises(DataError, match="unzip -p"):
        rows_in("-")
    (tmp_path / "rows.parquet.gz").write_bytes(PACKED["gzip"])
    with pytest.raises(DataError, match="compressed parquet"):
        rows_in(tmp_path / "rows.parquet.gz")


@pytest.mark.parametrize("stored", [True, False])
def test_a_text_that_is_stored_once_takes_memory_by_parts(stored: bool, tmp_path: Path) -> None:
    """A file of 50 KB with one text of 1 MB in 2,000 rows: 2 GB if every row got its own."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = arrow.DictionaryArray.from_arrays(arrow.array([0] * 2000, arrow.int32()), ["x" * (1 << 20)])
    path = tmp_path / "one.parquet"
    parquet.write_table(arrow.table({"a": texts, "y": [i % 2 for i in range(2000)]}), path, store_schema=stored)
    before = arrow.default_memory_pool().max_memory()
    assert path.stat().st_size < 100_000
    batches = [len(block) for block in read([str(path)], target="y").blocks()]
    assert sum(batches) == 2000
    assert max(batches) <= 64
    assert arrow.default_memory_pool().max_memory() - before < 300 << 20

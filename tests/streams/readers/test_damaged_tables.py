"""Arrow and Parquet files whose content points outside of them, or that is no text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from varifold import streams
from varifold.errors import DataError, FeatureNameError

TEXTS = pa.table({"colour": ["a", "bb", "cccc"] * 9, "name": [1.0] * 27})
INDICES = pa.table({"colour": pa.array(["a", "bb", "cccc", "a", "bb"]).dictionary_encode(), "name": [1.0] * 5})
READ = "import sys; from varifold import streams; print(len(list(streams.read(sys.argv[1]))))"


def arrow(path: Path, table: pa.Table, old: list[int], new: list[int]) -> Path:
    """Write an Arrow file in which these 32-bit numbers are others."""
    with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    data = path.read_bytes()
    sought, put = (b"".join(n.to_bytes(4, "little", signed=True) for n in numbers) for numbers in (old, new))
    assert data.count(sought) == 1
    path.write_bytes(data.replace(sought, put))
    return path


@pytest.mark.parametrize(
    ("table", "old", "new"),
    [
        (TEXTS, [0, 1, 3, 7, 8], [0, 1, 2**31 - 1, 7, 8]),
        (TEXTS, [0, 1, 3, 7, 8], [0, 1, -(2**30), 7, 8]),
        (INDICES, [0, 1, 2, 0, 1], [0, 1, 2**30, 0, 1]),
        (INDICES, [0, 1, 3, 7], [0, 1, 3, 2**30]),
    ],
    ids=["a text beyond the file", "a text before it", "an index beyond the texts", "a level beyond the file"],
)
def test_offsets_outside_the_file_are_rejected(tmp_path: Path, table: pa.Table, old: list[int], new: list[int]) -> None:
    """In a process of its own, which such a file ended."""
    path = arrow(tmp_path / "crafted.arrow", table, old, new)
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr[-500:]
    assert "DataError" in done.stderr
    assert "crafted.arrow cannot be read as ipc" in done.stderr


def test_a_name_that_is_no_text_is_rejected(tmp_path: Path) -> None:
    path = arrow(tmp_path / "crafted.arrow", TEXTS, [0, 1, 3, 7, 8], [0, 1, 3, 7, 8])
    path.write_bytes(path.read_bytes().replace(b"colour", b"col\xffur"))
    with pytest.raises(DataError, match="cannot be read as ipc"):
        list(streams.read(path))


def test_a_name_twice_is_rejected(tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "f.parquet")
    with pytest.raises(FeatureNameError, match="more than one column 'a'"):
        list(streams.read(tmp_path / "f.parquet"))

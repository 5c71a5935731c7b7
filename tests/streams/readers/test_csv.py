"""The tokenizer against Python's own csv module, however the bytes are cut."""

import codecs
import csv
import io
import itertools
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varifold import streams
from varifold._engine.names.vocabulary import Labels, Vocabulary
from varifold.errors import DataError
from varifold.streams.readers._csv import CATEGORY, Delimited

CELLS = st.text(alphabet='ab,;"\n\r \t1é', max_size=6)
TABLES = st.integers(1, 4).flatmap(lambda d: st.lists(st.lists(CELLS, min_size=d, max_size=d), min_size=1, max_size=6))


@settings(max_examples=300, deadline=None)
@given(TABLES, st.integers(1, 9), st.sampled_from(["\n", "\r\n"]))
def test_what_csv_writes_is_read_back(table, cut, end):
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end).writerows(table)
    data = text.getvalue().encode()
    width = len(table[0])
    vocabulary = Vocabulary()
    reader = Delimited(vocabulary, Labels(), ",", (), pytest.fail, dict)
    reader.set_columns([f"c{j}" for j in range(width)], [CATEGORY] * width)
    buffer = b""
    pieces = [data[i : i + cut] for i in range(0, len(data), cut)]
    for k, piece in enumerate([*pieces, b""]):
        buffer += piece
        buffer = buffer[reader.feed(buffer, 0, k == len(pieces), 10**9, 10**9) :]
    assert buffer == b""
    assert reader.line == 1 + text.getvalue().count("\n")
    indptr, indices, *_ = reader.finish()
    levels = [vocabulary.level_of(int(i))[1] for i in indices]
    assert [levels[a:b] for a, b in itertools.pairwise(indptr)] == table


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_a_first_line_that_declares_the_separator_for_excel(tmp_path, end, mark):
    path = tmp_path / "t.csv"
    path.write_bytes(mark + end.join(["sep=;", "a,b;y", "1,5;p", "2,5;q", "3;r;s"]).encode())
    with pytest.raises(DataError, match="line 5: 3 cells"):
        list(streams.read(path, target="y").blocks())
    (block,) = streams.read(path, target="y", on_error="skip").blocks()
    assert list(block.rows()) == [{"a,b": 1.5}, {"a,b": 2.5}]
    (block,) = streams.read(path, header=False, on_error="skip").blocks()
    assert next(iter(block.rows())) == {"c1": "a,b", "c2": "y"}
    path.write_text("sep=;y\n1;2\n")
    (block,) = streams.read(path).blocks()
    assert list(block.rows()) == [{"sep=": 1.0, "y": 2.0}]


def test_reading_needs_no_extra(tmp_path):
    """Text is read and sets are prepared where only the core's dependencies are installed."""
    path = tmp_path / "t.csv"
    path.write_text("x,c,y\n1,red,a\n,blue,b\n")
    code = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {{"polars", "pyarrow", "pooch", "sklearn", "zstandard", "matplotlib", "requests"}}:
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
from varifold import datasets, streams
from varifold.errors import MissingExtraError
print([list(b.rows()) for b in streams.read({str(path)!r}, target="y").blocks()])
print(len(streams.prepare(datasets.load("synthetic"), "vfs:0.5").block))
for what, head in (("t.parquet", b"x"), ("t.csv", b"\\x28\\xb5\\x2f\\xfd")):
    open({str(tmp_path)!r} + "/" + what, "wb").write(head)
    try:
        list(streams.read({str(tmp_path)!r} + "/" + what).blocks())
    except MissingExtraError as error:
        print(".[data]" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[[{'x': 1.0, 'c': 'red'}, {'c': 'blue'}]]", "2000", "True", "True"]

"""Files as people really have them: each reads right, or fails with file and line."""

import gzip
import io
import os
import re
import threading
from pathlib import Path

import pytest

from varifold import streams
from varifold.errors import DataError, VarifoldWarning

DATA = Path(__file__).parents[2] / "data"


def rows(name, target="y", **options):
    stream = streams.read(DATA / name, target=target, **options)
    return [(row, label) for block in stream.blocks() for row, label in zip(block.rows(), block.y, strict=True)]


GOOD = {
    "quoted_newlines.csv": [
        ({"note": "two\nlines", "x": 1.0}, "a"),
        ({"note": 'said "hi"', "x": 2.0}, "b"),
        ({"note": "three\r\nmore\nlines", "x": 3.0}, "a"),
    ],
    "bom.csv": [({"x": 1.0}, "a"), ({"x": 2.0}, "b")],
    "semicolons.csv": [({"x": 1.0, "z": 2.5}, "a"), ({"z": 3.0}, "b")],
    "decimal_commas.csv": [({"x": 1.5, "z": 1000.0}, "a"), ({"x": -0.25}, "b"), ({"x": 3.0, "z": 0.7}, "a")],
    "unicode_names.csv": [({"温度": 1.0, "größe": 2.0, "🙂": "ja"}, "a"), ({"größe": 4.0, "🙂": "nein"}, "b")],
    "quote_inside.csv": [({"x": '5" pipe'}, "a"), ({"x": '"6" pipe'}, "b")],
    "spaces.csv": [({"x": 1.0}, "a"), ({"x": 2.0}, "b")],
    "crlf.csv": [({"x": 1.0}, "a"), ({"x": 2.0, "z": 3.0}, "b")],
    "cr.csv": [({"x": 1.0}, "a"), ({"x": 2.0, "z": 3.0}, "b")],
    "no_last_newline.csv": [({"x": 1.0}, "a"), ({"x": 2.0}, "b")],
    "tabs.tsv": [({"x": 1.0}, "a"), ({"z": 2.0}, "b")],
    "header_only.csv": [],
    "events.jsonl": [
        ({"x": 1.0, "s": "red"}, "a"),
        ({"late": 1.0}, "b"),
        ({"deep.t": 2.5, "deep.u.v": "q"}, "a"),
    ],
    "dense.arff": [({"x": 1.5, "colour of it": "dark blue", "note": "hm"}, "a"), ({"colour of it": "red"}, "b")],
    "sparse.arff": [({"x": 2.5, "c": "v"}, "a"), ({}, "b")],
}


@pytest.mark.parametrize("name", GOOD)
def test_reads_right(name):
    assert rows(name) == GOOD[name]


@pytest.mark.parametrize("name", [name for name in GOOD if name.endswith(".csv")])
def test_a_byte_at_a_time_reads_the_same(name, monkeypatch):
    monkeypatch.setattr("varifold.streams.readers.csv._READ", 1)
    assert rows(name) == GOOD[name]


@pytest.mark.parametrize("name", [name for name in GOOD if GOOD[name]])
def test_one_row_blocks_read_the_same(name):
    assert rows(name, block_rows=1) == GOOD[name]


SKIP = "fix the row, or leave such rows out with --on-error skip"
ENCODING = "name the encoding, such as --encoding latin-1"
BAD = {
    "ragged.csv": f"ragged.csv, line 3: 2 cells where the header has 3; {SKIP}",
    "empty.csv": "empty.csv is empty",
    "overflow.csv": "overflow.csv, line 3, column 'x': '1e999' is infinite",
    "infinite.csv": "infinite.csv, line 4, column 'x': '-inf' is infinite",
    "open_quote.csv": "open_quote.csv, line 3: a quote is opened here and never closed",
    "stray_quote.csv": "stray_quote.csv, line 3: a quote is opened here and never closed, or closed inside",
    "numbers_only.csv": "numbers_only.csv, line 1: the header holds numbers only; pass header=False",
    "no_label.csv": "no_label.csv, line 3, column 'y': no label",
    "broken.jsonl": "broken.jsonl, line 2: not JSON at character",
    "broken.svm": "broken.svm, line 2: '2:x' is not index:value",
    "broken.arff": "broken.arff, line 6: 3 cells where 2 attributes are declared",
    "no_data.arff": "no_data.arff has no @data line",
    "missing.csv": "missing.csv cannot be opened: No such file",
}


@pytest.mark.parametrize("text", ['[{"a": 1, "y": "x"}]', '[\n  {\n    "a": 1\n  }\n]', "\ufeff [[1, 2]]"])
def test_a_json_array_is_rejected_with_what_to_do(tmp_path, text):
    path = tmp_path / "array.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"array.json is one JSON array; write JSON lines instead"):
        list(streams.read(path, target="y").blocks())


def test_a_folder_is_rejected_with_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"is a folder; name its files in their order, such as .*\*\.csv"):
        list(streams.read(tmp_path, target="y").blocks())


@pytest.mark.parametrize("name", BAD)
def test_fails_with_file_and_line(name):
    with pytest.raises(DataError, match=re.escape(BAD[name])):
        rows(name)


SKIPPED = {
    "ragged.csv": 2,
    "overflow.csv": 1,
    "open_quote.csv": 1,
    "stray_quote.csv": 1,
    "no_label.csv": 1,
    "broken.jsonl": 5,
    "broken.svm": 3,
    "broken.arff": 2,
}


@pytest.mark.parametrize("name", SKIPPED)
def test_skipped_rows_are_counted_and_the_others_read(name):
    stream = streams.read(DATA / name, target="y", on_error="skip")
    read = sum(len(block) for block in stream.blocks())
    assert stream.skipped == SKIPPED[name]
    assert read == 2
    assert len(stream.problems) == stream.skipped
    assert all(name in problem and "line" in problem for problem in stream.problems)
    assert sum(len(block) for block in stream.blocks()) == 2
    assert stream.skipped == SKIPPED[name]


def test_an_encoding_that_is_given_must_be_right():
    with pytest.raises(DataError, match=re.escape(f"line 2, column 'name': byte 0xe4 is not UTF-8; {ENCODING}")):
        rows("latin1.csv", encoding="utf-8")
    with pytest.raises(DataError, match=f"line 1: the name of column 1 is not UTF-8; {ENCODING}"):
        rows("latin1_header.csv", encoding="utf-8")
    with pytest.raises(DataError, match=r"utf16\.csv is UTF-16 text; pass encoding='utf-16'"):
        rows("utf16.csv", encoding="utf-8")


def test_encodings_can_be_named():
    assert rows("latin1.csv", encoding="latin-1")[0] == ({"name": "bär"}, "a")
    assert rows("latin1_header.csv", encoding="latin-1") == [({"größe": 1.0}, "a")]
    assert rows("utf16.csv", encoding="utf-16") == [({"x": 1.0}, "ä"), ({"x": 2.0}, "b")]
    with pytest.raises(DataError, match="no encoding is called 'latin-99'"):
        rows("latin1.csv", encoding="latin-99")


def test_duplicate_names_are_distinguished():
    with pytest.warns(VarifoldWarning, match="'x' is used twice; column 2 is called 'x#2'"):
        assert rows("duplicate_names.csv")[0] == ({"x": 1.0, "x#2": 2.0}, "a")


def test_a_string_among_numbers_is_a_category_of_that_column():
    stream = streams.read(DATA / "mixed_types.csv", target="y", block_rows=7)
    with pytest.warns(VarifoldWarning, match="'x' also held 1 text such as 'broken'"):
        found = [row for block in stream.blocks() for row in block.rows()]
    assert found[39:] == [{"x": 39.0}, {"x": "broken"}, {"x": 41.0}]
    assert stream.columns["x"].type == "numeric"
    assert stream.columns["x"].revised
    as_category = rows("mixed_types.csv", types={"x": "category"})
    assert as_category[3] == ({"x": "3"}, "a")


def test_no_header():
    found = streams.read(DATA / "numbers_only.csv", header=False, target="c3")
    assert [(list(b.rows()), b.y) for b in found.blocks()] == [
        ([{"c1": 1.0, "c2": 2.0}, {"c1": 4.0, "c2": 5.0}], [3, 6])
    ]


def test_id_time_and_weight_are_next_to_the_block():
    stream = streams.read(DATA / "weights.csv", target="y", id="who", time="when", weight="w")
    (batch,) = stream.batches()
    assert batch.ids == ["u1", "u2", "u3"]
    assert batch.times == ["2026-01-01", "2026-01-02", None]
    assert batch.block.weights.tolist() == [2.5, 1.0, 1.0]
    assert list(batch.block.rows()) == [{"x": 1.0}, {}, {"x": 3.0}]
    with pytest.raises(DataError, match=r"bad_weight.csv, line 3, column 'w': the weight '-1'"):
        rows("bad_weight.csv", weight="w")


def test_text_columns_become_word_counts():
    stream = streams.read(DATA / "late_text.csv", target="y", id="id")
    first = next(stream.blocks()).row(0)
    assert stream.columns["text"].type == "text"
    assert first == {"text:the": 2.0, "text:big": 1.0, "text:dog": 1.0, "text:and": 1.0, "text:fat": 1.0,
                     "text:cat": 1.0, "text:number": 1.0, "text:0": 1.0}  # fmt: skip
    category = rows("late_text.csv", types={"text": "category"}, id="id")
    assert isinstance(category[0][0]["text"], str)


def test_a_header_may_change_between_files():
    stream = streams.read([DATA / "jan.csv", DATA / "feb.csv"], target="y")
    jan, feb = stream.blocks()
    assert set(jan.row(0)) == {"x", "z"}
    assert set(feb.row(0)) == {"x", "z", "new"}
    assert jan.vocabulary is feb.vocabulary
    assert jan.vocabulary.id_of("x") == feb.indices[0]


def test_svmlight_omitted_is_absent_or_zero():
    absent = rows("sparse.svm", target=None)
    assert absent == [({1: 0.5, 3: 2.0}, 1), ({2: 0.001}, -1), ({}, 1)]
    zero = rows("sparse.svm", target=None, omitted="zero")
    assert zero[1][0] == {1: 0.0, 3: 0.0, 2: 0.001}
    assert rows("sparse.arff", omitted="zero")[1] == ({"x": 0.0, "c": "u"}, "b")


def test_ten_thousand_columns(tmp_path):
    path = tmp_path / "wide.csv"
    names = ",".join(f"f{j}" for j in range(10_000))
    path.write_text(f"{names},y\n" + "\n".join(",".join(str(i + j) for j in range(10_000)) + ",a" for i in range(5)))
    blocks = list(streams.read(path, target="y").blocks())
    assert sum(len(b) for b in blocks) == 5
    assert blocks[-1].row(0)["f9999"] == 9999.0
    assert sum(len(b.indices) for b in blocks) == 50_000


def test_absent_cells_can_be_named():
    assert rows("spaces.csv", absent=("",))[1] == ({"x": 2.0, "z": "NA"}, "b")


def test_unknown_columns_are_named_with_those_there():
    with pytest.raises(DataError, match="no target column 'label'; its columns are: x, z, y"):
        rows("jan.csv", target="label")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed(tmp_path, suffix):
    zstandard = pytest.importorskip("zstandard")
    plain = (DATA / "crlf.csv").read_bytes()
    packed = gzip.compress(plain) if suffix == ".gz" else zstandard.compress(plain)
    path = tmp_path / f"t.csv{suffix}"
    path.write_bytes(packed)
    stream = streams.read(path, target="y")
    assert [row for b in stream.blocks() for row in b.rows()] == [row for row, _ in GOOD["crlf.csv"]]
    path.write_bytes(packed + (gzip.compress(b"5,,a") if suffix == ".gz" else zstandard.compress(b"5,,a")))
    assert [len(b) for b in streams.read(path, target="y").blocks()] == [3]
    path.write_bytes(packed[:-6])
    with pytest.raises(DataError, match=r"t\.csv.* cannot be read"):
        list(streams.read(path, target="y").blocks())


def test_standard_input(monkeypatch):
    class Input:
        buffer = io.BytesIO((DATA / "events.jsonl").read_bytes())

    monkeypatch.setattr("sys.stdin", Input)
    stream = streams.read("-", target="y")
    assert [row for b in stream.blocks() for row in b.rows()] == [row for row, _ in GOOD["events.jsonl"]]
    with pytest.raises(DataError, match="only once"):
        stream.blocks()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "z"}, r"no target column 'z'; its columns are: x, z1, y; did you mean z1\?"),
        ({"target": "y", "types": {"zz1": "numeric"}}, r"no column 'zz1', which types names; .*did you mean z1"),
        ({"target": "y", "ignore": ["z2"]}, r"no column 'z2', which ignore names; .*did you mean z1"),
        ({"target": "y", "id": "z2"}, r"no id column 'z2'; .*did you mean z1"),
    ],
)
def test_mistyped_columns_are_rejected_with_the_nearest(tmp_path, options, words):
    path = tmp_path / "few.csv"
    path.write_text("x,z1,y\n1,2,a\n")
    with pytest.raises(DataError, match=words):
        list(streams.read(path, **options).blocks())


def test_a_type_may_name_a_column_of_any_file():
    paths = [DATA / "jan.csv", DATA / "feb.csv"]
    stream = streams.read(paths, target="y", types={"new": "numeric"})
    assert sum(map(len, stream.blocks())) == 400
    for option in ({"types": {"knew": "numeric"}}, {"ignore": ["knew"]}, {"dates": {"knew": ["hour"]}}):
        with pytest.raises(DataError, match=r"feb\.csv has no column 'knew'.*did you mean new"):
            next(iter(streams.read(paths, target="y", **option).blocks()))  # before the first row
        with pytest.warns(VarifoldWarning, match="no row had the column 'knew'"):  # JSON lines declare no columns
            list(streams.read([DATA / "events.jsonl", *paths], target="y", **option).blocks())


def test_a_later_file_without_the_target_is_named_before_the_first_row(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    (tmp_path / "first.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "all.csv").write_text("x,y,w\n1,a,1\n2,b,1\n")
    (tmp_path / "later.csv").write_text("x,z\n1,a\n")
    (tmp_path / "later.csv.gz").write_bytes(gzip.compress(b"x;z\n1;a\n"))
    (tmp_path / "later.arff").write_text("@relation r\n@attribute x real\n@attribute z {a,b}\n@data\n1,a\n")
    parquet.write_table(arrow.table({"x": [1.0], "z": ["a"]}), tmp_path / "later.parquet")
    feather.write_feather(arrow.table({"x": [1.0], "z": ["a"]}), tmp_path / "later.feather")
    for later in sorted(tmp_path.glob("later.*")):
        blocks = streams.read([tmp_path / "first.csv", later], target="y").blocks()
        with pytest.raises(DataError, match=rf"{later.name} has no target column 'y'; its columns are: x, z"):
            next(iter(blocks))
        for role in ("id", "time", "weight", "key"):
            with pytest.raises(DataError, match=rf"{later.name} has no {role} column 'w'"):
                next(iter(streams.read([tmp_path / "all.csv", later], target="x", **{role: "w"}).blocks()))


def test_the_first_file_is_named_if_every_file_lacks_the_target(tmp_path: Path) -> None:
    for name in ("jan.csv", "feb.csv"):
        (tmp_path / name).write_text("x,state\n1,a\n2,b\n")
    with pytest.raises(DataError, match=r"jan\.csv has no target column 'stat'.*did you mean state"):
        next(iter(streams.read([tmp_path / "jan.csv", tmp_path / "feb.csv"], target="stat").blocks()))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_headers_are_checked_without_a_trace(tmp_path: Path) -> None:
    """A pipe is opened once, a warning is given once, and a file's declared types begin with its rows."""
    (tmp_path / "first.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "twice.csv").write_text("x,x,y\n1,5,a\n")
    os.mkfifo(tmp_path / "pipe.csv")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe.csv").write_text("x,y\n3,a\n"))
    writer.start()
    with pytest.warns(VarifoldWarning) as warned:
        blocks = list(streams.read([tmp_path / f"{n}.csv" for n in ("first", "twice", "pipe")], target="y").blocks())
    writer.join()
    assert [str(w.message) for w in warned if "used twice" in str(w.message)] == [str(warned[0].message)]
    found = [row for block in blocks for row in block.rows()]
    assert found == [{"x": 1.0}, {"x": 2.0}, {"x": 1.0, "x#2": 5.0}, {"x": 3.0}]
    (tmp_path / "later.arff").write_text("@relation r\n@attribute x {a,b}\n@attribute y {a,b}\n@data\na,a\n")
    stream = streams.read([tmp_path / "first.csv", tmp_path / "later.arff"], target="y")
    next(iter(stream.blocks()))
    assert stream.columns["x"].type == "numeric"


def test_columns_that_never_came_are_reported_at_the_end_of_rows_without_a_header():
    rows = [{"temperature": 1.0, "y": 0}, {"temperature": 2.0, "y": 1}]
    with pytest.warns(VarifoldWarning, match="'temprature' that types names; did you mean temperature"):
        list(streams.read(rows, target="y", types={"temprature": "numeric"}).blocks())
    with pytest.raises(DataError, match="no label in column 'label'"):
        list(streams.read(rows, target="label").blocks())


def test_infinity_in_a_first_column_without_a_name_is_read_or_rejected(tmp_path: Path) -> None:
    """The column is looked at before its values are: as an index, which is left out."""
    (tmp_path / "a.csv").write_text("y\n1,a\n2,b\n-inf,a\n")
    with pytest.raises(DataError):
        list(streams.read(tmp_path / "a.csv", target="y").blocks())


def test_a_file_of_bytes_is_not_read_as_text(tmp_path):
    path = tmp_path / "r.bin"
    path.write_bytes(bytes(range(256)) * 8)
    with pytest.raises(DataError, match=r"r\.bin is not text"):
        list(streams.read(path, target="y").blocks())

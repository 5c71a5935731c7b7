"""A mask depends on columns alone: not on the reader, on the ids of string values, or on the cutting into blocks."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from varifold import Block, datasets, streams
from varifold._engine.data.block import concatenate
from varifold._engine.names.vocabulary import Vocabulary
from varifold.errors import DataError
from varifold.streams.scenarios import _apply_mask
from varifold.streams.scenarios import _masks as masks
from varifold.streams.scenarios.columns import Columns

HIDES_NOTHING = ["vfs:0.0", "vfs:0.0,mode=exact", "vfs:0.0,min=3", "trapezoidal:1", "outage:start=0.5,stop=0.5",
                 "rotating:spaces=1", "bursts:life=1e6,zipf=0", "delay:3", "mixed:order=none", "balanced",
                 "silent:share=0", "stretch:1000", "sample:1000", "labels:1.0",
                 "vfs:0.0+trapezoidal:1+delay:2"]  # fmt: skip
HIDES_SOME = ["vfs:0.5", "vfs:0.9", "vfs:0.9,min=1", "vfs:0.5,mode=exact", "capricious", "capricious:mode=pairs",
              "capricious:mode=atmost", "informative", "uninformative", "trapezoidal:4", "outage", "rotating", "bursts",
              "outage+vfs:0.3"]  # fmt: skip
ORDERS = {"first": ["s", "a", "b", "c"], "middle": ["a", "s", "b", "c"], "last": ["a", "b", "c", "s"],
          "two": ["s", "a", "t", "b"], "around": ["s", "a", "b", "t"], "texts only": ["s", "t"],
          "numbers only": ["a", "b", "c"]}  # fmt: skip
ROWS = 120


def cell(name, i, draw):
    """A string of one of several levels, or a number; late rows bring new levels."""
    if name == "s":
        return "uvw"[draw.integers(3)] if i < ROWS // 2 else "uvwxyz"[draw.integers(6)]
    return f"level{draw.integers(7)}" if name == "t" else float(round(draw.normal(), 3))


def table(order, absent=0.0):
    """Rows with these columns, half of them of each label; some cells absent, but none of the first row."""
    draw = np.random.default_rng(7)
    rows = []
    for i in range(ROWS):
        row = {name: cell(name, i, draw) for name in order}
        hidden = [name for name in order if i and draw.random() < absent]
        rows.append({**{name: v for name, v in row.items() if name not in hidden}, "y": f"label{i % 2}"})
    return rows


def frame(rows, order):
    return pd.DataFrame(rows, columns=[*order, "y"])


def written_csv(rows, order, folder):
    frame(rows, order).to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def written_jsonl(rows, order, folder):
    (folder / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "table.jsonl"


def written_parquet(rows, order, folder):
    parquet.write_table(pa.Table.from_pandas(frame(rows, order)), folder / "table.parquet", row_group_size=100)
    return folder / "table.parquet"


def written_ipc(rows, order, folder):
    feather.write_feather(frame(rows, order), folder / "table.feather", compression="uncompressed", chunksize=100)
    return folder / "table.feather"


def written_arff(rows, order, folder):
    lines = ["@relation table"]
    for name in [*order, "y"]:
        levels = ",".join(sorted({row[name] for row in rows if isinstance(row.get(name), str)}))
        lines.append(f"@attribute {name} {f'{{{levels}}}' if levels else 'numeric'}")
    lines += ["@data", *(",".join(str(row.get(name, "?")) for name in [*order, "y"]) for row in rows)]
    (folder / "table.arff").write_text("\n".join(lines) + "\n")
    return folder / "table.arff"


READERS = {
    "csv": written_csv,
    "jsonl": written_jsonl,
    "parquet": written_parquet,
    "ipc": written_ipc,
    "arff": written_arff,
    "dicts": lambda rows, order, folder: rows,
    "pandas": lambda rows, order, folder: frame(rows, order),
    "polars": lambda rows, order, folder: pl.DataFrame(rows, schema=[*order, "y"]),
    "pyarrow": lambda rows, order, folder: pa.Table.from_pandas(frame(rows, order), preserve_index=False),
}


def assert_same(got, wanted):
    for part in ("indptr", "indices", "values", "codes"):
        assert np.array_equal(getattr(got, part), getattr(wanted, part)), part


def assert_unchanged(stream, spec):
    """Compare the stream under a scenario with the stream itself, in pieces and in one, in order and shuffled."""
    whole = concatenate(list(stream.blocks()))
    assert_same(concatenate(list(streams.vary(stream, spec, seed=3).blocks())), whole)
    assert_same(streams.prepare(whole, spec, seed=3, shuffle=False).block, whole)
    assert_same(streams.prepare(whole, spec, seed=3).block, streams.prepare(whole, seed=3).block)


@pytest.mark.parametrize("absent", [0.0, 0.3])
@pytest.mark.parametrize(
    ("reader", "order"),
    [(reader, order) for reader in READERS for order in ORDERS if reader in ("csv", "dicts") or order == "around"],
)
def test_what_hides_nothing_leaves_every_cell(reader, order, absent, tmp_path):
    """Every order by two readers, one order by all: readers make equal blocks, as is compared below."""
    rows = READERS[reader](table(ORDERS[order], absent), ORDERS[order], tmp_path)
    stream = streams.read(rows, target="y", block_rows=50)
    for spec in HIDES_NOTHING:
        assert_unchanged(stream, spec)


@pytest.mark.parametrize("spec", HIDES_NOTHING)
def test_what_hides_nothing_leaves_every_cell_of_a_matrix_and_of_svmlight(spec, tmp_path):
    draw = np.random.default_rng(2)
    numbers = draw.normal(size=(80, 5))
    lines = [f"{i % 2} " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(row)) for i, row in enumerate(numbers)]
    (tmp_path / "table.svm").write_text("\n".join(lines) + "\n")
    assert_unchanged(streams.read(tmp_path / "table.svm", block_rows=32), spec)
    assert_unchanged(streams.read(numbers, target=[i % 2 for i in range(80)], block_rows=32), spec)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["abalone", "german", "wpbc"])
@pytest.mark.parametrize("spec", ["vfs:0.0", "vfs:0.0,mode=exact", "trapezoidal:1"])
def test_what_hides_nothing_leaves_every_cell_of_a_registered_set(name, spec):
    block = datasets.load(name).block
    assert_same(streams.prepare(block, spec, seed=1).block, streams.prepare(block, seed=1).block)


def with_ids(rows, vocabulary):
    """Rows over a vocabulary whose ids exist already; label and target by row."""
    x = [{name: v for name, v in row.items() if name != "y"} for row in rows]
    return Block.from_dicts(x, [row["y"] for row in rows], None, vocabulary)


def orders_of_ids(rows, order):
    """The same rows under different numberings of levels; columns keep their order."""
    levels = {name: list(dict.fromkeys(row[name] for row in rows if isinstance(row.get(name), str))) for name in order}
    yield with_ids(rows, Vocabulary())
    for turn in (list, reversed):
        by_column, at_the_end = Vocabulary(), Vocabulary()
        for name in order:  # column by column: the levels of one follow each other
            values = list(turn(levels[name])) or [1.0]
            Block.from_dicts([{name: value} for value in values], None, None, by_column)
            Block.from_dicts([{name: values[0]}], None, None, at_the_end)
        for name in reversed(order):  # all further levels come behind all columns
            Block.from_dicts([{name: value} for value in list(turn(levels[name]))[1:]], None, None, at_the_end)
        yield with_ids(rows, by_column)
        yield with_ids(rows, at_the_end)


def wide(order):
    """Rows with few of many columns, numbers and strings; the first row has all."""
    names = [f"{order[j % len(order)]}{j}" for j in range(400)]
    draw = np.random.default_rng(5)
    rows = []
    for i in range(ROWS):
        chosen = names if i == 0 else [names[j] for j in sorted(draw.choice(400, 20, replace=False).tolist())]
        rows.append({**{name: cell(name[0], i, draw) for name in chosen}, "y": f"label{i % 2}"})
    return rows, names


@pytest.mark.parametrize("spec", HIDES_SOME)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("kind", ["full", "with gaps", "few of many"])
def test_masks_are_equal_for_all_orders_of_ids(kind, order, spec):
    if spec == "rotating":
        spec = "rotating:2"
    rows, names = wide(order) if kind == "few of many" else (table(order, 0.3 if kind == "with gaps" else 0), order)
    first, *others = orders_of_ids(rows, names)
    shown = list(streams.prepare(first, spec, seed=2, shuffle=False).block.rows())
    shuffled = list(streams.prepare(first, spec, seed=2).block.rows())
    assert all(x.items() <= row.items() for x, row in zip(shown, rows, strict=True))
    assert 0 < sum(map(len, shown)) < sum(map(len, rows)) - len(rows)
    for block in others:
        assert list(streams.prepare(block, spec, seed=2, shuffle=False).block.rows()) == shown
        assert list(streams.prepare(block, spec, seed=2).block.rows()) == shuffled


@pytest.mark.parametrize(
    ("order", "spec"),
    [(order, spec) for order in ORDERS for spec in HIDES_SOME if order == "two" or spec in HIDES_SOME[::4]],
)
def test_masks_are_equal_for_all_readers_and_cuts(order, spec, tmp_path):
    if spec == "rotating":
        spec = "rotating:2"
    order = ORDERS[order]
    rows = table(order)
    shown = {}
    for name, reader in READERS.items():
        source = reader(rows, order, tmp_path)
        for size in (50, ROWS):
            blocks = streams.vary(streams.read(source, target="y", block_rows=size), spec, seed=2).blocks()
            shown[name, size] = [x for block in blocks for x in block.rows()]
    assert len({repr(x) for x in shown.values()}) == 1


@pytest.mark.parametrize("order", [["s", "a"], ["a", "b"]])
def test_columns_that_were_not_counted_are_rejected(order):
    counted = Columns(with_ids(table(order), vocabulary := Vocabulary()))
    later = with_ids([{"new": 1.0, "y": "label0"}], vocabulary)
    mask = masks.Bernoulli(np.full((1, 2), 0.5), np.zeros(1, dtype=np.int32), 1)
    with pytest.raises(DataError, match="did not have when its columns were counted"):
        _apply_mask.masked(later, mask, counted)


def test_a_file_that_grows_between_two_readings_is_rejected(tmp_path):
    path = tmp_path / "growing.jsonl"
    path.write_text('{"a": 1, "b": 2, "y": 0}\n{"a": 1, "b": 2, "y": 1}\n')

    class Growing(streams.Stream):
        def batches(self):
            yield from streams.read(path, target="y").batches()
            path.write_text('{"b": 1, "c": 2, "y": 0}\n{"d": 1, "e": 2, "f": 3, "y": 1}\n')

    with pytest.raises(DataError, match="source"):
        list(streams.vary(Growing(), "trapezoidal:2").blocks())

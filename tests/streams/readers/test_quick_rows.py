"""Rows that are read in one pass without Python against the same rows read record by record."""

import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from varifold._engine.names.vocabulary import Labels, Vocabulary
from varifold.streams import read
from varifold.streams.readers._csv import CATEGORY, IGNORED, NUMERIC, TARGET, WEIGHT, Delimited

ROLES = [NUMERIC, CATEGORY, NUMERIC, IGNORED, WEIGHT, TARGET]
ODD = [
    "",
    " 1",
    "1 ",
    "+1",
    "-",
    ".",
    "-.",
    "1e400",
    '"1"',
    '"a ',
    '"a "',
    "a ",
    "NA",
    "nan",
    "inf",
    "-0.0",
    "0",
    "é",
    "a\rb",
]
TEXTS = ["a", "b", "NA", "sixteen bytes it", "more than sixteen bytes", "N", "a", "a", "b"]
SEEDS = st.integers(0, 2**64 - 1)
"""Tables are drawn from a seed: hypothesis takes a hundred times as long to draw their digits one by one."""


def number(draw):
    """Draw a number as text: up to 21 digits on either side of the point, sometimes an exponent."""

    def digits(least, most=21):
        return "".join(draw.choices("0123456789", k=draw.randint(least, most)))

    text = draw.choice([lambda: digits(1), lambda: f"{digits(1)}.{digits(0)}", lambda: f".{digits(1)}"])()
    exponent = draw.choice(["", "", f"e{digits(1, 3)}", f"e-{digits(1, 3)}"])
    return draw.choice(["", "-"]) + text + exponent


def table(seed):
    """Draw rows of five to seven cells: numbers, levels and what a reader must look at twice."""
    draw = random.Random(seed)
    cells = [lambda: number(draw), lambda: number(draw), lambda: number(draw)]
    cells += [lambda: draw.choice(TEXTS), lambda: draw.choice(ODD)]
    return [[draw.choice(cells)() for _ in range(draw.randint(5, 7))] for _ in range(draw.randint(1, 12))]


def read_in(pieces, absent=("", "NA", "nan"), decimal=".", unlabelled=False):
    """Everything that a reader makes of these pieces."""
    vocabulary, labels, problems = Vocabulary(), Labels(), []
    reader = Delimited(
        vocabulary,
        labels,
        ",",
        absent,
        lambda *what: problems.append(what),
        dict,
        unlabelled=unlabelled,
    )
    reader.set_columns([f"c{j}" for j in range(len(ROLES))], ROLES, notations=[(decimal, "")] * len(ROLES))
    buffer = b""
    for k, piece in enumerate([*pieces, b""]):
        buffer += piece
        buffer = buffer[reader.feed(buffer, 0, k == len(pieces), 10**9, 10**9) :]
    arrays = [None if a is None else a.tobytes() for a in reader.finish()[:6]]
    names = [vocabulary.name_of(i) for i in range(1, vocabulary.size)]
    return arrays, names, list(labels.values), problems, reader.line, reader.revised


@settings(max_examples=400, deadline=None)
@given(SEEDS.map(table), st.sampled_from(["\n", "\r\n"]), st.booleans())
@example([["1.5", "a", "-2", "x", "1", "yes"]] * 12, "\n", False)
def test_one_piece_gives_what_single_lines_give(rows, end, unlabelled):
    # the texts and labels that are plain come first, so that later rows find them
    rows = [["1", "a", "2", "", "1", "a"], ["1", "b", "2", "", "", "b"], *rows]
    lines = [(",".join(row) + end).encode() for row in rows]
    assert read_in([b"".join(lines)], unlabelled=unlabelled) == read_in(lines, unlabelled=unlabelled)


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_numbers_are_those_of_float(seed):
    draw = random.Random(seed)
    texts = [number(draw) for _ in range(20)]
    rows = "".join(f"0,a,{text},,1,a\n" for text in ["0", *texts, *["0"] * 5])
    arrays, _, labels, problems, _, _ = read_in([rows.encode()], absent=("",))
    assert labels == ["a"]
    finite = [float(text) for text in texts if np.isfinite(float(text))]
    assert len(problems) == len(texts) - len(finite)
    values = np.frombuffer(arrays[2]).reshape(-1, 3)
    np.testing.assert_array_equal(values[1 : len(finite) + 1, 2], finite)


def test_a_number_may_mean_not_observed():
    rows = b"-999,a,1,,1,a\n" * 5 + b"3,a,-9990,,1,a\n" * 5
    arrays, *_ = read_in([rows], absent=("", "-999"))
    assert np.diff(np.frombuffer(arrays[0], dtype=np.int64)).tolist() == [2] * 5 + [3] * 5


def test_a_quoted_level_keeps_the_space_that_a_plain_one_loses():
    rows = b'1,"a ",2,,1,a\n' * 3 + b"1,a ,2,,1,a\n" * 3
    _, names, *_ = read_in([rows])
    assert names == ["c0", "c1", "c1=a ", "c2", "c1=a"]


def test_decimal_commas():
    rows = "".join(f"{i},5;a;2;;1;yes\n" for i in range(10)).encode()
    vocabulary, labels = Vocabulary(), Labels()
    reader = Delimited(vocabulary, labels, ";", ("",), pytest.fail, dict)
    reader.set_columns([f"c{j}" for j in range(len(ROLES))], ROLES, notations=[(",", "")] * len(ROLES))
    assert reader.feed(rows, 0, True, 10**9, 10**9) == len(rows)
    assert reader.finish()[2][::3].tolist() == [i + 0.5 for i in range(10)]


def test_targets_that_are_all_different_are_numbers(tmp_path):
    """The first block is read as labels, the others as numbers."""
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i % 700 + 0.25}\n" for i in range(3000)))
    stream = read(path, target="y", block_rows=500)
    targets = np.concatenate([block.targets for block in stream.blocks()])
    assert targets.tolist() == [i % 700 + 0.25 for i in range(3000)]


def test_bounds_hold_within_a_piece():
    rows = b"1,a,2,,1,a\n" * 100
    vocabulary, labels = Vocabulary(), Labels()
    reader = Delimited(vocabulary, labels, ",", ("",), pytest.fail, dict)
    reader.set_columns([f"c{j}" for j in range(len(ROLES))], ROLES)
    place = reader.feed(rows, 0, True, 30, 10**9)
    assert (reader.rows, place, reader.line) == (30, 30 * 11, 31)
    place = reader.feed(rows, place, True, 10**9, 150)
    assert (reader.rows, reader.cells, reader.line) == (50, 150, 51)

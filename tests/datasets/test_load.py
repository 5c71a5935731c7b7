"""Registered sets: the registry agrees with the files."""

import functools
import io
import os

import numpy as np
import pytest

from varifold import datasets, streams
from varifold.datasets.load import _npz
from varifold.errors import DataError, ParameterError, UnknownNameError
from varifold.streams.scenarios.columns import Columns

HERE = "VARIFOLD_DATA" in os.environ
loaded = functools.cache(datasets.load)
REAL = [name for name in datasets.names() if datasets.find(name).files]
real_data = [pytest.mark.real_data, pytest.mark.skipif(not HERE, reason="VARIFOLD_DATA names no directory")]


@pytest.mark.parametrize("name", [pytest.param(name, marks=real_data) for name in REAL])
def test_rows_columns_and_classes_are_as_registered(name):
    data = loaded(name)
    entry = data.entry
    assert (len(data.block), Columns(data.block).width) == (entry.rows, entry.features)
    assert len(data.block.labels) == entry.classes
    assert (data.block.targets is None) == (entry.task == "classification")
    assert entry.task == "regression" or np.bincount(data.block.codes).min() > 0
    assert np.isfinite(data.block.values).all()


def test_an_archive_of_arrays_is_a_block_with_the_anomalies_second():
    file = io.BytesIO()
    np.savez_compressed(
        file, X=np.array([[1, 2], [3, 4], [5, 0]], dtype=np.int16), y=np.array([1, 0, 0], dtype=np.uint8)
    )
    block = _npz(datasets.find("adbench-breastw"), file.getvalue())
    assert list(block.rows()) == [{"F1": 1.0, "F2": 2.0}, {"F1": 3.0, "F2": 4.0}, {"F1": 5.0, "F2": 0.0}]
    assert (block.labels.values, block.y) == ([0, 1], [1, 0, 0])


COUNTS = {
    "german": {1: 700, 2: 300},
    "ionosphere": {"b": 126, "g": 225},
    "wbc": {2: 458, 4: 241},
    "a8a": {-1: 24720, 1: 7841},
    "splice": {-1: 1527, 1: 1648},
    "dna": {2: 485, 1: 464},
    "abalone": {0: 2096, 1: 2081},
    "dropout": {"other": 2215, "Graduate": 2209},
    "imdb": {0: 12500, 1: 12500},
    "adult": {"<=50K": 37155, ">50K": 11687},
    "electricity-5000": {0: 3052, 1: 1948},
    "credit-a-complete": {"-": 357, "+": 296},
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=real_data) for name in COUNTS])
def test_label_rules(name):
    data = loaded(name)
    counts = dict(zip(data.block.labels.values, np.bincount(data.block.codes).tolist(), strict=True))
    assert list(counts.items()) == list(COUNTS[name].items())
    assert data.positive == list(counts)[1]


@pytest.mark.real_data
@pytest.mark.skipif(not HERE, reason="VARIFOLD_DATA names no directory")
def test_variants_of_one_file_agree():
    coded, letters = datasets.load("splice").block, datasets.load("splice-3class").block
    letter = {1.0: "A", 2.0: "G", 3.0: "C", 4.0: "T"}
    plain = [tuple(row.values()) for row in letters.rows() if set(row.values()) <= set("ACGT")]
    assert sorted(tuple(letter[v] for v in row.values()) for row in coded.rows()) == sorted(plain)
    onehot = datasets.load("german-onehot").block
    assert sorted(np.asarray(Columns(onehot).dense().sum(axis=0))) == pytest.approx(
        sorted(_onehot_sums(datasets.load("credit-g").block))
    )


def _onehot_sums(block):
    sums = {}
    for row in block.rows():
        for name, value in row.items():
            if name in ("own_telephone", "foreign_worker"):
                sums[name] = sums.get(name, 0.0) + (value == "yes")
            elif isinstance(value, str):
                sums[name, value] = sums.get((name, value), 0.0) + 1
            else:
                sums[name] = sums.get(name, 0.0) + value
    return list(sums.values())


@pytest.mark.real_data
@pytest.mark.skipif(not HERE, reason="VARIFOLD_DATA names no directory")
def test_mixed_knows_the_set():
    german = datasets.load("german")
    assert np.array_equal(streams.prepare(german, "mixed", shuffle=False).block.values, german.block.values)
    wdbc = Columns(streams.prepare(datasets.load("wdbc"), "mixed", shuffle=False).block).dense()
    assert set(wdbc[:, 10:20].ravel()) == {0.0, 1.0}
    sizes = [len(streams.prepare(datasets.load(name), "balanced").block) for name in ("german", "wbc", "wpbc")]
    assert sizes == [1400, 916, 302]


def test_synthetic_is_the_same_every_time():
    first, second = datasets.load("synthetic").block, datasets.load("synthetic").block
    assert np.array_equal(first.values, second.values)
    assert 0.4 < np.mean(first.codes) < 0.6


def test_aliases_and_unknown_names():
    assert datasets.find("pima").name == "diabetes"
    assert datasets.find("anuran").name == "frogs"
    with pytest.raises(UnknownNameError, match=r"did you mean .*german"):
        datasets.load("germann")


def test_damaged_file_is_rejected(tmp_path, monkeypatch):
    (tmp_path / "wine").mkdir()
    (tmp_path / "wine" / "wine.data").write_text("1,2,3\n")
    monkeypatch.setenv("VARIFOLD_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"wine\.data of data set 'wine' has sha256"):
        datasets.load("wine")


@pytest.mark.real_data
@pytest.mark.skipif(not HERE, reason="VARIFOLD_DATA names no directory")
@pytest.mark.parametrize("name", ["wdbc", "wine"])
def test_the_copies_of_scikit_learn_are_the_same_rows(name, monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    ours = datasets.load(name).block
    monkeypatch.setenv("VARIFOLD_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    theirs = datasets.load(name).block
    assert sorted(zip(ours.y, map(str, ours.rows()), strict=True)) == sorted(
        zip(theirs.y, map(str, theirs.rows()), strict=True)
    )


@pytest.mark.parametrize("name", [None, 3, ["german"], b"german", {}])
@pytest.mark.parametrize("call", [datasets.load, datasets.find, datasets.fetch])
def test_a_name_is_a_string(call, name):
    with pytest.raises(ParameterError, match="the name of a data set is a string"):
        call(name)

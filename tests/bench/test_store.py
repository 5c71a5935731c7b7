"""The store: what is put is there, whatever happens afterwards."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from dataclasses import asdict, replace

import pytest

from varifold.bench import Cell, Outcome, ResultStore
from varifold.errors import DataError

CELL = Cell("german", "vfs:0.5", True, "none", "olvf", "", 0)
FACTS = {"code": "abc", "git": None}


def outcome(cer: float = 0.25) -> Outcome:
    return Outcome(
        cer=cer,
        accuracy=1 - cer,
        f1=0.5,
        balanced_accuracy=0.5,
        auroc=0.8,
        auprc=0.7,
        log_loss=float("nan"),
        brier=0.1,
        calibration_error=0.1,
        majority_cer=0.3,
        majority_share=0.7,
        errors=25,
        scored=100,
        instances=100,
        empty=0,
        names=24,
        known=24,
        weighted=None,
        curve=b"\0\0\0\0",
        loss_curve=b"\0\0\0\0",
        data_sha="d",
        stream_sha="s",
        seconds=0.1,
        wall=0.2,
    )


def test_what_is_put_is_read_by_another_process_at_once(tmp_path):
    with ResultStore(tmp_path / "s.sqlite") as store:
        store.put(CELL, outcome(), FACTS)
        with ResultStore(tmp_path / "s.sqlite", write=False) as other:
            found = other.outcomes("abc")
        assert list(found) == [CELL]
        assert found[CELL].cer == 0.25
        assert found[CELL].weighted is None
        assert math.isnan(found[CELL].log_loss)
        assert store.outcomes("another version") == {}
        assert list(store.outcomes(None)) == [CELL]


def test_any_version_takes_the_latest(tmp_path):
    with ResultStore(tmp_path / "s.sqlite") as store:
        store.put(CELL, outcome(0.2), FACTS)
        store.put(CELL, outcome(0.1), {**FACTS, "code": "newer"})
        assert store.outcomes(None)[CELL].cer == 0.1
        assert store.outcomes("abc")[CELL].cer == 0.2
        assert [count for _, count, _, _ in store.environments()] == [1, 1]


def test_an_outcome_replaces_a_failure(tmp_path):
    with ResultStore(tmp_path / "s.sqlite") as store:
        store.put_failure(CELL, "it broke", "abc")
        assert store.failures() == {CELL: "it broke"}
        store.put(CELL, outcome(), FACTS)
        assert store.failures() == {}


def test_a_version_for_each_model(tmp_path):
    with ResultStore(tmp_path / "s.sqlite") as store:
        other = replace(CELL, model="mine:Mine")
        store.put(CELL, outcome(), FACTS)
        store.put(other, outcome(), FACTS, "abc+1")
        versions = {"olvf": "abc", "mine:Mine": "abc+1"}
        assert set(store.outcomes(lambda model, version: version == versions[model])) == {CELL, other}
        versions["mine:Mine"] = "abc+2"
        assert set(store.outcomes(lambda model, version: version == versions[model])) == {CELL}
        store.put_failure(other, "it broke", "abc+2")
        store.put(other, outcome(), FACTS, "abc+2")
        assert store.failures() == {}


def test_a_store_of_another_format_is_rejected(tmp_path):
    path = tmp_path / "s.sqlite"
    with ResultStore(path) as store:
        store.put(CELL, outcome(), FACTS)
        store._db.execute("PRAGMA user_version = 99")
    content = path.read_bytes()
    with pytest.raises(DataError, match="format 99, here 2"):
        ResultStore(path)
    assert path.read_bytes() == content


def test_metrics_by_coverage_come_back(tmp_path):
    with ResultStore(tmp_path / "s.sqlite") as store:
        store.put(CELL, replace(outcome(), uncertainty='{"0.9": {"covered": 0.91}}'), FACTS)
        found = store.outcomes("abc")[CELL]
    assert found.value("covered@0.9") == 0.91
    assert math.isnan(found.value("covered@0.8"))


def assert_like(found, expected):
    for name, value in asdict(expected).items():
        ours = getattr(found, name)
        assert ours == value or (math.isnan(ours) and math.isnan(value)), name


def test_a_damaged_store_is_reported_in_a_line(tmp_path):
    path = tmp_path / "s.sqlite"
    with ResultStore(path) as store:
        for seed in range(200):
            store.put(replace(CELL, seed=seed), outcome(), FACTS)
    content = bytearray(path.read_bytes())
    content[3 * 4096 :] = b"\xff" * (len(content) - 3 * 4096)
    path.write_bytes(content)
    with ResultStore(path) as store, pytest.raises(DataError, match="pass another --store"):
        store.outcomes(None)


PUT: list[int] = []


def put_many(store: ResultStore) -> None:
    for seed in range(1, 1000):
        store.put(replace(CELL, seed=seed), outcome(), FACTS)
        PUT.append(seed + 1)


def test_a_full_disk_keeps_what_is_there(tmp_path):
    path = tmp_path / "s.sqlite"
    with ResultStore(path) as store:
        store.put(CELL, outcome(), FACTS)
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(DataError, match="is full; all outcomes so far are stored"):
            put_many(store)
        kept = len(store.outcomes("abc"))
        assert 1 < kept == PUT[-1]
    with ResultStore(path) as store:
        assert len(store.outcomes("abc")) == kept
        store.put(replace(CELL, seed=5000), outcome(), FACTS)
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_file_that_is_no_store_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 100)
    with pytest.raises(DataError, match="not a database"):
        ResultStore(path)
    assert path.read_text().startswith("dear diary")
    other = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE mine (x)")
    with pytest.raises(DataError, match="no store of this version"):
        ResultStore(other)
    with pytest.raises(DataError, match="there is no store"):
        ResultStore(tmp_path / "nothing.sqlite", write=False)


def test_what_is_put_again_replaces_what_was_there(tmp_path):
    with ResultStore(tmp_path / "s.sqlite") as store:
        store.put(CELL, outcome(0.2), FACTS)
        store.put(CELL, outcome(0.1), FACTS)
        assert store.outcomes("abc")[CELL].cer == 0.1
        store.put_failure(CELL, "it broke", "abc")
        store.put_failure(CELL, "it broke otherwise", "abc")
        assert store.failures() == {CELL: "it broke otherwise"}
        store.put_study("mine", {"models": ["olvf"]})
        store.put_study("mine", {"models": ["arow"]})
        assert store.studies() == {"mine": {"models": ["arow"]}}

"""On a real Spark: streams with late labels and a killed driver, groups, shards, and what is rejected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import varifold
from tests.spark.test_bucket import by_place, detections, plain, rows_of
from varifold.checks.material import state
from varifold.errors import DataError, MissingExtraError, ParameterError, UnknownNameError
from varifold.spark import learn_groups, learn_parallel, learn_stream, models_of
from varifold.spark.keyed import Detection, Output

ROOT = Path(__file__).parents[2]
SCHEMA = "k string, i long, o long, n map<string,double>, s map<string,string>, y string"
COLUMNS = {"key": "k", "numbers": "n", "words": "s", "label": "y", "id": "i", "order": "o"}


@pytest.fixture(scope="session")
def lines() -> list[str]:
    return rows_of(5, 30)


@pytest.fixture
def rows(spark: Any, lines: list[str], tmp_path: Path) -> Any:
    (tmp_path / "rows.json").write_text("\n".join(lines), encoding="utf-8")
    return spark.read.schema(SCHEMA).json(str(tmp_path / "rows.json"))


def learned(lines: list[str], key: str, model: Any) -> Any:
    """A learner that went through the rows of one key."""
    waiting = {}
    for row in map(json.loads, lines):
        if row["k"] != key:
            continue
        if "n" in row and "y" not in row:
            waiting[row["i"]] = row
        else:
            given = row if "n" in row else waiting.pop(row["i"])
            model.learn_one({**given["n"], **given["s"]}, row["y"])
    return model


@pytest.mark.spark
@pytest.mark.slow
def test_a_killed_driver_goes_on_exactly_once() -> None:
    """50 keys, 100 instances each, 18 % of the labels late, the driver killed once."""
    script = ROOT / "benchmarks" / "spark_exactly_once.py"
    sizes = ["--keys", "50", "--rows", "100", "--kills", "1", "--files", "6", "--batch", "2", "--buckets", "4"]
    run = subprocess.run([sys.executable, str(script), *sizes], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    assert "driver 0 ended with -9" in run.stdout
    assert "5,000 predictions of 5,000; 0 missing, 0 twice, 0 that differ" in run.stdout
    assert "50 learners exported, 0 that differ or are missing" in run.stdout


@pytest.mark.spark
def test_a_stream_predicts_as_one_process(spark: Any, lines: list[str], tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(3):
        part = lines[number * len(lines) // 3 : (number + 1) * len(lines) // 3]
        part += ['{"k": "device 0", "i": 77, "o": 100000, "y": "yes"}'] if number == 2 else []
        (source / f"{number}.json").write_text("\n".join(part), encoding="utf-8")
        os.utime(source / f"{number}.json", (1e9 + number, 1e9 + number))  # Spark takes the oldest first
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
    out = learn_stream(df, model="gaussiannb", buckets=2, logged=5, ask=0.02, **COLUMNS)
    query = out.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).partitionBy("kind")
    query.trigger(availableNow=True).format("parquet").start(str(tmp_path / "out")).awaitTermination()
    collected = spark.read.parquet(str(tmp_path / "out" / "kind=prediction")).collect()
    outputs = [
        Output(r["key"], r["id"], r["label"], dict(r["probabilities"]), r["steps"], "prediction", None)
        for r in collected
    ]
    late = {(row["k"], row["i"]) for row in map(json.loads, lines) if "n" in row and "y" not in row}
    assert {(r["key"], r["id"]) for r in collected if r["ask"]} == late
    assert all(r["ask"] is None for r in collected if (r["key"], r["id"]) not in late)
    assert all(r["drawn"] == (1.0 if r["ask"] else None) for r in collected)  # the first rows are requested for certain
    assert by_place(outputs) == by_place(plain(lines, varifold.GaussianNB()))
    (problem,) = spark.read.parquet(str(tmp_path / "out" / "kind=problem")).collect()
    assert (problem["key"], problem["id"]) == ("device 0", 77)
    assert problem["problem"] == "the row has a label, but no instance of its id waits"
    exported = dict(models_of(tmp_path / "checkpoint", spark))
    assert sorted(exported) == [f"device {k}" for k in range(5)]
    for key, learner in exported.items():
        assert state(learner) == state(learned(lines, key, varifold.GaussianNB()))


@pytest.mark.spark
def test_a_stream_without_labels_has_a_detector_per_key(spark: Any, tmp_path: Path) -> None:
    lines = rows_of(3, 80, late=0.0)
    (tmp_path / "in").mkdir()
    for number in range(2):
        part = lines[number * len(lines) // 2 : (number + 1) * len(lines) // 2]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(part), encoding="utf-8")
        os.utime(tmp_path / "in" / f"{number}.json", (1e9 + number, 1e9 + number))
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in")).drop("y")
    blank = varifold.AutoDetector(rate=0.05)
    columns = {name: column for name, column in COLUMNS.items() if name != "label"}
    out = learn_stream(df, model=blank, buckets=2, logged=5, **columns)
    query = out.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).format("parquet").start(str(tmp_path / "out")).awaitTermination()
    found = [Detection(*row) for row in spark.read.parquet(str(tmp_path / "out")).select(*Detection._fields).collect()]
    assert by_place(found) == by_place(detections(lines, blank))
    exported = dict(models_of(tmp_path / "checkpoint", spark))
    assert {key: learner.steps for key, learner in exported.items()} == {f"device {k}": 80 for k in range(3)}
    assert all(isinstance(learner, varifold.AutoDetector) for learner in exported.values())


@pytest.mark.spark
def test_groups_of_a_batch(lines: list[str], rows: Any) -> None:
    found = {row["key"]: row for row in learn_groups(rows, model="pa", **COLUMNS).collect()}
    assert len(found) == 5
    for key, row in found.items():
        expected = learned(lines, key, varifold.PA())
        assert varifold.from_bytes(bytes(row["model"])).to_bytes() == expected.to_bytes()
        assert (row["instances"], row["learned"], row["problems"]) == (30, 30, 0)
        assert row["accuracy"] == row["right"] / sum('"y"' in r and '"n"' in r for r in lines if f'"{key}"' in r)


@pytest.mark.spark
def test_one_frame_in_shards(rows: Any) -> None:
    columns = {"numbers": "n", "words": "s", "label": "y", "order": "o"}
    whole = rows.where("n is not null")
    merged = learn_parallel(whole, "gaussiannb", shards=3, **columns)
    one = varifold.GaussianNB()
    given = whole.where("y is not null").collect()
    for row in given:
        one.learn_one({**row["n"], **row["s"]}, row["y"])
    assert merged.steps == one.steps == len(given)
    for row in given[:20]:
        x = {**row["n"], **row["s"]}
        assert merged.predict_proba_one(x) == pytest.approx(one.predict_proba_one(x), abs=1e-12)
    assert isinstance(learn_parallel(whole, "arow", shards=2, join="vote", **columns), varifold.Vote)


@pytest.mark.spark
def test_plain_columns_numbers_as_words_and_times(spark: Any) -> None:
    given = [("a", 1, 2, 1.5, None, True), ("a", 2, 1, float("nan"), "red", False), ("a", 3, 3, None, None, True)]
    frame = spark.createDataFrame(given, "k string, i int, o int, load double, colour string, y boolean")
    frame = frame.selectExpr("k", "i", "timestamp_seconds(o) as o", "load", "colour", "y")
    (row,) = learn_groups(
        frame, key="k", model="arow", numbers=["load"], words=["colour"], label="y", id="i", order="o"
    ).collect()
    learner = varifold.from_bytes(bytes(row["model"]))
    assert (row["instances"], row["learned"], row["problems"]) == (2, 2, 1)
    assert learner.classes == [False, True]
    assert set(learner.features) == {"colour=red", "load"}


@pytest.mark.spark
def test_columns_that_cannot_be_used_are_rejected(rows: Any) -> None:
    for changed, error, message in (
        ({"key": "device"}, UnknownNameError, "no column 'device'"),
        ({"numbers": None, "words": None}, ParameterError, "pass `numbers` or `words`"),
        ({"numbers": "i"}, DataError, "'i' is not a map"),
        ({"key": "n"}, DataError, "the key column 'n' holds map"),
        ({"label": "s"}, DataError, "the label column 's' holds map"),
        ({"order": "y"}, DataError, "the order column 'y' holds string"),
        ({"buckets": 0}, ParameterError, "'buckets' parameter of learn_stream must be an int >= 1"),
    ):
        with pytest.raises(error, match=message):
            learn_stream(rows, **{**COLUMNS, **changed})


@pytest.mark.spark
def test_an_empty_checkpoint_has_no_learners(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a checkpoint"):
        models_of(tmp_path / "nothing", spark)


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'varifold\[spark\]' \(and Java 17\)"):
        models_of("anywhere")

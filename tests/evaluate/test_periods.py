"""Metrics by period, by label and prediction by prediction, against counting by hand and scikit-learn."""

from __future__ import annotations

import csv
import json
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

import varifold
from varifold import streams
from varifold.base.clock import looks_like_time, parse_time
from varifold.cli import main
from varifold.errors import DataError, ParameterError
from varifold.evaluate import Predictions, prequential, repeat
from varifold.evaluate.metrics import cohens_kappa

DAYS = ["2026-01-30", "2026-01-31T23:59:00", "2026-02-01", "2026-02-02", "2026-03-05", ""]


def rows(n: int = 300) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    made = []
    for i in range(n):
        k = int(rng.integers(3))
        made.append({"a": k + rng.normal(), "b": "uv"[i % 2], "when": DAYS[i * len(DAYS) // n], "y": "xyz"[k], "no": i})
    return made


def stream(**options: Any) -> Any:
    return streams.read(rows(), target="y", time="when", id="no", **options)


# ---------------------------------------------------------------- labels


def test_kappa_and_scores_by_label_are_those_of_scikit_learn() -> None:
    result = prequential(varifold.AROW(), stream(), predictions=True)
    kept = result.predictions
    assert kept is not None
    names = [*result.labels, "none"]
    truth, predictions = ([names[c] for c in codes.tolist()] for codes in (kept.truth, kept.predicted))
    assert result.kappa == pytest.approx(cohen_kappa_score(truth, predictions))
    assert result.metrics()["kappa"] == result.kappa
    precision, recall, f1, count = precision_recall_fscore_support(truth, predictions, labels=result.labels)
    found = result.per_label()
    for i, label in enumerate(result.labels):
        assert found[label].precision == pytest.approx(precision[i])
        assert found[label].recall == pytest.approx(recall[i])
        assert found[label].f1 == pytest.approx(f1[i])
        assert found[label].count == count[i]
    assert sum(s.predicted for s in found.values()) == 300 - predictions.count("none")


def test_kappa_has_no_value_without_two_labels() -> None:
    assert np.isnan(cohens_kappa(np.zeros((2, 3), dtype=np.int64)))
    assert np.isnan(cohens_kappa(np.array([[0, 5]])))
    assert cohens_kappa(np.array([[0, 5, 5], [0, 5, 5]])) == 0.0


# ---------------------------------------------------------------- periods


@pytest.mark.parametrize("delay", [None, 7])
@pytest.mark.parametrize("block_rows", [11, 65_536])
def test_periods_add_up_to_the_whole_and_agree_with_the_predictions(block_rows: int, delay: int | None) -> None:
    result = prequential(varifold.AROW(), stream(block_rows=block_rows), by="month", delay=delay, predictions=True)
    kept = result.predictions
    assert kept is not None
    assert [p.name for p in result.periods] == ["2026-01", "2026-02", "2026-03", "(no time)"]
    assert sum(p.confusion for p in result.periods).tolist() == result.confusion.tolist()
    january = [str(t).startswith("2026-01") for t in kept.times or []]
    wrong = (kept.truth != kept.predicted)[january]
    first = result.periods[0]
    assert (first.instances, first.scored) == (100, 100)
    assert first.cer == pytest.approx(wrong.mean())
    assert first.metrics()["accuracy"] == pytest.approx(1 - wrong.mean())
    share = sum(p.majority_cer * p.scored for p in result.periods) / result.scored
    assert share == pytest.approx(result.majority_cer)


def test_periods_of_so_many_instances_and_of_every_unit() -> None:
    by_count = prequential(varifold.AROW(), stream(), by=120).periods
    assert [(p.name, p.instances) for p in by_count] == [
        ("1 to 120", 120),
        ("121 to 240", 120),
        ("241 to 360", 60),
    ]
    for by, names in {
        "hour": ["2026-01-30 00:00", "2026-01-31 23:00", "2026-02-01 00:00"],
        "day": ["2026-01-30", "2026-01-31", "2026-02-01"],
        "week": ["2026-W05", "2026-W06", "2026-W10"],
        "year": ["2026", "(no time)"],
    }.items():
        assert [p.name for p in prequential(varifold.AROW(), stream(), by=by).periods][: len(names)] == names


def test_periods_without_times_or_of_an_unknown_unit_are_rejected() -> None:
    with pytest.raises(ParameterError, match=r"hour, day, week, month, year.*'decade'"):
        prequential(varifold.AROW(), stream(), by="decade")
    with pytest.raises(DataError, match="time of each instance"):
        prequential(varifold.AROW(), [({"a": 1.0}, 1)], by="day")
    learner = varifold.AROW()
    bad = streams.read([{"a": 1.0, "y": 0, "t": "2026-01-01"}, {"a": 1.0, "y": 1, "t": "soon"}], target="y", time="t")
    with pytest.raises(DataError, match=r"instance 2: 'soon' is not a point in time; write ISO 8601"):
        prequential(learner, bad, by="day")
    assert learner.steps == 0


def test_times_are_read_as_people_write_them() -> None:
    noon = datetime(2026, 3, 4, 12, 30)
    for value in ("2026-03-04T12:30", "2026-03-04 12:30:00", noon, np.datetime64("2026-03-04T12:30")):
        assert parse_time(value) == noon
    assert parse_time("2026-03") == datetime(2026, 3, 1)
    assert parse_time(date(2026, 3, 4)) == datetime(2026, 3, 4)
    seconds = 1_772_627_400
    for value in (seconds, seconds * 1_000, str(seconds * 1_000_000), seconds * 1e9):
        assert parse_time(value).strftime("%Y-%m-%d %H:%M") == "2026-03-04 12:30"
    for value in ("", 12, True, float("inf"), None, "1e400"):
        with pytest.raises(DataError, match="not a point in time"):
            parse_time(value)
    assert [looks_like_time(t) for t in ("2026-03-04", "2026-03-04T12:30:01.5Z", "12", "3-4", "2026-03-04 noon")] == [
        *(True, True),
        *(False, False, False),
    ]


# ---------------------------------------------------------------- predictions


def test_predictions_are_the_ones_that_were_scored() -> None:
    parts: list[Predictions] = []
    result = prequential(varifold.AROW(), stream(block_rows=64), predictions=parts.append)
    assert result.predictions is None
    assert [part.start for part in parts] == list(range(0, 300, 64))
    whole = prequential(varifold.AROW(), stream(), predictions=True).predictions
    assert whole is not None
    assert whole.probabilities is not None
    assert [r for part in parts for r in part.records()] == list(whole.records())
    record = list(whole.records())[-1]
    assert set(record) == {"row", "id", "time", "true", "label", "p", "p_true"}
    assert (record["row"], record["id"]) == (300, 299)
    assert record["p"] == whole.probabilities[-1].max()
    assert next(iter(whole.records()))["p"] is None


def test_predictions_of_repeats() -> None:
    block = varifold.to_block([{"a": float(i)} for i in range(40)], [i % 2 for i in range(40)])
    summary = repeat(varifold.AROW, block, repeats=2, predictions=True, by=30)
    assert [len(r.predictions or ()) for r in summary.results] == [40, 40]
    assert [len(r.periods) for r in summary.results] == [2, 2]
    with pytest.raises(ParameterError, match="one repeat"):
        repeat(varifold.AROW, block, repeats=2, predictions=print)


# ---------------------------------------------------------------- on the command line


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "rows.csv"
    with place.open("w", newline="") as out:
        writer = csv.DictWriter(out, ["a", "b", "when", "y", "no"])
        writer.writeheader()
        writer.writerows(rows())
    return place


def run(*words: Any) -> int:
    return main(["run", *map(str, words), "--model", "arow", "--target", "y", "--id", "no"])


def test_the_command_shows_periods_labels_and_confusions(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "--time", "when", "--by", "month", "--confusion") == 0
    shown = capsys.readouterr().out
    assert re.search(r"^2026-02 +100 ", shown, re.M)
    assert "precision  recall" in shown
    assert "true \\ predicted" in shown
    assert run(file, "--time", "when", "--by", "month", "--format", "csv", "--scenario", "vfs:0.2") == 0
    assert [r["period"] for r in csv.DictReader(capsys.readouterr().out.splitlines())][:2] == ["2026-01", "2026-02"]
    assert run(file, "--by", "100", "--format", "json", "--shuffle", "--ignore", "when") == 0
    found = json.loads(capsys.readouterr().out)
    assert [p["instances"] for p in found["periods"]] == [100, 100, 100]
    assert found["per_label"]["x"]["count"] == sum(found["confusion"][found["labels"].index("x")])


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_command_writes_every_prediction(file: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"answers.{suffix}"
    assert run(file, "--time", "when", "--predictions", out, "--format", "json") == 0
    readers: dict[str, Any] = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}
    found = readers[suffix](out)
    assert found.columns == ["row", "id", "time", "true", "label", "p", "p_true"]
    assert len(found) == 300
    assert found["p"].max() <= 1.0


def test_the_command_rejects_what_cannot_work(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["--by", "month"], "--by month needs --time COL"),
        (["--by", "decade"], "nor a number of instances"),
        (["--by", "month", "--time", "when", "--shuffle"], "in its order"),
        (["--predictions", "answers.txt"], "suffix"),
        (["--predictions", "answers.csv", "--repeats", "2"], "one repeat"),
    ):
        assert run(file, *words) == 2
        assert message in capsys.readouterr().err

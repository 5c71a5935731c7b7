"""`varifold predict`, and going on with a model: --load, --checkpoint-every, --key, signals."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import varifold
from varifold import AROW, PerKey
from varifold.cli import main


def write(path: Path, n: int, *, start: int = 0, labelled: bool = True) -> list[dict[str, Any]]:
    rows = []
    for i in range(start, start + n):
        rng = random.Random(i)
        a = round(rng.gauss(0, 1), 3)
        row = {"n": f"r{i}", "a": a, "b": round(rng.random(), 3), "valve": rng.choice(["open", "shut"])}
        row |= {"device": rng.choice("xyz"), "state": "up" if a > 0 else "down"}
        rows.append(row if labelled else {k: v for k, v in row.items() if k != "state"})
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def features(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in ("n", "state")}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that learned 200 rows of a file and remembers how they were read."""
    write(tmp_path / "train.csv", 200)
    target = ["--target", "state", "--id", "n", "--model", "arow", "--save", str(tmp_path / "model")]
    assert main(["run", str(tmp_path / "train.csv"), *target]) == 0
    return tmp_path / "model"


def plain(rows: list[dict[str, Any]]) -> AROW:
    learner = AROW()
    for row in rows:
        learner.learn_one(features(row), row["state"])
    return learner


def test_a_model_remembers_how_its_data_was_read(model: Path) -> None:
    found = varifold.load(model).reading
    assert (found["target"], found["id"]) == ("state", "n")
    assert found["types"] == {"a": "numeric", "b": "numeric", "valve": "category", "device": "category"}


def test_a_model_remembers_ignored_lists_and_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "a.jsonl", tmp_path / "a.model"
    when = [f"2026-01-{day:02}T10:00:00Z" for day in range(1, 29)]
    rows = [{"ts": each, "tags": ["a"], "o": {"q": i}, "p": i % 2, "y": "pq"[i % 2]} for i, each in enumerate(when)]
    data.write_text("\n".join(map(json.dumps, rows)))
    options = ["--target", "y", "--time", "ts", "--ignore", "tags,o", "--model", "arow", "--save", str(model)]
    assert main(["run", str(data), *options]) == 0
    assert set(varifold.load(model).features) == {"p"}
    assert main(["predict", str(model), str(data), "--explain", "5"]) == 0
    assert "o.q" not in capsys.readouterr().out
    assert main(["explain", str(model), "--data", str(data), "--row", "3"]) == 0
    data.write_text('{"ts": \n' + data.read_text())
    assert main(["predict", str(model), str(data), "--on-error", "skip"]) == 0
    assert "28 rows predicted, 1 row could not be read" in capsys.readouterr().err


@pytest.mark.parametrize("labelled", [True, False])
def test_predictions_of_rows_with_and_without_labels(
    model: Path, tmp_path: Path, labelled: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = write(tmp_path / "new.csv", 30, start=500, labelled=labelled)
    learner = plain(write(tmp_path / "train.csv", 200))
    capsys.readouterr()
    copied = ["--target", "state"] if labelled else []
    assert main(["predict", str(model), str(tmp_path / "new.csv"), *copied]) == 0
    predictions = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [a["n"] for a in predictions] == [row["n"] for row in rows]
    assert [a["label"] for a in predictions] == [learner.predict_one(features(row)) for row in rows]
    for prediction, row in zip(predictions, rows, strict=True):
        expected = learner.predict_proba_one(features(row))
        assert {y: float(prediction[f"p:{y}"]) for y in expected} == expected
        assert prediction.get("state") == row.get("state")


def test_files_of_other_formats(model: Path, tmp_path: Path) -> None:
    write(tmp_path / "new.csv", 30, start=500, labelled=False)
    for name in ("out.parquet", "out.jsonl", "out.csv"):
        assert main(["predict", str(model), str(tmp_path / "new.csv"), "--out", str(tmp_path / name)]) == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert table == lines
    with (tmp_path / "out.csv").open() as file:
        assert [row["label"] for row in csv.DictReader(file)] == [line["label"] for line in lines]


def test_explanations(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = write(tmp_path / "new.csv", 3, start=500, labelled=False)
    learner = plain(write(tmp_path / "train.csv", 200))
    capsys.readouterr()
    arguments = ["--explain", "2", "--no-probabilities", "--format", "jsonl"]
    assert main(["predict", str(model), str(tmp_path / "new.csv"), *arguments]) == 0
    for line, row in zip(capsys.readouterr().out.splitlines(), rows, strict=True):
        parts = list(learner.explain_one(features(row)).items())[:2]
        found = json.loads(line)
        assert found["explanation"] == "; ".join(f"{name} {part:+.4g}" for name, part in parts)
        assert not any(key.startswith("p:") for key in found)


def test_columns_that_the_model_does_not_know_are_reported(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("pressure,flow\n1,2\n3,4\n")
    assert main(["predict", str(model), str(other)]) == 0
    message = capsys.readouterr().err
    assert "none of the columns (flow, pressure) is a feature that" in message
    assert "learned (a, b, device, valve)" in message
    other.write_text("pressure,b\n1,2\n")
    assert main(["predict", str(model), str(other)]) == 0
    assert "none of the columns" not in capsys.readouterr().err


def test_columns_of_the_model_that_are_in_no_row_are_reported(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.csv"
    write(new, 20)

    def reported(header: str, *options: str) -> str:
        new.write_text("\n".join([header, *new.read_text().splitlines()[1:]]) + "\n")
        capsys.readouterr()
        assert main(["predict", str(model), str(new), "--out", str(tmp_path / "out.csv"), *options]) == 0
        return capsys.readouterr().err

    assert reported("n,a,b,valve,device,state") == "20 rows predicted\n"
    message = reported("n,a,b,tap,device,state")
    assert "the column 'valve' of " in message
    assert "is in no row, and 'tap' is new; if it was renamed, pass --rename valve=tap\n" in message
    assert reported("n,a,b,tap,device,state", "--rename", "valve=tap") == "20 rows predicted\n"
    message = reported("n,a,c,tap,device,state")
    assert "2 columns of" in message
    assert "are in no row (b, valve), and 2 are new (c, tap); if some were renamed, pass --rename OLD=NEW" in message
    assert reported("n,a,b,valve,device,state", "--ignore", "b,state") == "20 rows predicted\n"
    assert main(["predict", str(model), str(new), "--rename", "x=y"]) == 2
    assert "no feature 'x'" in capsys.readouterr().err


def test_renamed_numbers_are_read_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(f"{i % 9},{i % 10}", "up" if i % 9 > 4 else "down") for i in range(90)]
    old, new, model = tmp_path / "old.csv", tmp_path / "new.csv", tmp_path / "model"
    old.write_text("size;y\n" + "".join(f"{size};{y}\n" for size, y in rows))
    new.write_text("width\n" + "".join(f"{size}\n" for size, _ in rows))
    assert main(["run", str(old), "--target", "y", "--model", "arow", "--save", str(model)]) == 0
    outputs = []
    for file, options in ((old, ["--ignore", "y"]), (new, ["--delimiter", ";", "--rename", "size=width"])):
        capsys.readouterr()
        assert main(["predict", str(model), str(file), *options]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(("column", "values"), [("text", ["all good here now fine"]), ("when", ["2026-03-04"])])
def test_words_and_parts_of_dates_belong_to_their_column(
    column: str, values: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, other, model = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "model"
    rows = [{"a": i % 7, column: values[0], "y": "pq"[i % 2]} for i in range(60)]
    data.write_text("\n".join(map(json.dumps, rows)))
    given = ["--types", "text=text"] if column == "text" else ["--dates", "when=weekday+hour"]
    assert main(["run", str(data), "--target", "y", *given, "--model", "arow", "--save", str(model)]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(data)]) == 0
    assert capsys.readouterr().err == "60 rows predicted\n"
    other.write_text("\n".join(json.dumps({"a": row["a"], "b": 1}) for row in rows))
    assert main(["predict", str(model), str(other)]) == 0
    assert f"the column {column!r} of" in capsys.readouterr().err


def test_columns_that_come_and_go_are_not_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A column that ended long before the end of the file, and one that few rows have."""
    data, new, model = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "model"
    rows = [{"a": i % 7, "y": "pq"[i % 2]} | ({"ended": 1} if i < 100 else {}) for i in range(300)]
    rows = [row | ({"rare": 1} if i % 20 == 0 else {}) for i, row in enumerate(rows)]
    data.write_text("\n".join(map(json.dumps, rows)))
    new.write_text('{"a": 1}\n' * 50)
    assert main(["run", str(data), "--target", "y", "--model", "arow", "--save", str(model)]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(new)]) == 0
    assert capsys.readouterr().err == "50 rows predicted\n"
    new.write_text('{"a": 1}\n' * 500)
    assert main(["predict", str(model), str(new)]) == 0
    assert "is in no row (rare)" in capsys.readouterr().err


def test_keys_without_a_learner_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, new, model = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "model"
    write(data, 200)
    options = ["--target", "state", "--id", "n", "--key", "device", "--model", "arow", "--save", str(model)]
    assert main(["run", str(data), *options]) == 0
    new.write_text("n,a,b,valve,device\n1,1,1,open,x\n1,1,1,open,new-1\n2,1,1,open,new-1\n")
    capsys.readouterr()
    assert main(["predict", str(model), str(new), "--no-probabilities"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == ["n,device,label", "1,x,up", "1,new-1,", "2,new-1,"]
    assert f"2 rows have keys without a learner in {model}, so there is no prediction: new-1\n" in err
    assert "in no row" not in err


def test_input_columns_do_not_replace_those_of_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "a.csv", tmp_path / "model"
    data.write_text("a,label\n" + "".join(f"{i % 2},{'ud'[i % 2]}\n" for i in range(60)))
    assert main(["run", str(data), "--target", "label", "--model", "arow", "--save", str(model)]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(data), "--target", "label", "--no-probabilities"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == ["row,label (input),label", "1,u,u", "2,d,d"]


def test_an_empty_file_and_a_model_without_labels(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.csv").write_text("a,b\n")
    assert main(["predict", str(model), str(tmp_path / "empty.csv")]) == 1
    assert "no instances" in capsys.readouterr().err
    AROW().save(tmp_path / "blank")
    assert main(["predict", str(tmp_path / "blank"), str(tmp_path / "empty.csv")]) == 1
    assert "not learned anything" in capsys.readouterr().err
    assert main(["predict", str(model), str(tmp_path / "train.csv"), "--out", str(tmp_path / "x.xls")]) == 2


def test_a_run_goes_on_with_a_model(model: Path, tmp_path: Path) -> None:
    rows = write(tmp_path / "more.csv", 100, start=200)
    arguments = ["--load", str(model), "--save", str(tmp_path / "again")]
    assert main(["run", str(tmp_path / "more.csv"), *arguments]) == 0
    again = varifold.load(tmp_path / "again")
    assert again.steps == 300
    learner = plain(write(tmp_path / "train.csv", 200))
    for row in rows:
        learner.learn_one(features(row), row["state"])
    x = features(rows[0])
    assert again.predict_proba_one(x) == learner.predict_proba_one(x)
    assert again.reading["target"] == "state"


@pytest.mark.parametrize(
    "options",
    [["--model", "arow"], ["--repeats", "2"], ["--shuffle"], ["--scale", "none"], ["--key", "device"]],
)
def test_going_on_excludes_what_makes_a_new_learner(
    model: Path, tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(tmp_path / "train.csv"), "--load", str(model), *options]) == 2
    assert f"leave out {options[0]}" in capsys.readouterr().err


def test_one_learner_per_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = write(tmp_path / "train.csv", 300)
    arguments = [
        "--target",
        "state",
        "--id",
        "n",
        "--key",
        "device",
        "--model",
        "arow",
        "--save",
        str(tmp_path / "model"),
    ]
    assert main(["run", str(tmp_path / "train.csv"), *arguments]) == 0
    expected = PerKey(AROW(), key="device")
    for row in rows:
        expected.learn_one(features(row), row["state"])
    found = varifold.load(tmp_path / "model")
    assert (found.keys, found.steps) == (expected.keys, 300)
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "train.csv"), "--format", "jsonl"]) == 0
    labels = [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()]
    assert labels == [expected.predict_one(features(row)) for row in rows]


@pytest.mark.parametrize("command", ["run", "follow"])
def test_a_bound_of_keys_needs_a_key(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "train.csv", 20)
    options = [str(tmp_path / "train.csv")] if command == "run" else []
    assert main([command, *options, "--target", "state", "--max-keys", "5"]) == 2
    assert "--max-keys needs --key" in capsys.readouterr().err


def test_run_keeps_the_keys_that_learned_last(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", 60)
    path = tmp_path / "model"
    command = ["run", str(tmp_path / "train.csv"), "--target", "state", "--key", "device", "--max-keys", "1"]
    assert main([*command, "--model", "arow", "--save", str(path)]) == 0
    assert len(varifold.load(path).keys) == 1


def test_checkpoints_need_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "train.csv", 20)
    assert main(["run", str(tmp_path / "train.csv"), "--target", "state", "--checkpoint-every", "5"]) == 2
    assert "--checkpoint-every needs --save" in capsys.readouterr().err


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_its_summary_and_its_model(tmp_path: Path, sign: signal.Signals) -> None:
    """Rows come from a pipe that stays open, as from tail -f."""
    write(tmp_path / "train.csv", 6_000)
    arguments = ["-", "--input-format", "csv", "--target", "state", "--id", "n", "--model", "arow"]
    saving = ["--save", str(tmp_path / "model"), "--checkpoint-every", "1000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "varifold", "run", *arguments, *saving, "--format", "json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    )
    assert process.stdin is not None
    data = (tmp_path / "train.csv").read_bytes()
    body = data.partition(b"\n")[2]
    process.stdin.write(data + body * 40)
    process.stdin.flush()
    end = time.monotonic() + 20
    while time.monotonic() < end and not (tmp_path / "model").exists():
        time.sleep(0.02)
    process.send_signal(sign)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + sign
    found = json.loads(out)
    assert found["stopped"] == sign.name
    assert f"stopped after {found['instances']:,} instances" in errors.decode()
    assert varifold.load(tmp_path / "model").steps == found["instances"] > 1_000


def test_rows_without_any_label_point_to_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new.csv").write_text("a,state\n1,\n2,\n")
    assert main(["run", str(tmp_path / "new.csv"), "--target", "state", "--model", "arow"]) == 1
    assert "`varifold predict`" in capsys.readouterr().err


def test_rows_without_a_label_are_predicted_and_not_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = ["" if i % 4 == 0 else ("down", "up")[i % 2] for i in range(40)]
    (tmp_path / "some.csv").write_text("a,state\n" + "".join(f"{i % 2},{y}\n" for i, y in enumerate(labels)))
    arguments = ["--target", "state", "--model", "arow", "--format", "json", "--save", str(tmp_path / "model")]
    assert main(["run", str(tmp_path / "some.csv"), *arguments]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["instances"], facts["unlabelled"]) == (40, 10)
    assert varifold.load(tmp_path / "model").steps == 30
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "some.csv"), "--target", "state"]) == 0
    predictions = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [a["state"] for a in predictions[:4]] == ["", "up", "down", "up"]
    assert [a["label"] for a in predictions[:2]] == ["down", "up"]


def test_labels_that_are_spelled_alike_have_a_column_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = AROW()
    for step in range(30):
        model.learn_one({"a": step % 3}, [1, "1", "up"][step % 3])
    model.save(tmp_path / "m")
    (tmp_path / "rows.csv").write_text("a\n0\n1\n")
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "rows.csv")]) == 0
    found = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    shares = [model.predict_proba_one({"a": a}) for a in (0.0, 1.0)]
    columns = {1: "p:1", "1": 'p:"1"', "up": "p:up"}
    assert [{y: float(row[name]) for y, name in columns.items()} for row in found] == [pytest.approx(p) for p in shares]


@pytest.mark.parametrize("regressor", [False, True])
def test_the_target_is_not_read_unless_it_is_named(
    tmp_path: Path, regressor: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    train, new, model = tmp_path / "train.csv", tmp_path / "new.csv", tmp_path / "model"
    train.write_text("a,w,y\n" + "".join(f"{i},1,{i + 0.5 if regressor else i % 2}\n" for i in range(60)))
    assert main(["run", str(train), "--target", "y", "--weight", "w", "--model", "arow", "--save", str(model)]) == 0
    new.write_text("a,w,y\n" + "".join(f"{i},?,not known {i}\n" for i in range(300)))
    capsys.readouterr()
    assert main(["predict", str(model), str(new)]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 300
    assert not {"y", "w"} & set(rows[0])
    new.write_text("a,y\n" + "".join(f"{i},{i}\n" for i in range(300)))
    assert main(["predict", str(model), str(new), "--target", "y"]) == 0
    assert [float(row["y"]) for row in csv.DictReader(capsys.readouterr().out.splitlines())] == list(range(300))


def test_checkpoints_come_between_batches_of_about_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,state\n" + "".join(f"{i % 7},{'on' if i % 3 else 'off'}\n" for i in range(5000)))
    saved: list[int] = []
    monkeypatch.setattr(AROW, "save", lambda self, path: saved.append(self.steps))
    command = ["run", str(path), "--target", "state", "--model", "arow", "--save", str(tmp_path / "model")]
    assert main([*command, "--checkpoint-every", "2000"]) == 0
    assert saved == [2000, 4000, 5000]
    saved.clear()
    assert main([*command, "--checkpoint-every", "10"]) == 0
    assert saved == [1024, 2048, 3072, 4096, 5000, 5000]


def test_a_file_to_read_is_never_written_to(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "rows.csv"
    write(data, 20)
    before, saved = data.read_bytes(), model.read_bytes()
    for command in (
        ["predict", str(model), str(data), "--out", str(data)],
        ["predict", str(model), str(data), "--out", str(tmp_path / "." / "rows.csv")],
        ["predict", str(model), str(data), "--out", str(model), "--format", "csv"],
        ["run", str(data), "--target", "state", "--model", "arow", "--save", str(data)],
        ["run", str(data), "--target", "state", "--model", "arow", "--predictions", str(data)],
    ):
        assert main(command) != 0
        assert "is a file to read" in capsys.readouterr().err
        assert data.read_bytes() == before
        assert model.read_bytes() == saved


def test_an_output_file_is_complete_or_as_it_was(tmp_path: Path) -> None:
    """An error in the middle of the input leaves neither a part of a file nor a temporary one."""
    data = tmp_path / "a.jsonl"
    rows = [json.dumps({"a": i % 7, "y": "up" if i % 7 > 3 else "down"}) for i in range(9_000)]
    data.write_text("\n".join(rows) + "\n")
    out = tmp_path / "out.csv"
    model = tmp_path / "model.vf"
    assert main(["run", str(data), "--target", "y", "--model", "arow", "--save", str(model)]) == 0
    out.write_text("before")
    data.write_text("\n".join([*rows, '{"a": ', ""]))
    for command in (
        ["predict", str(model), str(data)],
        ["detect", str(data), "--model", "halfspacetrees", "--ignore", "y"],
    ):
        assert main([*command, "--out", str(out)]) == 1
        assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "model.vf", "out.csv"]


def test_exchanged_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "a.csv", tmp_path / "a.model"
    data.write_text("a,y\n" + "1,p\n2,q\n" * 20)
    assert main(["run", str(data), "--target", "y", "--model", "arow", "--save", str(model)]) == 0
    assert main(["predict", str(data), str(model)]) == 2
    message = f"{data} is no model file, {model} is: the model comes first, then the data"
    assert message in capsys.readouterr().err


def test_a_renamed_column_of_words_gets_no_advice_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, saved = (tmp_path / name for name in ("old.csv", "new.csv", "words.model"))
    rows = [f"{i % 3},the pump {i} is very {'loud' if i % 2 else 'quiet'},{i % 2}" for i in range(60)]
    for path, name in [(old, "comment"), (new, "review")]:
        path.write_text("\n".join([f"a,{name},y", *rows]) + "\n")
    assert main(["run", str(old), "--target", "y", "--model", "arow", "--save", str(saved)]) == 0
    capsys.readouterr()
    assert main(["predict", str(saved), str(new), "--out", str(tmp_path / "out.csv")]) == 0
    message = capsys.readouterr().err
    assert "the column 'comment' of" in message
    assert "--rename" not in message

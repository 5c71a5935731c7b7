"""``--coverage`` of `varifold run`, what `varifold predict` writes, and the picture."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import varifold
from varifold.cli import main


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    number = 10.0 + 3.0 * a + b + rng.normal(size=300)
    for name, target in (("numbers", number.tolist()), ("labels", np.where(number > 10.0, "up", "down").tolist())):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["a", "b", "y"], *zip(a, b, target, strict=True)])
    return tmp_path


def facts(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    assert main(["run", *args, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_metrics_of_the_default_and_of_requested_coverages(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = [str(files / "numbers.csv"), "--target", "y"]
    (only,) = facts(capsys, *numbers)["intervals"]
    assert only["coverage"] == 0.9
    assert 0.85 < only["covered"]["mean"] < 0.95
    some = facts(capsys, *numbers, "--model", "arow", "--coverage", ".8", "--coverage", ".5")["intervals"]
    assert [each["coverage"] for each in some] == [0.5, 0.8]
    assert "intervals" not in facts(capsys, *numbers, "--model", "arow")
    assert main(["run", *numbers]) == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("coverage (0.9)", "interval width (0.9)", "interval score (0.9)"))
    (sets,) = facts(capsys, str(files / "labels.csv"), "--target", "y", "--coverage", ".9")["sets"]
    assert 1.0 <= sets["size"]["mean"] < 2.0


def test_csv_has_columns_for_them(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(files / "numbers.csv"), "--target", "y", "--format", "csv"]) == 0
    (line,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert float(line["interval_score_0.9"]) >= float(line["width_0.9"])


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_predictions_have_intervals_and_sets(files: Path, suffix: str) -> None:
    for name, columns in (("numbers", ["low", "high"]), ("labels", ["set"])):
        source, out = str(files / f"{name}.csv"), files / f"out.{suffix}"
        saved = ["--coverage", "0.9", "--save", str(files / name), "--predictions", str(files / f"run.{suffix}")]
        assert main(["run", source, "--target", "y", "--model", "arow", *saved]) == 0
        assert main(["predict", str(files / name), source, "--out", str(out)]) == 0
        model = varifold.load(files / name)
        row = _last(out)
        assert set(columns) <= set(row) & set(_last(files / f"run.{suffix}"))
        a, b = (float(v) for v in (files / f"{name}.csv").read_text().splitlines()[-1].split(",")[:2])
        if name == "numbers":
            wanted = model.predict_interval_one({"a": a, "b": b})
            assert (float(row["low"]), float(row["high"])) == pytest.approx(tuple(wanted))
        else:
            held = row["set"] if suffix == "jsonl" else json.loads(row["set"])
            assert set(held) == model.predict_set_one({"a": a, "b": b})


def _last(path: Path) -> dict[str, Any]:
    if path.suffix == ".parquet":
        found: dict[str, Any] = pq.read_table(path).to_pylist()[-1]
        return found
    lines = path.read_text().splitlines()
    return json.loads(lines[-1]) if path.suffix == ".jsonl" else list(csv.DictReader(lines))[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--coverage", "1"], "above 0 and below 1"),
        (["--coverage", "nan"], "between 0 and 1"),
        (["--coverage", "much"], "between 0 and 1"),
        (["--coverage", ".9", "--model", "river.linear_model:LinearRegression"], "no parameter 'coverages'"),
    ],
)
def test_what_cannot_work_is_rejected(
    files: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(files / "numbers.csv"), "--target", "y", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_saved_model_keeps_its_coverages(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = [str(files / "numbers.csv"), "--target", "y"]
    assert main(["run", *source, "--save", str(files / "model")]) == 0
    assert main(["run", *source, "--load", str(files / "model"), "--coverage", ".5"]) == 2
    assert "leave out --coverage" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["number", "class"])
def test_one_learner_per_key_gives_intervals_and_sets(
    tmp_path: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(5)
    rows = [(rng.choice("pq"), rng.gauss(0, 1)) for _ in range(900)]
    wanted = {"number": lambda k, a: a + (3 if k == "p" else 0) + rng.gauss(0, 1), "class": lambda k, a: int(a > 0)}
    lines = [f"{k},{a:.6f},{wanted[target](k, a)}" for k, a in rows]
    source = tmp_path / "rows.csv"
    source.write_text("\n".join(["device,a,y", *lines]) + "\n")
    saved = str(tmp_path / "model")
    options = ["--target", "y", "--target-type", target, "--key", "device", "--model", "arow", "--coverage", ".8"]
    assert main(["run", str(source), *options, "--save", saved, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (scores,) = found["intervals" if target == "number" else "sets"]
    assert 0.74 < scores["covered"]["mean"] < 0.88
    assert main(["predict", saved, str(source), "--out", str(tmp_path / "out.jsonl")]) == 0
    row, model = _last(tmp_path / "out.jsonl"), varifold.load(saved)
    x = {"device": rows[-1][0], "a": float(lines[-1].split(",")[1])}
    if target == "number":
        assert [row["low"], row["high"]] == list(model.predict_interval_one(x, 0.8))
    else:
        assert set(row["set"]) == model.predict_set_one(x, 0.8)


def test_the_picture_has_a_band(files: Path) -> None:
    assert main(["run", str(files / "numbers.csv"), "--target", "y", "--plot", str(files / "band.png")]) == 0
    assert (files / "band.png").stat().st_size > 10_000

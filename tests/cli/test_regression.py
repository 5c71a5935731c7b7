"""The command line on a target that is a number: run, save, load, predict, explain, inspect, bench, pictures."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import varifold
from varifold.cli import main


@pytest.fixture
def path(tmp_path: Path) -> str:
    rng = np.random.default_rng(1)
    place = tmp_path / "plant.csv"
    with place.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["heat", "load", "valve", "output"])
        for _ in range(300):
            heat, load = rng.normal(), rng.normal()
            output = 40.0 + 3.0 * heat - load + 0.1 * rng.normal()
            rows.writerow([heat if rng.random() < 0.8 else "", load, rng.choice(["open", "shut"]), output])
    return str(place)


def run(*words: str) -> int:
    return main(list(words))


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


def test_the_default_learner_is_a_regressor(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", path, "--target", "output", "--format", "json") == 0
    facts = found(capsys)
    assert facts["task"] == "regression"
    assert facts["model"].endswith("regressor")
    assert facts["mae"]["mean"] < 0.7 * facts["mean_mae"]


def test_parameters_go_to_the_regressor(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("run", path, "--target", "output", "--model", "arow:r=0.5,covariance=full", "--format", "json")
    facts = found(capsys)
    assert (facts["model"], facts["params"]["r"], facts["params"]["covariance"]) == ("arowregressor", 0.5, "full")


def test_a_river_regressor_by_its_path(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = "river.tree:HoeffdingTreeRegressor:grace_period=50"
    assert run("run", path, "--target", "output", "--model", model, "--format", "json") == 0
    facts = found(capsys)
    assert facts["task"] == "regression"
    assert facts["params"]["grace_period"] == 50


def test_csv_and_quantile(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", path, "--target", "output", "--model", "arow", "--format", "csv", "--quantile", "0.9") == 0
    (line,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert line["model"] == "arowregressor"
    assert float(line["pinball"]) != pytest.approx(float(line["mae"]) / 2)


def test_whole_numbers_are_classes_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "rings.csv"
    place.write_text("size,rings\n" + "".join(f"{i % 29 + 0.1 * (i % 3)},{i % 29}\n" for i in range(200)))
    assert run("run", str(place), "--target", "rings", "--model", "arow") == 0
    message = capsys.readouterr()
    assert "29 classes" in message.out
    assert "29 numbers, each read as a class; --target-type number" in message.err
    assert run("run", str(place), "--target", "rings", "--model", "arow", "--target-type", "number") == 0
    message = capsys.readouterr()
    assert "targets from 1 to 28" in message.out or "targets from 0 to 28" in message.out
    assert "requested by --target-type" in message.err
    assert run("run", str(place), "--target", "rings", "--model", "arowregressor", "--target-type", "class") == 2
    assert "is a regressor" in capsys.readouterr().err


def test_targets_far_from_zero_are_shown_with_enough_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "prices.csv"
    place.write_text("size,price\n" + "".join(f"{i % 7},{1000000000.0 + i % 7 + 0.25}\n" for i in range(60)))
    assert run("run", str(place), "--target", "price", "--model", "meanregressor") == 0
    assert "targets from 1000000000.25 to 1000000006.25" in capsys.readouterr().out


@pytest.mark.real_data
def test_a_data_set_of_numbers_is_predicted_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data", "german", "--model", "arow", "--target-type", "number"]
    assert run("run", *options) == 0
    assert "targets from 1 to 2" in capsys.readouterr().out


def test_one_regressor_per_key(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "model")
    options = ["--target", "output", "--model", "arow", "--key", "valve", "--save", file, "--format", "json"]
    assert run("run", path, *options) == 0
    facts = found(capsys)
    assert facts["mae"]["mean"] < 0.7 * facts["mean_mae"]
    assert run("inspect", file, "--format", "json") == 0
    shown = found(capsys)
    assert (shown["method"], shown["of"], shown["labels"]) == ("perkeyregressor", "arowregressor", [])
    assert {row["key"] for row in shown["keys"]} == {"open", "shut"}
    assert run("predict", file, path, "--explain", "2", "--format", "jsonl") == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert isinstance(first["prediction"], float)
    assert "heat" in first["explanation"] or "load" in first["explanation"]


def test_saved_continued_explained_and_inspected(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "model")
    picture = str(tmp_path / "run.png")
    assert run("run", path, "--target", "output", "--model", "arow", "--save", model, "--plot", picture) == 0
    assert Path(picture).stat().st_size > 10_000
    learner = varifold.load(model)
    assert run("run", path, "--load", model, "--format", "json") == 0
    capsys.readouterr()
    assert run("predict", model, path, "--target", "output", "--explain", "1") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 300
    assert list(rows[0]) == ["row", "output", "prediction", "explanation"]
    assert run("explain", model, "--row", "heat=1", "load=0", "valve=open", "--format", "json") == 0
    facts = found(capsys)
    assert sum(part["parts"][0] for part in facts["features"]) == pytest.approx(facts["prediction"], rel=1e-9)
    assert facts["prediction"] == learner.predict_one({"heat": 1.0, "load": 0.0, "valve": "open"})
    assert run("explain", model, "--row", "heat=1", "--label", "high") == 2
    assert "which has no labels" in capsys.readouterr().err
    assert run("explain", model, "--row", "heat=1") == 0
    assert "sum" in capsys.readouterr().out
    assert run("inspect", model, "--format", "json") == 0
    assert found(capsys)["target"]["mean"] == pytest.approx(40.0, abs=1.0)


def test_a_classifier_does_not_go_on_with_numbers(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("heat,y\n1,up\n2,down\n")
    model = str(tmp_path / "model")
    assert run("run", str(labels), "--target", "y", "--model", "arow", "--save", model) == 0
    assert run("run", path, "--target", "output", "--load", model) == 2
    assert "holds the classifier 'arow'" in capsys.readouterr().err


def test_a_comparison_of_regressors(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "picture.png"
    models = "arow,meanregressor,river.linear_model:LinearRegression"
    options = ["bench", "run", "--data", path, "--target", "output", "--store", str(tmp_path / "s.sqlite")]
    assert run(*options, "--models", models) == 0
    table = capsys.readouterr().out
    assert "arowregressor" in table
    assert all(name in table for name in ("MAE", "RMSE", "R²", "the mean so far"))
    assert run(*options, "--models", models, "--html", str(page), "--plot", str(picture)) == 0
    assert "mean so far" in page.read_text()
    assert picture.stat().st_size > 10_000
    capsys.readouterr()
    assert run(*options, "--models", "arow,olsf") == 2
    assert "olsf is a classifier" in capsys.readouterr().err


def test_labels_that_occur_once_each_are_remarked_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("area,price\n" + "".join(f"{i},{i} EUR\n" for i in range(1, 21)))
    assert main(["run", str(file), "--target", "price", "--model", "arow"]) == 0
    assert "the 20 instances have 20 different labels, such as '1 EUR'" in capsys.readouterr().err


def test_a_target_with_decimal_commas_is_predicted_as_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / f"{month}.csv") for month in range(3)]
    for month, file in enumerate(files):
        rows = [f"{i % 7},5;{(i % 7) * 1.25 + month + i / 100:.2f}".replace(".", ",") for i in range(100)]
        Path(file).write_text("\n".join(["a;price", *rows]) + "\n")
    for options in ([], ["--decimal", ","], ["--decimal", ",", "--thousands", "."]):
        assert main(["run", *files, "--target", "price", "--model", "arow", "--format", "json", *options]) == 0
        facts = found(capsys)
        assert facts["instances"] == 300
        assert facts["task"] == "regression"
    assert main(["run", *files, "--target", "price", "--model", "arow", "--decimal", "."]) == 1
    message = capsys.readouterr().err
    assert "different labels among the first 100 rows" in message
    assert "--decimal ," in message
    study = ["bench", "run", "--data", *files, "--target", "price", "--models", "arow", "--decimal", "."]
    assert main([*study, "--store", str(tmp_path / "store.sqlite")]) == 1
    assert "different labels among the first 100 rows" in capsys.readouterr().err


def test_options_of_the_other_task_are_rejected(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", path, "--target", "output", "--positive", "open") == 2
    assert "--positive open names a label; the target is a number" in capsys.readouterr().err
    assert run("run", path, "--target", "valve", "--quantile", "0.9") == 2
    assert "--quantile 0.9 is for numbers, and the target is a class" in capsys.readouterr().err
    assert run("run", path, "--target", "output", "--quantile", "0.9", "--format", "json") == 0
    assert found(capsys)["quantile"] == 0.9


def test_a_text_among_the_numbers_of_a_target_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{i % 7},{101.5 + i * 1.25}" for i in range(300)]
    rows[40] = "3,oops"
    file = tmp_path / "prices.csv"
    file.write_text("\n".join(["a,price", *rows]))
    assert main(["run", str(file), "--target", "price", "--model", "arow"]) == 1
    assert "299 different numbers, such as 101.5, and 'oops', which is not one" in capsys.readouterr().err
    assert main(["run", str(file), "--target", "price", "--model", "arow", "--absent", "oops"]) == 0
    assert "arowregressor predicts it" in capsys.readouterr().err
    assert main(["run", str(file), "--target", "price", "--model", "arow", "--target-type", "class"]) == 0


def test_parameters_of_the_regressor_mean_the_regressor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("\n".join(["a,price", *(f"{i % 7},{101.5 + i * 1.25}" for i in range(100))]))
    assert main(["run", str(file), "--target", "price", "--model", "auto:loss=absolute", "--format", "json"]) == 0
    assert "autoregressor" in capsys.readouterr().out
    assert main(["run", str(file), "--target", "price", "--model", "auto:lost=absolute"]) == 2
    assert "AutoClassifier has no parameter 'lost'" in capsys.readouterr().err


def test_a_comparison_skips_rows_without_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("\n".join(["a,price", *(f"{i % 7},{101.5 + i * 1.25 if i % 9 else ''}" for i in range(200))]))
    options = ["--data", str(file), "--target", "price", "--store", str(tmp_path / "s.sqlite")]
    assert main(["bench", "run", *options, "--models", "arow,auto:loss=absolute"]) == 0
    table = capsys.readouterr().out
    assert "autoregressor:loss=absolute" in table
    assert "MAE" in table

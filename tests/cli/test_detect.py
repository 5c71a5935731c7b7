"""`varifold detect`: rows are scored without labels; a target only rates the scores."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

import varifold
from varifold.cli import main


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two correlated columns, one that is born, every fiftieth row an anomaly."""
    rng = random.Random(4)
    path = tmp_path / "pump.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["speed", "flow", "late", "label"])
        for t in range(900):
            speed = rng.gauss(50, 10)
            odd = t % 50 == 49
            flow = 5 * rng.random() if odd else 2 * speed + rng.gauss(0, 2)
            writer.writerow([speed, flow, rng.random() if t > 400 else "", "broken" if odd else "ok"])
    return path


def test_scores_are_rated_by_the_target(table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    given = ["--target", "label", "--rate", "0.02", "--format", "json", "--out", str(out)]
    assert main(["detect", str(table), *given]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] == 900
    assert facts["rated"]["anomalies"] == 18
    assert facts["rated"]["anomalous"] == ["broken"]
    assert facts["rated"]["auroc"] > 0.95
    assert facts["rated"]["precision"] > 0.5
    records = list(csv.DictReader(out.read_text().splitlines()))
    assert len(records) == 900
    assert sum(record["anomaly"].lower() == "true" for record in records) == facts["alarms"]
    assert all("flow" in record["because"] or "speed" in record["because"] for record in facts["most unusual"][:3])


def test_a_table_names_the_most_unusual_rows(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", str(table), "--ignore", "label", "--model", "taildetector:window=100"]) == 0
    printed = capsys.readouterr().out
    assert "900 rows" in printed
    assert "auroc" not in printed
    assert "because" in printed
    assert "The 10 most unusual rows, alarms first (--out FILE writes all):" in printed


def test_alarms_have_the_time_and_the_values(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rng = random.Random(2)
    rows = [
        f"2024-01-01 {t // 60:02}:{t % 60:02},{rng.gauss(20, 2):.2f},{rng.choice('ab')},{t % 7}" for t in range(900)
    ]
    rows[700] = "2024-01-01 11:40,95.25,a,2"
    path = tmp_path / "pump.csv"
    path.write_text("\n".join(["at,heat,valve,day", *rows]))
    assert main(["detect", str(path), "--time", "at", "--format", "json"]) == 0
    worst = json.loads(capsys.readouterr().out)["most unusual"][0]
    assert list(worst) == ["row", "at", "score", "p_value", "anomaly", "because"]
    assert (worst["row"], worst["at"]) == (701, "2024-01-01 11:40")
    assert worst["because"].startswith("heat=95.25 +")


def test_a_label_is_kept_where_the_output_has_its_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, out = tmp_path / "pump.csv", tmp_path / "out.csv"
    path.write_text("\n".join(["load,anomaly", *(f"{t % 7},{'yes' if t % 50 == 49 else 'no'}" for t in range(200))]))
    assert main(["detect", str(path), "--target", "anomaly", "--out", str(out)]) == 0
    assert "4 of 200 labelled rows are known anomalies, anomaly 'yes'" in capsys.readouterr().out
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["anomaly (input)"] for row in rows].count("yes") == 4
    assert {row["anomaly"] for row in rows} <= {"True", "False"}


def test_each_device_has_its_own_detector(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is usual for one pump is unusual for another."""
    rng = random.Random(2)
    path, saved = tmp_path / "pumps.csv", str(tmp_path / "pumps.varifold")
    rows = [f"{'ab'[t % 2]},{rng.gauss(500 * (t % 2), 10):.2f},{rng.gauss(0, 1):.2f}" for t in range(1200)]
    rows[1000] = "a,500,3.5"  # the load of b
    path.write_text("\n".join(["pump,load,noise", *rows]))

    def most_unusual(*given: str) -> dict[str, str]:
        assert main(["detect", str(path), "--format", "json", *given]) == 0
        worst: dict[str, str] = json.loads(capsys.readouterr().out)["most unusual"][0]
        return worst

    worst = most_unusual("--key", "pump", "--save", saved)
    assert (worst["row"], worst["pump"], worst["anomaly"]) == (1001, "a", True)
    assert worst["because"].startswith("load=500 +")
    assert most_unusual()["because"].startswith("noise")  # 500 is a usual load, of the other pump
    assert most_unusual("--load", saved)["pump"] in "ab"
    assert main(["detect", str(path), "--load", saved, "--key", "pump"]) == 2
    assert "--load continues a saved detector: leave out --key" in capsys.readouterr().err
    assert main(["detect", str(path), "--key", "pmup"]) == 1
    assert "no key column 'pmup'" in capsys.readouterr().err


def test_the_labels_of_anomalies_are_named(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--model", "taildetector:window=100", "--target", "label"]
    assert main(["detect", str(table), *model]) == 0
    assert "18 of 900 labelled rows are known anomalies, label 'broken' (all but the most frequent): " in (
        capsys.readouterr().out
    )
    assert main(["detect", str(table), *model, "--positive", "ok"]) == 0
    assert "882 of 900 labelled rows are known anomalies, label 'ok': " in capsys.readouterr().out


def test_a_model_file_is_not_data(table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "detector"
    varifold.TailDetector().save(saved)
    assert main(["detect", str(saved), str(table)]) == 1
    assert capsys.readouterr().err == (
        f"varifold: {saved} is a model file, not data; commands that continue a model take it with --load\n"
    )


def test_run_points_to_detect(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(table), "--target", "label", "--model", "autodetector"]) == 2
    assert "autodetector is a detector, which has no target; use `varifold detect`" in capsys.readouterr().err


def test_a_saved_detector_continues(table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "detector"
    assert main(["detect", str(table), "--ignore", "label", "--save", str(saved)]) == 0
    assert isinstance(varifold.load(saved), varifold.AutoDetector)
    assert main(["detect", str(table), "--ignore", "label", "--load", str(saved), "--save", str(saved)]) == 0
    assert varifold.load(saved).steps == 1800


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--model", "arow"], "not a detector"),
        (["--target", "label", "--positive", "blue"], "the labels are broken, ok"),
        (["--load", "x", "--model", "taildetector"], "leave out --model"),
    ],
)
def test_wrong_use_is_named(table: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str) -> None:
    assert main(["detect", str(table), *more]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", [["predict"], ["run", "--target", "label", "--load"]])
def test_a_detector_is_no_classifier(
    table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    saved = tmp_path / "detector"
    model = varifold.TailDetector()
    model.learn_one({"a": 1.0})
    model.save(saved)
    assert main([*command, str(saved), str(table)]) == 2
    assert "varifold detect --load" in capsys.readouterr().err


def test_a_classifier_is_no_detector(table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "model"
    model = varifold.AROW()
    model.learn_one({"a": 1.0}, "yes")
    model.save(saved)
    assert main(["detect", str(table), "--load", str(saved)]) == 2
    assert "is no detector" in capsys.readouterr().err


def test_a_renamed_column_is_reported_and_followed(
    table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, new = tmp_path / "pump.model", tmp_path / "new.csv"
    assert main(["detect", str(table), "--ignore", "label", "--save", str(model)]) == 0
    lines = table.read_text().splitlines()
    new.write_text("\n".join(["speed,flow_rate,late,label", *lines[-100:]]) + "\n")
    capsys.readouterr()
    assert main(["detect", str(new), "--load", str(model)]) == 0
    assert "'flow' of" in (message := capsys.readouterr().err)
    assert "pass --rename flow=flow_rate" in message
    assert main(["detect", str(new), "--load", str(model), "--rename", "flow=flow_rate"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    new.write_text("\n".join([lines[0], *lines[-100:]]) + "\n")
    assert main(["detect", str(new), "--load", str(model)]) == 0
    assert capsys.readouterr().out.replace("flow", "flow_rate").split() == out.split()
    assert main(["detect", str(new), "--rename", "flow=flow_rate"]) == 2
    assert "--rename needs a saved detector" in capsys.readouterr().err

"""``varifold run`` on files: gaps, columns that come later, weights, late labels, rows that cannot be read."""

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import varifold
from varifold.cli import main


def run_json(capsys, *argv):
    assert main(["run", *map(str, argv), "--model", "olvf", "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def readings(n, seed, columns):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        leak = rng.random() < 0.4
        row = {c: f"{rng.normal(2.0 * leak, 1.0):.4f}" if rng.random() > 0.3 else "" for c in columns}
        row["valve"] = ["open", "shut", "?"][rng.integers(0, 3)]
        row["y"] = "leak" if leak else "dry"
        yield row


def write_csv(path, rows):
    rows = list(rows)
    lines = [",".join(rows[0]), *[",".join(row.values()) for row in rows]]
    path.write_text("\n".join(lines) + "\n")
    return rows


@pytest.fixture
def months(tmp_path):
    """January has three sensors, February a fourth."""
    january, february = tmp_path / "jan.csv", tmp_path / "feb.csv"
    first = write_csv(january, readings(400, 0, ["a", "b", "c"]))
    second = write_csv(february, readings(300, 1, ["a", "b", "c", "new"]))
    return january, february, first + second


def test_a_column_added_in_february(capsys, months, tmp_path):
    january, february, rows = months
    model = tmp_path / "model"
    found = run_json(capsys, january, february, "--target", "y", "--save", model)
    assert (found["instances"], found["features"], found["names"], found["classes"]) == (700, 5, 6, 2)
    assert found["cer"]["mean"] < 0.5 * found["majority_cer"]
    learner = varifold.load(model)
    assert learner.features["new"].first_seen > 400
    expected = varifold.OLVF()
    wrong = 0
    for row in rows:
        x = {k: v if k == "valve" else float(v) for k, v in row.items() if k != "y" and v not in ("", "?")}
        wrong += expected.predict_one(x) != row["y"]
        expected.learn_one(x, row["y"])
    assert found["cer"]["mean"] == pytest.approx(wrong / 700)
    assert expected.features == learner.features


def test_picture_of_the_growing_space(months, tmp_path):
    pytest.importorskip("matplotlib")
    january, february, _ = months
    picture = tmp_path / "both.png"
    argv = ["run", str(january), str(february), "--target", "y", "--model", "olvf", "--plot", str(picture)]
    assert main(argv) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_a_file_keeps_its_order_by_default(capsys, months):
    january = months[0]
    assert run_json(capsys, january, "--target", "y", "--repeats", 3)["cer"]["std"] == 0.0
    assert run_json(capsys, january, "--target", "y", "--repeats", 3, "--shuffle")["cer"]["std"] > 0.0
    varied = run_json(capsys, january, "--target", "y", "--repeats", 3, "--scenario", "vfs:0.5")
    assert varied["cer"]["std"] > 0.0
    assert varied["features"] == 4


def test_compressed_and_standard_input(capsys, months, tmp_path):
    january = months[0]
    packed = tmp_path / "jan.csv.gz"
    packed.write_bytes(gzip.compress(january.read_bytes()))
    expected = run_json(capsys, january, "--target", "y")["cer"]
    assert run_json(capsys, packed, "--target", "y")["cer"] == expected
    env = {"PYTHONPATH": str(Path(varifold.__file__).parents[1])}
    command = [sys.executable, "-m", "varifold", "run", "-", "--target", "y", "--model", "olvf", "--format", "json"]
    done = subprocess.run(command, env=env, input=january.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["cer"] == expected


def test_svmlight_needs_no_target(capsys, tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("\n".join(f"{1 if i % 2 else -1} 1:{i % 2} 3:{i % 5}" for i in range(100)) + "\n")
    found = run_json(capsys, path)
    assert (found["instances"], found["classes"]) == (100, 2)


def test_weights_delay_positive_and_ignored_columns(capsys, tmp_path):
    path = tmp_path / "a.csv"
    rows = [
        {"a": str(i % 2), "leaks": str(i % 2), "wait": str(i % 7), "w": "1", "y": "yes" if i % 2 else "no"}
        for i in range(200)
    ]
    write_csv(path, rows)
    found = run_json(capsys, path, "--target", "y", "--weight", "w", "--ignore", "leaks", "--delay", "wait")
    assert (found["features"], found["delay"]) == (2, "wait")
    given = ("--weight", "w", "--ignore", "leaks", "--ignore", "wait")
    assert run_json(capsys, path, "--target", "y", *given)["features"] == 1
    assert found["names"] == 1
    assert run_json(capsys, path, "--target", "y", "--positive", "no")["positive"] == "no"


def test_rows_that_cannot_be_read(capsys, tmp_path):
    path = tmp_path / "a.csv"
    good = [f"{i % 2},{'yes' if i % 2 else 'no'}" for i in range(60)]
    path.write_text("\n".join(["a,y", *good[:30], "1,2,3,4,5", *good[30:]]) + "\n")
    assert main(["run", str(path), "--target", "y", "--model", "olvf"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("olvf on a.csv, stopped early after 30 instances: 1 column (1 feature), 2 classes")
    assert err.splitlines()[0] == "stopped after 30 instances; the metrics are of these alone"
    assert "line 32" in err
    assert err.count("\n") == 2
    partial = str(tmp_path / "out.csv")
    assert main(["run", str(path), "--target", "y", "--model", "olvf", "--predictions", partial]) == 1
    expected = f"stopped after 30 instances; the metrics and {partial} are of these alone"
    assert expected in capsys.readouterr().err.splitlines()
    for form in ("json", "csv"):
        assert main(["run", str(path), "--target", "y", "--model", "olvf", "--format", form]) == 1
        found = partial_run(capsys.readouterr().out, form)
        assert "line 32: 5 cells" in found["stopped"]
        assert int(found["instances"]) == 30
    assert main(["run", str(path), "--target", "y", "--model", "olvf", "--on-error", "skip", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["skipped"] == 1
    assert json.loads(out)["stopped"] is None
    assert "skipped: " in err


def test_the_reason_is_given_if_every_row_is_skipped(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tags": ["a"], "y": 1}\n' * 20)
    for command in (["run", str(path), "--target", "y"], ["detect", str(path), "--ignore", "y"]):
        assert main([*command, "--on-error", "skip"]) == 1
        assert "has no instances; the first row that was skipped: " in (err := capsys.readouterr().err)
        assert "line 1: column 'tags' holds a list" in err


def partial_run(out, form):
    return json.loads(out) if form == "json" else next(csv.DictReader(io.StringIO(out)))


@pytest.mark.parametrize(
    ("labels", "options"), [("uu", ["--positive", "v"]), ("uu", ["--costs", "v=3"]), ("  ", [])], ids=str
)
def test_the_row_that_cannot_be_read_is_the_error_whatever_is_missing_before_it(capsys, tmp_path, labels, options):
    path = tmp_path / "a.csv"
    path.write_text(f"a,y\n1,{labels[0].strip()}\n2,{labels[1].strip()}\n3,u,9\n4,v\n")
    assert main(["run", str(path), "--target", "y", "--model", "olvf", *options]) == 1
    assert f"varifold: {path}, line 4: 3 cells where the header has 2" in capsys.readouterr().err.splitlines()[-1]


def test_rows_without_a_label(capsys, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,y\n" + "".join(f"{i % 2},{'' if i % 5 == 0 else i % 2}\n" for i in range(100)))
    found = run_json(capsys, path, "--target", "y", "--model", "olvf")
    assert (found["instances"], found["unlabelled"], found["skipped"]) == (100, 20, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), ("", ""), ("a,y\n", "no instances"), ("a,b\n1,2\n", "'y'"), ("a,y\n1,\n2,\n", "label")],
)
def test_wrong_files_are_one_line_and_code_1(capsys, tmp_path, content, message):
    path = tmp_path / "a.csv"
    if content is not None:
        path.write_text(content)
    assert main(["run", str(path), "--target", "y", "--model", "olvf"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err

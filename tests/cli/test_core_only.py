"""Everything but pictures and processes works with the core dependencies alone."""

import json
import sys

import pytest

from varifold.cli import main

EXTRAS = (
    "rich",
    "pooch",
    "polars",
    "pyarrow",
    "sklearn",
    "zstandard",
    "matplotlib",
    "joblib",
    "scikit_posthocs",
    "pandas",
)


@pytest.fixture(autouse=True)
def without_extras(monkeypatch):
    for name in EXTRAS:
        monkeypatch.setitem(sys.modules, name, None)


def test_run_models_inspect(capsys, tmp_path):
    path = str(tmp_path / "model")
    assert main(["run", "--data", "synthetic", "--model", "olvf", "--scenario", "vfs:0.5", "--save", path]) == 0
    assert main(["inspect", path]) == 0
    assert main(["models"]) == 0
    assert capsys.readouterr().err == f"learner written to {path}\n"


def test_demo_prints_its_table(capsys, monkeypatch):
    monkeypatch.setattr("varifold.cli.demo._peers", dict)  # river's learners take ten times as long
    assert main(["demo", "--model", "arow"]) == 0
    out, err = capsys.readouterr()
    assert "zeros filled in" in out
    assert "pip install '.[plot]'" in err


def test_what_needs_an_extra_names_it(capsys):
    assert main(["run", "--data", "synthetic", "--model", "olvf", "--repeats", "2", "--jobs", "2"]) == 1
    assert "pip install '.[bench]'" in capsys.readouterr().err


def test_json_alone_on_standard_output(capsys):
    assert main(["run", "--data", "synthetic", "--model", "olvf", "--format", "json"]) == 0
    json.loads(capsys.readouterr().out)

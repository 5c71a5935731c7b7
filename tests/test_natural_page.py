"""The page of the natural streams and the case studies show what their scripts kept."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from varifold.cli import main

ROOT = Path(__file__).parents[1]
CASES = ROOT / "docs" / "cases"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.natural_page")


@pytest.mark.parametrize("name", ["README.md", "benchmarks/NATURAL.md"])
def test_the_tables_are_those_of_the_figures(script: Any, name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    found = json.loads(script.FIGURES.read_text())
    assert "<!-- natural: " in text
    assert script.page(text, found) == text


def test_a_changed_figure_changes_the_page(script: Any) -> None:
    found = json.loads(script.FIGURES.read_text())
    found["cells"]["nhanes | auto"]["log_loss"] = 0.0123
    assert ".012" in script.table(found, "log_loss")
    assert "**.012**" in script.readme_table(found)


def test_the_ranks_are_those_of_the_figures(script: Any) -> None:
    found = json.loads(script.FIGURES.read_text())
    ranked = script.ranking(found)
    assert list(ranked.names) == found["ranks"]["names"]
    assert [round(r, 3) for r in ranked.ranks] == found["ranks"]["ranks"]


@pytest.mark.real_data
def test_a_store_of_one_learner_changes_only_its_figures(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "PICTURES", tmp_path)
    monkeypatch.setattr(script.subprocess, "check_output", lambda *args, **options: "1234567\n")
    store, html = str(tmp_path / "natural.sqlite"), str(tmp_path / "page.html")
    one = ["--method", "arow", "--only", "electricity"]
    assert main(["bench", "run", "natural", *one, "--store", store, "--html", html]) == 0
    earlier = json.loads(script.FIGURES.read_text())
    old = earlier["cells"].pop("electricity | arow")
    found = script.collect(store, earlier)
    assert "football-odds: the picture stays as it is; the store lacks auto, " in capsys.readouterr().out
    new = found["cells"].pop("electricity | arow")
    assert found["cells"] == earlier["cells"]
    assert (found["gaps"], found["commit"]) == (earlier["gaps"], earlier["commit"])
    assert new["log_loss"] == pytest.approx(old["log_loss"], rel=1e-3)
    assert new["commit"] == "1234567"
    cells = {**found["cells"], "electricity | arow": new}
    assert "arow (electricity) of commit 1234567" in script.made({**found, "cells": cells})


def test_every_picture_is_there() -> None:
    text = (ROOT / "benchmarks" / "NATURAL.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert len(pictures) >= 4
    assert [name for name in pictures if not (ROOT / "benchmarks" / name).exists()] == []


@pytest.mark.parametrize("path", sorted(CASES.glob("*.py")), ids=lambda path: path.stem)
def test_a_case_study_shows_its_script_output_and_picture(path: Path) -> None:
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    assert f"{{literalinclude}} {path.name}" in page
    assert f"{{literalinclude}} {path.stem}.txt" in page
    assert f"_static/natural/case-{path.stem}.png" in page
    assert (ROOT / "docs" / "_static" / "natural" / f"case-{path.stem}.png").exists()
    assert re.search(r"^varifold \S+, commit [0-9a-f]{7,}$", path.with_suffix(".txt").read_text(), re.M)
    assert path.stem in (CASES / "index.md").read_text(encoding="utf-8")

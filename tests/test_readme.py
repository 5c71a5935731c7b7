"""README.md shows what its script measured."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_figures_are_those_that_the_script_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    readme = importlib.import_module("benchmarks.readme")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = json.loads(readme.FIGURES.read_text())
    assert readme.page(text, found) == text
    assert readme.table(found) in text


def test_every_file_that_it_names_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert named
    assert [link for link in named if not (ROOT / link).exists()] == []

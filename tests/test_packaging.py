"""What is published with the code: versions of Python, extras, citation, hooks and scripts agree with each other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def test_wheels_are_built_for_the_versions_that_are_named() -> None:
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    built = PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-*" for version in named]
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert any(re.fullmatch(r"cp3\?\?t-\*", skipped) for skipped in PYPROJECT["tool"]["cibuildwheel"]["skip"])


def test_what_wheels_are_tried_on_is_there() -> None:
    commands = " ".join(PYPROJECT["tool"]["cibuildwheel"]["test-command"])
    for place in re.findall(r"\{project\}/(\S+)", commands):
        assert (ROOT / place).exists(), place
    for extra in PYPROJECT["tool"]["cibuildwheel"]["test-extras"]:
        assert extra in PROJECT["optional-dependencies"]


def required(*extras: str) -> list[str]:
    words = [sys.executable, str(ROOT / ".ci" / "requirements.py"), *extras]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def test_requirements_are_those_of_the_requested_extras() -> None:
    assert required("plot") == [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["plot"]]
    assert set(required()) > set(required("plot", "cli"))
    assert "matplotlib>=3.8" in required("plot")


def test_the_citation_names_what_it_must() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for key in ("cff-version: 1.2.0", "title:", "message:", "authors:\n  - name: The varifold developers"):
        assert key in text
    assert f"license: {PROJECT['license']}" in text


def test_hooks_run_the_tools_of_make_lint() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    for tool in ("ruff check", "mypy", "lint-imports"):
        assert f".venv/bin/{tool}" in hooks
        assert f"$(BIN)/{tool}" in recipe


@pytest.mark.parametrize("script", ["install", "wheel_check", "run"])
def test_scripts_are_sound_bash_and_can_be_run(script: str) -> None:
    place = ROOT / ".ci" / script
    subprocess.run(["bash", "-n", str(place)], check=True)
    assert os.access(place, os.X_OK)

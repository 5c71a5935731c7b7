"""Compiled modules keep to the layers too: import-linter does not read their cimports."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "varifold"
CIMPORT = re.compile(r"^from (varifold\.[\w.]+) (?:c?import)|^c?import (varifold\.[\w.]+)", re.M)


def layers() -> dict[str, tuple[int, bool]]:
    """Package -> (height of its layer, whether the packages of that layer may not import each other)."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    found = {}
    for height, line in enumerate(reversed(contract["layers"])):
        for package in re.split(r"[|:]", line):
            found[f"varifold.{package.strip()}"] = (height, "|" in line)
    return found


def cimports() -> list[tuple[str, str]]:
    """(package, package imported) of every compiled file."""
    found = []
    for path in [*SOURCES.rglob("*.pyx"), *SOURCES.rglob("*.pxd")]:
        own = "varifold." + path.relative_to(SOURCES).parts[0]
        for match in CIMPORT.finditer(path.read_text()):
            other = ".".join((match[1] or match[2]).split(".")[:2])
            if other != own:
                found.append((own, other))
    return found


def test_compiled_modules_import_only_what_is_below() -> None:
    height = layers()
    pairs = set(cimports())
    assert len(pairs) > 10
    wrong = [
        (own, other)
        for own, other in pairs
        if height[other][0] > height[own][0] or (height[other][0] == height[own][0] and height[own][1])
    ]
    assert not wrong

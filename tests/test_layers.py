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


def test_the_drawing_in_contributing_shows_the_layers() -> None:
    """Packages joined by | may not import each other, those joined by a comma may."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    drawing = (ROOT / "CONTRIBUTING.md").read_text().split("    src/varifold/\n")[1].split("    tests/")[0]
    drawn = [re.split(r"  +", line.strip())[0] for line in drawing.splitlines()]
    assert drawn == [layer.replace(" :", ",").removesuffix(" | _version") for layer in contract["layers"]]


IMPORT = re.compile(r"^[ ]*from [\w.]+ c?import (\([^)]*\)|[^(\n]+)|^[ ]*c?import ([\w., ]+)", re.M)


def test_compiled_modules_use_what_they_import() -> None:
    """Ruff checks this for Python; a .pxd may also import what its .pyx uses."""
    unused = []
    for path in [*SOURCES.rglob("*.pyx"), *SOURCES.rglob("*.pxd")]:
        other = path.with_suffix(".pyx")
        text, more = (
            re.sub(r'"""[\s\S]*?"""|#.*', "", one.read_text()) if one.exists() else "" for one in (path, other)
        )
        body = IMPORT.sub("", text) + (more if other != path else "")
        for match in IMPORT.finditer(text):
            names = [name.split(" as ")[-1].strip() for name in (match[1] or match[2]).strip("() \n").split(",")]
            unused += [(path.name, name) for name in names if name and not re.search(rf"\b{name}\b", body)]
    assert not unused


def test_no_c_is_inside_of_strings() -> None:
    compiled = [*SOURCES.rglob("*.pyx"), *SOURCES.rglob("*.pxd")]
    assert not [path.name for path in compiled if "cdef extern from *" in path.read_text()]

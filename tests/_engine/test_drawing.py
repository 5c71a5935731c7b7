"""docs/engine.md lists the engine's parts and what holds what; here the list is compared with the source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "src" / "varifold" / "_engine"


def rows() -> dict[str, tuple[str, str, set[str]]]:
    """Part -> (file without suffix, base class, parts held), as the page has them."""
    found = {}
    for line in (ROOT / "docs" / "engine.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`"):
            name, file, base = (cell.strip("`") for cell in cells[:3])
            found[name] = file, base, set(re.findall(r"`(\w+)`", cells[3]))
    return found


PARTS = rows()


def classes() -> dict[str, tuple[str, str, set[str]]]:
    """Return the same from the source: cdef classes, attributes whose type is one of them, and the struct View."""
    assert "cdef struct View:" in (ENGINE / "view.pxd").read_text()
    found: dict[str, tuple[str, str, set[str]]] = {"View": ("view", "", set())}
    for path in sorted(ENGINE.rglob("*.pyx")):
        declarations = path.with_suffix(".pxd") if path.with_suffix(".pxd").exists() else path
        text = declarations.read_text()
        for match in re.finditer(r"^cdef class (\w+)(?:\((\w+)\))?:\n((?:(?:    .*)?\n)*)", text, re.MULTILINE):
            name, base, body = match[1], match[2] or "", match[3]
            types = set(re.findall(r"^    cdef (?:readonly |public )?([A-Z]\w+) \w+(?: .*)?$", body, re.MULTILINE))
            found[name] = path.relative_to(ENGINE).with_suffix("").as_posix(), base, types
    return {name: (file, base, types & found.keys()) for name, (file, base, types) in found.items()}


def test_the_page_lists_every_class() -> None:
    assert sorted(PARTS) == sorted(classes())


def test_the_page_names_every_file() -> None:
    page = (ROOT / "docs" / "engine.md").read_text()
    files = {
        p.relative_to(ENGINE).with_suffix("").as_posix() for kind in ("pyx", "pxd") for p in ENGINE.rglob(f"*.{kind}")
    }
    assert [name for name in sorted(files) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", PARTS)
def test_a_part_holds_what_the_page_lists(name: str) -> None:
    assert PARTS[name] == classes()[name]

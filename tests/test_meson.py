"""What the build installs: every file of the package is listed in the meson.build of its folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "varifold"
FOLDERS = sorted(path.parent for path in PACKAGE.rglob("meson.build"))
BUILT = {".so", ".pyd", ".c", ".cpp"}


def listed(folder: Path) -> list[str]:
    """Files that the folder's meson.build installs, as it writes them."""
    lists = re.findall(r"install_sources\(\s*\[(.*?)\]", (folder / "meson.build").read_text(), re.DOTALL)
    return [name for names in lists for name in re.findall(r"'([^']+)'", names)]


def packaged(folder: Path) -> list[str]:
    """Files below the folder that no deeper meson.build is there for."""
    found = []
    for path in folder.rglob("*"):
        nearest = next(parent for parent in path.parents if parent in FOLDERS)
        if path.is_file() and nearest == folder and path.name != "meson.build":
            found.append(path)
    return [
        path.relative_to(folder).as_posix()
        for path in found
        if path.suffix not in BUILT and "__pycache__" not in path.parts
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE.parent).as_posix())
def test_the_list_is_what_the_folder_holds(folder):
    assert sorted(listed(folder)) == sorted(packaged(folder))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE.parent).as_posix())
def test_every_extension_is_built_and_every_folder_entered(folder):
    text = (folder / "meson.build").read_text()
    built = re.search(r"foreach name : \[(.*?)\]", text, re.DOTALL)
    names = re.findall(r"'([^']+)'", built[1]) if built else []
    assert sorted(names) == sorted(path.stem for path in folder.glob("*.pyx"))
    assert sorted(re.findall(r"^subdir\('([^']+)'\)", text, re.MULTILINE)) == sorted(
        path.parent.name for path in folder.glob("*/meson.build")
    )

"""Check that the build compiles every Cython module, and that `make sanitize` runs the tests of its folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "varifold"
FOLDERS = sorted({path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.pyx")})


def listed(build_file: Path) -> list[str]:
    """Return the names of the first list in a meson.build."""
    text = build_file.read_text()
    names = re.search(r"(?:foreach folder :|modules =) \[\n(.*?)\]", text, re.DOTALL)
    assert names is not None, build_file
    return re.findall(r"'([^']+)'", names[1])


def test_every_folder_with_a_compiled_module_is_entered() -> None:
    assert listed(PACKAGE / "meson.build") == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_compiled_module_of_a_folder_is_listed(folder: str) -> None:
    build_file = PACKAGE / folder / "meson.build"
    assert listed(build_file) == sorted(path.stem for path in build_file.parent.glob("*.pyx"))
    assert f"subdir: 'varifold/{folder}'" in build_file.read_text()


def test_every_folder_with_a_compiled_module_is_sanitized() -> None:
    makefile = (PACKAGE.parents[1] / "Makefile").read_text().replace("\\\n", "")
    named = re.search(r"^SANITIZED := (.*)$", makefile, re.MULTILINE)
    assert named is not None
    tests = named[1].split()
    assert [folder for folder in FOLDERS if not any(f"tests/{folder}/".startswith(f"{test}/") for test in tests)] == []
    assert [test for test in tests if not (PACKAGE.parents[1] / test).exists()] == []

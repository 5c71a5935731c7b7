"""Learners of third parties: entry points of installed packages, read when they are needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import varifold
from varifold.base.registry import GROUP, Registry
from varifold.errors import EntryPointError, UnknownNameError, VarifoldWarning

MODULE = """
import varifold
class Third(varifold.AROW):
    "A learner of another package."
class Outer:
    class Inner(varifold.OGD):
        pass
nothing = 3
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that installs a package with these entry points, and gives a registry as the library's own."""

    def installed(package: str = "theirs", module: str = MODULE, **points: str) -> Registry[Any]:
        (tmp_path / f"{package}_module.py").write_text(module)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]) + "\n")
        if str(tmp_path) not in sys.path:
            monkeypatch.syspath_prepend(tmp_path)
        return Registry({"arow": "varifold.linear.arow:AROW"}, GROUP)

    yield installed
    for name in [name for name in sys.modules if name.endswith("_module")]:
        del sys.modules[name]


def test_an_installed_learner_is_registered_and_imported_when_requested(install: Any) -> None:
    registry = install(third="theirs_module:Third", inner="theirs_module:Outer.Inner")
    assert registry["arow"] is varifold.AROW
    assert "third" in registry
    assert list(registry) == ["arow", "inner", "third"]
    assert len(registry) == 3
    assert "theirs_module" not in sys.modules
    assert registry["third"].__name__ == "Third"
    assert registry["inner"].__name__ == "Inner"
    assert registry.name_of(registry["third"]) == "third"
    assert registry.name_of(varifold.OLVF) is None
    assert registry.class_names() == {"AROW": "arow"}


def test_known_names_need_no_search(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = install(third="theirs_module:Third")

    def fail(**_: Any) -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr("importlib.metadata.entry_points", fail)
    assert "arow" in registry
    assert registry["arow"] is varifold.AROW
    assert registry.name_of(varifold.AROW) == "arow"
    with pytest.raises(AssertionError, match="were read"):
        _ = "third" in registry


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ("no_such_module:Third", "'broken'.*of theirs cannot be imported: ModuleNotFoundError.*uninstall theirs"),
        ("theirs_module:Fourth", "cannot be imported: AttributeError"),
        ("theirs_module:nothing", "of theirs is no class with learn_one and predict_one"),
    ],
)
def test_a_broken_one_is_reported_only_when_requested(install: Any, where: str, match: str) -> None:
    registry = install(broken=where, third="theirs_module:Third")
    assert list(registry) == ["arow", "broken", "third"]
    assert registry["third"].__name__ == "Third"
    with pytest.raises(EntryPointError, match=match):
        registry["broken"]
    with pytest.raises(ImportError):
        registry["broken"]


def test_a_module_that_fails_while_it_is_imported_is_reported_with_its_package(install: Any) -> None:
    registry = install(package="bad", module="1 / 0", bad="bad_module:Third")
    with pytest.raises(EntryPointError, match="of bad cannot be imported: ZeroDivisionError"):
        registry["bad"]


def test_a_name_of_the_library_cannot_be_taken(install: Any) -> None:
    registry = install(arow="theirs_module:Third")
    with pytest.warns(VarifoldWarning, match="'arow' of theirs is left out: the name belongs to varifold.linear.arow"):
        list(registry)
    assert registry["arow"] is varifold.AROW


def test_an_unknown_name_has_a_hint_from_other_packages_too(install: Any) -> None:
    registry = install(thirdparty="theirs_module:Third")
    with pytest.raises(UnknownNameError, match="did you mean thirdparty"):
        registry["thirdpraty"]


def test_register_does_not_take_a_name_of_an_entry_point(install: Any) -> None:
    registry = install(third="theirs_module:Third")
    with pytest.raises(UnknownNameError, match="taken by theirs_module:Third"):
        registry.register("third", varifold.OLVF)
    registry.register("mine", varifold.OLVF)
    assert registry["mine"] is varifold.OLVF


def test_the_librarys_own_registry_reads_them_and_files_name_them(install: Any) -> None:
    install(third="theirs_module:Third")
    program = (
        "import varifold; model = varifold.models['third'](r=2.0); model.learn_one({'a': 1.0}, 1);"
        "print(model._header()['method'], varifold.from_bytes(model.to_bytes()).r)"
    )
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.split() == ["third", "2.0"], done.stderr

"""Names that come from data are looked up in the registry: no file, request or stored state imports a module."""

from __future__ import annotations

import contextlib
import inspect
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import varifold
from tests.serve.server import Server
from varifold import OVFIV, PerKey, cli
from varifold.base import files
from varifold.base.nested import make_learner
from varifold.base.spec import MOST_NESTED, parse_model, parse_value
from varifold.errors import ModelFileError, ParameterError, VarifoldError
from varifold.serve.core import learners
from varifold.sklearn import VarifoldClassifier

MODULE = "module_of_a_stranger"
CODE = """
from pathlib import Path
from varifold import AROW
Path(__file__).with_suffix(".imported").touch()
class K(AROW):
    pass
"""
NAME = f"{MODULE}:K"
SPECIFICATIONS = [
    NAME,
    f"({NAME})",
    f"{NAME}:r=1",
    f"'({NAME})'",
    f"ovfiv:base={NAME}",
    f"ovfiv:base=({NAME})",
    f"ovfiv:base=(ovfiv:base=({NAME}))",
    f"ovfiv:base=ovfiv:base=({NAME})",
    f"ovfiv:base=ovfiv:base=ovfiv:base=({NAME})",
    f"ovfiv:paper,base=({NAME})",
    f"arow:r=({NAME})",
    f"arow:costs=({NAME})",
    f"arow:coverages=({NAME})",
    f"auto:objective=({NAME});costs=({NAME})",
    "antigravity:fly",
    "(this:s)",
    "ovfiv:base=(this:s)",
]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """A module of the current folder and of sys.path; whether it was imported, here or in another process."""
    (tmp_path / f"{MODULE}.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":".join([str(tmp_path), *filter(None, sys.path)]))
    monkeypatch.syspath_prepend(tmp_path)
    yield (
        lambda: (
            any(name in sys.modules for name in (MODULE, "antigravity", "this"))
            or (tmp_path / f"{MODULE}.imported").exists()
        )
    )
    sys.modules.pop(MODULE, None)


def crafted(learner: Any, **params: Any) -> bytes:
    """A model file with other parameters in its header, and a right checksum."""
    header, arrays = files.decode(learner.to_bytes(), "")
    return files.encode({**header, "params": {**header["params"], **params}}, arrays)


def within(value: Any) -> list[Any]:
    """A value as the parameter of learners within learners, as a file holds them."""
    header = {**OVFIV()._header(), "params": {**OVFIV()._header()["params"], "base": value}}
    outer = {**header, "params": {**header["params"], "base": {"learner": header}}}
    return [{"learner": header}, {"learner": outer}, {"learner": {"method": value, "params": {}}}]


@pytest.mark.parametrize("text", SPECIFICATIONS)
def test_no_specification_from_data_imports(text: str, imported: Callable[[], bool], tmp_path: Path) -> None:
    stored = PerKey("ovfiv")
    stored.learn_one({"key": "a", "x": 1.0}, "up")
    path = tmp_path / "crafted.varifold"
    for value in [text, *within(text)]:
        data = crafted(OVFIV(), base=value)
        path.write_bytes(data)
        for read in (varifold.from_bytes, OVFIV.from_bytes, learners.from_bytes):
            with pytest.raises(VarifoldError):
                read(data)
        for load in (varifold.load, OVFIV.load):
            with pytest.raises(ModelFileError):
                load(path)
        assert cli.main(["inspect", str(path)]) != 0
        with contextlib.suppress(VarifoldError):
            PerKey.from_bytes(crafted(stored, model=value))
        with contextlib.suppress(VarifoldError):
            learners.make("ovfiv", {"base": value})
    for read in (make_learner, parse_model, parse_value):
        with contextlib.suppress(VarifoldError):
            read(text)
    for make in (OVFIV, PerKey):
        with pytest.raises(VarifoldError):
            make(text)
    assert not imported()


@pytest.mark.parametrize("name", [*varifold.models, *varifold.detectors])
def test_no_parameter_of_any_method_imports(name: str, imported: Callable[[], bool]) -> None:
    method = {**varifold.models, **varifold.detectors}[name]
    header = method()._header()  # without arrays, which are read after the parameters: the file of `auto` has hundreds
    for key in inspect.signature(method).parameters:
        deep = [f"{name}:{key}=({NAME})", f"ovfiv:base=({name}:{key}=({NAME}))"]
        for text in (NAME, f"({NAME})", f"ovfiv:base=({NAME})", *deep):
            for value in (text, {"learner": {"method": text, "params": {}}}, {"pairs": [["a", text]]}, [text]):
                with contextlib.suppress(VarifoldError):
                    varifold.from_bytes(files.encode({**header, "params": {**header["params"], key: value}}, {}))
                with contextlib.suppress(VarifoldError):
                    learners.make(name, {key: value})
            for nested in (f"{name}:{key}={text}", f"{name}:{key}=({text})"):
                for read in (make_learner, parse_model):
                    with contextlib.suppress(VarifoldError):
                        read(nested)
    assert not imported()


def test_no_request_imports(imported: Callable[[], bool], tmp_path: Path) -> None:
    server = Server(tmp_path / "state").start()
    try:
        with server.client() as client:
            assert client.put("/models/kept", json={"method": "ovfiv"}).status_code == 201
            for text in SPECIFICATIONS:
                for method, params in ((text, {}), ("ovfiv", {"base": text}), ("ovfiv", {"costs": text})):
                    found = client.put("/models/new", json={"method": method, "params": params})
                    assert found.status_code == 422, found.text
                for value in [text, *within(text)]:
                    found = client.post("/models/kept/restore", content=crafted(OVFIV(), base=value))
                    assert found.status_code == 422, found.text
            assert client.get("/models/kept").status_code == 200
    finally:
        server.kill()
    assert not imported()


def test_no_stored_comparison_imports_for_a_report(imported: Callable[[], bool], tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    command = [sys.executable, "-m", "varifold", "bench"]
    run = [*command, "run", "--data", "data.csv", "--target", "y", "--models", f"arow,{NAME}", "--name", "mine"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert imported(), "the command line may import"
    (tmp_path / f"{MODULE}.imported").unlink()
    with contextlib.closing(sqlite3.connect(tmp_path / "varifold-bench.sqlite")) as db:
        assert NAME in {row[0] for row in db.execute("SELECT model FROM outcome")}
    report = subprocess.run(
        [*command, "report", "mine", "--markdown", "mine.md"], capture_output=True, text=True, check=False
    )
    assert report.returncode == 0, report.stderr
    row = next(line for line in (tmp_path / "mine.md").read_text().splitlines() if NAME in line)
    assert "1.000" in row, "what was stored is shown"
    with contextlib.closing(sqlite3.connect(tmp_path / "varifold-bench.sqlite")) as db, db:
        assert db.execute("DELETE FROM outcome WHERE model = ?", (NAME,)).rowcount == 1
    assert cli.main(["bench", "report", "mine", "--markdown", "mine.md"]) == 0
    assert "is not registered" in (tmp_path / "mine.md").read_text()
    assert cli.main(["bench", "list"]) == 0
    assert not imported()


def test_code_and_the_command_line_may_import(imported: Callable[[], bool], tmp_path: Path) -> None:
    assert type(parse_model(NAME, imports=True)()).__name__ == "K"
    assert type(parse_model(f"ovfiv:base=({NAME})", imports=True)().base).__name__ == "K"
    assert imported()
    assert VarifoldClassifier(NAME).fit([[0.0], [1.0]], ["a", "b"]).predict([[1.0]]).tolist() == ["b"]
    (tmp_path / "data.csv").write_text("a,y\n1,0\n2,1\n")
    assert cli.main(["run", "data.csv", "--target", "y", "--model", NAME]) == 0


@pytest.mark.parametrize("depth", [MOST_NESTED, 40, 400, 5000])
def test_nesting_is_bounded(depth: int, tmp_path: Path) -> None:
    plain = "ovfiv:base=" * depth + "arow"
    closed = "ovfiv:base=(" * depth + "arow" + ")" * depth
    header: Any = "arow"
    for _ in range(min(depth, 150)):
        header = {"learner": {"method": "ovfiv", "params": {"base": header}}}
    for text in (plain, closed):
        for read in (make_learner, parse_model, OVFIV, PerKey, lambda text: learners.make("ovfiv", {"base": text})):
            with pytest.raises(ParameterError, match=r"within one another|not OVFIV") as caught:
                read(text)
            assert len(str(caught.value)) < 400
    for value in (plain, closed, header):
        with pytest.raises(ModelFileError):
            varifold.from_bytes(crafted(OVFIV(), base=value))


def test_a_learner_that_cannot_be_a_base_is_named() -> None:
    with pytest.raises(ParameterError, match="not OVFIV"):
        OVFIV(base="ovfiv")
    with pytest.raises(ParameterError, match="not OVFIV"):
        OVFIV(base=OVFIV())
    assert make_learner("ovfiv:base=(arow:r=2)").base.r == 2

"""What `import varifold` offers: every public name, typed, reachable, and nothing heavy imported for it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import varifold
from varifold.base.registry import detectors, models, transformers

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "varifold"
STUB = runpy.run_path(str(ROOT / ".ci" / "stubs.py"))["package_stub"]()
CLASSES = {
    registry[name].__name__: registry[name]
    for registry in (models, detectors, transformers)
    for name in registry.class_names().values()
} | {name: getattr(varifold, name) for name in ("PerKey", "PerKeyDetector", "PerKeyRegressor", "Vote", "VoteDetector")}
HIDDEN = {"base", "cli"}
MODULES = sorted(
    name
    for name in {p.stem for p in PACKAGE.glob("*.py")} | {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    if not name.startswith("_") and name not in HIDDEN
)


def stubbed() -> dict[str, str]:
    """Public name -> the module it is imported from."""
    found = {}
    for node in ast.parse(STUB).body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, f"{alias.name} is not exported: write `{alias.name} as {alias.name}`"
            found[alias.name] = node.module or ""
    return found


def test_the_stub_names_every_class_of_the_registry_where_it_is() -> None:
    listed = stubbed()
    assert {name: listed.get(name) for name in CLASSES} == {name: cls.__module__ for name, cls in CLASSES.items()}


def test_the_stub_names_the_rest_and_nothing_else() -> None:
    assert set(stubbed()) == {*CLASSES, *MODULES, *varifold.__all__}


def test_every_stubbed_name_is_there_and_listed() -> None:
    listed = dir(varifold)
    for name, module in stubbed().items():
        assert name in listed
        expected = (
            importlib.import_module(f"varifold.{name}")
            if module == "varifold"
            else getattr(importlib.import_module(module), name)
        )
        assert getattr(varifold, name) is expected


def test_an_unknown_name_is_an_attribute_error_with_a_hint() -> None:
    with pytest.raises(AttributeError, match="CopulaImputer"):
        _ = varifold.CopulaImputter  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="linear"):
        _ = varifold.linaer  # type: ignore[attr-defined]


# ---------------------------------------------------------------- types

GOOD = """
import varifold
model = varifold.OLVF(C=3, scale="none", majority_bias=False)
model.learn_one({"a": 1.0}, "yes")
learner: varifold.VaryingClassifier = varifold.from_bytes(model.to_bytes())
varifold.CopulaImputer(window=20).transform_one({})
varifold.linear.AROW(r=1.0)
varifold.AutoClassifier()
"""
WRONG = {
    "varifold.OLVF(Cee=3)": 'Unexpected keyword argument "Cee"',
    "varifold.OLVF().lern_one({})": '"OLVF" has no attribute "lern_one"',
    "varifold.OLFV()": 'Module has no attribute "OLFV"',
    "varifold.OVFM(window='long')": "incompatible type",
}


def checked(tmp_path: Path, text: str) -> str:
    """Return mypy's output for a program that uses the installed package, as strict as it can be."""
    (tmp_path / "program.py").write_text(text)
    run = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file="]
    done = subprocess.run(
        [*run, "--cache-dir", ROOT / ".mypy_cache" / "program", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_type_checker_accepts_right_programs_and_finds_wrong_names(tmp_path: Path) -> None:
    lines = ["import varifold", *WRONG]
    message = checked(tmp_path, GOOD + "\n".join(lines) + "\n")
    first = GOOD.count("\n") + 2
    found = {int(line): text for line, text in re.findall(r"program\.py:(\d+): error: (.*)", message)}
    assert set(found) == set(range(first, first + len(WRONG))), message
    for (program, wanted), line in zip(WRONG.items(), sorted(found), strict=True):
        assert wanted in found[line], f"{program}: {found[line]}"


# ---------------------------------------------------------------- imports


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_importing_the_library_imports_no_family_and_nothing_slow() -> None:
    heavy = ("matplotlib", "pandas", "polars", "pyarrow", "sklearn", "joblib", "narwhals", "scipy.stats")
    lazy = {*heavy, *(f"varifold.{name}" for name in MODULES if name != "errors")}
    done = python(f"import sys, varifold; dir(varifold); print([m for m in sys.modules if m in {lazy!r}])")
    assert done.stdout.strip() == "[]", done.stderr


WITHOUT_EXTRAS = """
import importlib, pkgutil, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import varifold
"""
EXTRAS = ("rich", "pooch", "polars", "pyarrow", "sklearn", "zstandard", "matplotlib", "joblib", "scikit_posthocs")
EXTRAS += ("orjson", "uvicorn", "uvloop", "httptools", "httpx", "aiomqtt", "prometheus_client", "mlflow")
USES = {
    "from varifold.report.copula import plot_correlation; plot_correlation(['a'], [[1.0]], 'a.png')": ".[plot]",
    "varifold.evaluate.repeat(varifold.OLVF, lambda seed: [({'a': 1.0}, 1)], repeats=2, jobs=2)": ".[bench]",
    "from varifold.ensemble.workers import each; list(each(abs, [1, 2], 2, None, abs))": ".[bench]",
    "from varifold.serve import server; server.serve(server.Settings(None))": ".[serve]",
    "from varifold.serve.client import RemoteClassifier; RemoteClassifier('http://127.0.0.1:9', 'm')": ".[serve]",
    "from varifold.serve.client import RemoteRegressor; RemoteRegressor('http://127.0.0.1:9', 'm')": ".[serve]",
    "varifold.sklearn.VarifoldClassifier('arow')": ".[sklearn]",
    "varifold.mlflow.save_model(varifold.OLVF(), 'model')": ".[mlflow]",
}


def without_extras(program: str) -> subprocess.CompletedProcess[str]:
    return python(f"EXTRAS = {EXTRAS!r}{WITHOUT_EXTRAS}{program}")


def test_every_module_is_imported_without_the_extras() -> None:
    done = without_extras(
        "for found in pkgutil.walk_packages(varifold.__path__, 'varifold.'):\n"
        "    if not found.name.endswith('__main__'):\n"
        "        importlib.import_module(found.name)\n"
        "print('all')"
    )
    assert done.stdout == "all\n", done.stderr


@pytest.mark.parametrize(
    ("use", "line"),
    USES.items(),
    ids=["report", "evaluate", "bench", "serve", "client", "client of a regressor", "sklearn", "mlflow"],
)
def test_a_missing_extra_is_an_error_at_use_with_the_install_line(use: str, line: str) -> None:
    done = without_extras(use)
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("varifold.errors.MissingExtraError: "), done.stderr
    assert line in message


def test_a_free_threaded_python_is_rejected() -> None:
    done = python("import sys; sys.abiflags = 't'; import varifold")
    assert done.returncode == 1
    assert "ImportError: varifold does not support free-threaded Python" in done.stderr


# ---------------------------------------------------------------- the version


def test_the_version_is_written_in_one_place() -> None:
    script = PACKAGE / "_version.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.strip()
    assert printed == varifold.__version__
    for name in ("pyproject.toml", "meson.build", "src/varifold/__init__.py"):
        assert f'"{printed}"' not in (ROOT / name).read_text(), name
        assert f"'{printed}'" not in (ROOT / name).read_text(), name
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", printed)


def documented() -> Iterator[Any]:
    """Yield the public classes and functions that have a section of parameters."""
    yield from CLASSES.values()
    for name in ("streams", "evaluate", "bench", "monitor", "ask", "sklearn", "spark", "serve.client"):
        module = importlib.import_module(f"varifold.{name}")
        for public in getattr(module, "__all__", [name for name in dir(module) if name[0].isupper()]):
            made = getattr(module, public)
            if callable(made) and "Parameters\n---" in (inspect.getdoc(made) or ""):
                yield made


def test_every_parameter_is_documented() -> None:
    """The section names each; the text may refer to another class."""
    checked = 0
    for made in documented():
        section = (inspect.getdoc(made) or "").partition("Parameters\n---")[2].partition("\n\n")[0]
        heads = {word for line in section.splitlines() if line[:1].strip() for word in re.split(r", ", line)}
        assert set(inspect.signature(made).parameters) <= heads, made
        checked += 1
    assert checked > 60

"""Check that generated stubs name what compiled modules have, with the same parameters."""

from __future__ import annotations

import ast
import importlib
import inspect
import runpy
from pathlib import Path
from types import ModuleType

import pytest

import varifold

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "varifold"
MODULES = sorted(path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.pyx"))
Signature = list[tuple[str, bool]]


@pytest.fixture(scope="module")
def generator() -> dict[str, object]:
    return runpy.run_path(str(ROOT / ".ci" / "stubs.py"))


def compiled_signature(function: object) -> Signature:
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(p.name, p.default is not p.empty) for p in parameters if p.name != "self"]


def stub_signature(node: ast.FunctionDef) -> Signature:
    args = [*node.args.posonlyargs, *node.args.args]
    required = len(args) - len(node.args.defaults)
    signature = [(a.arg, i >= required) for i, a in enumerate(args)]
    signature += [(a.arg, d is not None) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    signature += [(a.arg, False) for a in (node.args.vararg, node.args.kwarg) if a is not None]
    return [part for part in signature if part[0] != "self"]


def compiled_members(cls: type, special: set[str]) -> dict[str, Signature | None]:
    """Return public methods with their parameters, attributes with None."""
    members: dict[str, Signature | None] = {}
    for name, value in vars(cls).items():
        if name in special:
            members[name] = None
        elif not name.startswith("_"):
            plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            members[name] = compiled_signature(plain) if callable(plain) else None
    return members


def stub_members(node: ast.ClassDef, special: set[str]) -> dict[str, Signature | None]:
    members: dict[str, Signature | None] = {}
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            members[item.target.id] = None
        elif isinstance(item, ast.FunctionDef) and item.name != "__init__":
            attribute = item.name in special or any(isinstance(d, ast.Attribute) for d in item.decorator_list)
            attribute = attribute or any(getattr(d, "id", "") == "property" for d in item.decorator_list)
            members[item.name] = None if attribute else stub_signature(item)
    return members


def compiled_names(module: ModuleType) -> tuple[dict[str, type], dict[str, Signature]]:
    own = {k: v for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
    public = {k: v for k, v in own.items() if not k.startswith("_")}
    classes = {k: v for k, v in public.items() if inspect.isclass(v)}
    return classes, {k: compiled_signature(v) for k, v in public.items() if k not in classes}


@pytest.mark.parametrize("name", MODULES)
def test_stub_agrees_with_the_compiled_module(name: str, generator: dict[str, object]) -> None:
    tree = ast.parse(generator["stub"](PACKAGE / f"{name}.pyx"))  # type: ignore[operator]
    special: set[str] = generator["SPECIAL"]  # type: ignore[assignment]
    classes, functions = compiled_names(importlib.import_module("varifold." + name.replace("/", ".")))
    stubbed = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert {n.name: stub_signature(n) for n in tree.body if isinstance(n, ast.FunctionDef)} == functions
    assert set(stubbed) == set(classes)
    for class_name, cls in classes.items():
        assert stub_members(stubbed[class_name], special) == compiled_members(cls, special), class_name


def test_every_extension_is_compiled_from_here() -> None:
    folder = Path(varifold.__file__).parent
    built = [path for ending in ("so", "pyd") for path in folder.rglob(f"*.{ending}")]
    names = {(p.parent / p.name.partition(".")[0]).relative_to(folder).as_posix() for p in built}
    assert names - {"_cyutility"} == set(MODULES)

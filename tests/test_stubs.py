"""Every extension has a stub beside it, and the two agree on names and parameters."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import varifold

FOLDER = Path(varifold.__file__).parent
EXTENSIONS = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.pyx"))
SPECIAL = {"__len__", "__contains__", "__getitem__", "__iter__", "__enter__", "__exit__"}
Signature = list[tuple[str, bool]]


def compiled_signature(function: object) -> Signature:
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(p.name, p.default is not p.empty) for p in parameters if p.name != "self"]


def stub_signature(node: ast.FunctionDef) -> Signature:
    args = [*node.args.posonlyargs, *node.args.args]
    required = len(args) - len(node.args.defaults)
    found = [(a.arg, i >= required) for i, a in enumerate(args)]
    found += [(a.arg, d is not None) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    return [part for part in found if part[0] != "self"]


def compiled_members(cls: type) -> dict[str, Signature | None]:
    """Public methods with their parameters, attributes with None."""
    members: dict[str, Signature | None] = {}
    for name, value in vars(cls).items():
        if name in SPECIAL:
            members[name] = None
        elif not name.startswith("_"):
            plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            members[name] = compiled_signature(plain) if callable(plain) else None
    return members


def stub_members(node: ast.ClassDef) -> dict[str, Signature | None]:
    members: dict[str, Signature | None] = {}
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            members[item.target.id] = None
        elif isinstance(item, ast.FunctionDef) and item.name != "__init__":
            attribute = item.name in SPECIAL or any(getattr(d, "id", "") == "property" for d in item.decorator_list)
            members[item.name] = None if attribute else stub_signature(item)
    return members


def compiled_names(module: ModuleType) -> tuple[dict[str, type], dict[str, Signature]]:
    own = {k: v for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
    public = {k: v for k, v in own.items() if not k.startswith("_")}
    classes = {k: v for k, v in public.items() if inspect.isclass(v)}
    return classes, {k: compiled_signature(v) for k, v in public.items() if k not in classes}


def constructor(source: str, name: str) -> Signature | None:
    """Parameters of the constructor as the source declares it; compiled types do not tell theirs."""
    body = re.split(rf"^cdef class {name}\b.*:$", source, flags=re.M)[1]
    body = re.split(r"^\S", body, flags=re.M)[0]
    found = re.search(r"def __c?init__\(self,?\s*(.*?)\):\n", body, flags=re.S)
    if found is None:
        return None
    parts = [p.strip() for p in re.split(r",(?![^(\[]*[)\]])", found[1]) if p.strip() and p.strip() != "*"]
    plain = [(re.sub(r"\s+not None$", "", p.partition("=")[0].strip()), "=" in p) for p in parts]
    return [(left.split()[-1], default) for left, default in plain]


@pytest.mark.parametrize("name", EXTENSIONS)
def test_stub_agrees(name: str) -> None:
    stub = FOLDER / f"{name}.pyi"
    assert stub.exists(), f"write {name}.pyi beside {name}.pyx"
    tree = ast.parse(stub.read_text())
    classes, functions = compiled_names(importlib.import_module("varifold." + name.replace("/", ".")))
    stubbed = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert {n.name: stub_signature(n) for n in tree.body if isinstance(n, ast.FunctionDef)} == functions
    assert set(stubbed) == set(classes)
    source = (FOLDER / f"{name}.pyx").read_text()
    for class_name, cls in classes.items():
        assert stub_members(stubbed[class_name]) == compiled_members(cls), class_name
        declared = [n for n in stubbed[class_name].body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        assert (stub_signature(declared[0]) if declared else []) == (constructor(source, class_name) or []), class_name


def test_every_extension_is_compiled_from_here() -> None:
    built = [path for ending in ("so", "pyd") for path in FOLDER.rglob(f"*.{ending}")]
    names = {(p.parent / p.name.partition(".")[0]).relative_to(FOLDER).as_posix() for p in built}
    assert names - {"_cyutility"} == set(EXTENSIONS)

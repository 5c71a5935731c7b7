"""Write the stubs (.pyi): one next to every Cython module, from its source, and that of the package, from the registry.

The stubs are not committed. The build and `make lint` write them, so that type checkers see compiled modules in the
checkout and in the wheel. Types come from C declarations, from annotations (which Cython ignores here) and, for what a
function returns without saying so, from its return statements; what none of them shows is `Any`.

    python .ci/stubs.py         write all stubs, remove those whose module is gone
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from Cython.Compiler import ExprNodes, Main, Nodes, Symtab
from Cython.Compiler.Scanning import FileSourceDescriptor

SOURCES = Path(__file__).resolve().parents[1] / "src"
PACKAGE = SOURCES / "varifold"
INTEGERS = {"char", "short", "int", "long", "Py_ssize_t", "size_t", "ssize_t", "Py_hash_t", "Py_UCS4"}
INTEGERS |= {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
CONTAINERS = {"list": "list[Any]", "dict": "dict[Any, Any]", "tuple": "tuple[Any, ...]", "set": "set[Any]"}
PLAIN = {"str", "bytes", "bool", "float", "int", "object", "type"}
DTYPES = {"double": "float64", "float": "float32", "int": "intc", "bint": "intc", "char": "int8", "Py_ssize_t": "intp"}
SPECIAL = {"__len__", "__contains__", "__getitem__", "__iter__", "__next__", "__enter__", "__exit__", "__call__"}
RETURNS = {"__len__": "int", "__contains__": "bool"}
STANDARD = {
    **dict.fromkeys(("Any", "Literal", "NamedTuple", "Self"), "typing"),
    **dict.fromkeys(("Callable", "Hashable", "Iterable", "Iterator", "Mapping", "Sequence"), "collections.abc"),
    **dict.fromkeys(("ArrayLike", "DTypeLike", "NDArray"), "numpy.typing"),
}


@cache
def context() -> Any:
    """Return the context in which Cython parses."""
    return Main.Context.from_options(Main.CompilationOptions(language_level=3))


@cache
def parsed(path: Path) -> Any:
    """Parse a .pyx or .pxd file; nothing it imports is read."""
    name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    scope = Symtab.ModuleScope(name, None, context())
    return context().parse(FileSourceDescriptor(str(path)), scope, path.suffix == ".pxd", name)


def statements(node: Any) -> Iterator[Any]:
    """Iterate over the statements of a block, including those inside `cdef:` groups and conditions."""
    for one in node.stats if isinstance(node, Nodes.StatListNode) else [node]:
        if isinstance(one, Nodes.StatListNode):
            yield from statements(one)
        elif isinstance(one, Nodes.CompilerDirectivesNode):
            yield from statements(one.body)
        else:
            yield one


@cache
def homes() -> dict[str, str]:
    """Map every public class and alias of the package to the module that defines it."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py*")):
        if path.suffix in (".py", ".pyx"):
            module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
            for name in re.findall(r"^(?:cdef class|class) (\w+)|^([A-Z][a-z]\w*) = ", path.read_text(), re.M):
                found.setdefault(name[0] or name[1], module)
    return found


def c_type(base: Any) -> str:
    """Translate a C type into the type that Python code sees."""
    if isinstance(base, Nodes.MemoryViewSliceTypeNode):
        element = getattr(base.base_type_node, "base_type", base.base_type_node)
        name = element.name
        if name == "char":  # bytes and everything like them
            return "bytes | bytearray | memoryview | NDArray[np.uint8]"
        return f"NDArray[np.{DTYPES.get(name) or name.removesuffix('_t')}]"
    if hasattr(base, "base_type"):  # const; the class has a different name in each version of Cython
        return c_type(base.base_type)
    name = getattr(base, "name", None)
    if name in ("double", "float"):
        return "float"
    if name == "bint":
        return "bool"
    if name in INTEGERS:
        return "int"
    if name == "ndarray":
        return "NDArray[Any]"
    if name in CONTAINERS:
        return CONTAINERS[name]
    if name in PLAIN:
        return "Any" if name == "object" else name
    return name if name in homes() else "Any"


def written(node: Any) -> str:
    """Write an annotation or alias as source."""
    if isinstance(node, ExprNodes.AnnotationNode):
        return node.string.value if node.string is not None else written(node.expr)
    if isinstance(node, ExprNodes.NameNode):
        return str(node.name)
    if isinstance(node, ExprNodes.AttributeNode):
        return f"{written(node.obj)}.{node.attribute}"
    if isinstance(node, ExprNodes.IndexNode):
        return f"{written(node.base)}[{written(node.index)}]"
    if isinstance(node, ExprNodes.TupleNode | ExprNodes.ListNode):
        inner = ", ".join(written(arg) for arg in node.args)
        return inner if isinstance(node, ExprNodes.TupleNode) else f"[{inner}]"
    if isinstance(node, ExprNodes.BitwiseOrNode):
        return f"{written(node.operand1)} | {written(node.operand2)}"
    if isinstance(node, ExprNodes.EllipsisNode):
        return "..."
    if isinstance(node, ExprNodes.NoneNode):
        return "None"
    return repr(node.value) if isinstance(node, ExprNodes.UnicodeNode) else "Any"


def expression_type(node: Any, known: dict[str, str]) -> str:
    """Infer the type of an expression; `known` holds declared variables and, as "self.x", attributes."""
    if isinstance(node, ExprNodes.NoneNode):
        return "None"
    if isinstance(node, ExprNodes.BoolNode | ExprNodes.PrimaryCmpNode | ExprNodes.NotNode):
        return "bool"
    if isinstance(node, ExprNodes.UnicodeNode | ExprNodes.JoinedStrNode):
        return "str"
    if isinstance(node, ExprNodes.BytesNode):
        return "bytes"
    if isinstance(node, ExprNodes.IntNode):
        return "int"
    if isinstance(node, ExprNodes.FloatNode):
        return "float"
    if isinstance(node, ExprNodes.DictNode):
        keys = {expression_type(item.key, known) for item in node.key_value_pairs}
        return f"dict[{keys.pop() if len(keys) == 1 else 'Any'}, Any]"
    if isinstance(node, ExprNodes.TupleNode):
        return f"tuple[{', '.join(expression_type(arg, known) for arg in node.args) or '()'}]"
    if isinstance(node, ExprNodes.ListNode | ExprNodes.ComprehensionNode | ExprNodes.SetNode):
        return CONTAINERS.get(getattr(getattr(node, "type", None), "name", "list"), "list[Any]")
    if isinstance(node, ExprNodes.NameNode):
        return known.get(node.name, "Any")
    if isinstance(node, ExprNodes.AttributeNode) and getattr(node.obj, "name", "") == "self":
        return known.get(f"self.{node.attribute}", "Any")
    if isinstance(node, ExprNodes.TypecastNode):
        return "Any" if node.base_type is None or is_pointer(node.declarator) else c_type(node.base_type)
    if isinstance(node, ExprNodes.CondExprNode):
        return union([expression_type(one, known) for one in (node.true_val, node.false_val)])
    if isinstance(node, ExprNodes.SimpleCallNode | ExprNodes.GeneralCallNode):
        return call_type(written(node.function), known)
    return "Any"


def call_type(name: str, known: dict[str, str]) -> str:
    """Infer the type that a call returns: a builtin's, a class, or the entry of `known` for "name()"."""
    simple = {"len": "int", "all": "bool", "any": "bool", "sorted": "list[Any]", "repr": "str"}
    if name in simple or name in CONTAINERS:
        return simple.get(name) or CONTAINERS[name]
    if name in PLAIN - {"object", "type"}:
        return name
    return known.get(f"{name}()") or (name if name in homes() else "Any")


def union(types: list[str]) -> str:
    """Join types; if one is unknown, the result is unknown."""
    if "Any" in types:
        return "Any"
    return " | ".join(sorted(set(types), key=lambda name: (name == "None", name)))


def ends(node: Any) -> bool:
    """Return whether a block always returns or raises."""
    last = list(statements(node))[-1]
    if isinstance(last, Nodes.IfStatNode):
        branches = [*(one.body for one in last.if_clauses), last.else_clause]
        return last.else_clause is not None and all(map(ends, branches))
    if isinstance(last, Nodes.TryExceptStatNode):
        return (ends(last.body) or (last.else_clause is not None and ends(last.else_clause))) and all(
            ends(one.body) for one in last.except_clauses
        )
    if isinstance(last, Nodes.TryFinallyStatNode | Nodes.WithStatNode | Nodes.GILStatNode):
        return ends(last.body)
    return isinstance(last, Nodes.ReturnStatNode | Nodes.RaiseStatNode | Nodes.WhileStatNode)


def inside(node: Any) -> Iterator[Any]:
    """Iterate over all nodes of a function body, without those of inner functions."""
    if isinstance(node, list | tuple):
        for one in node:
            yield from inside(one)
    elif isinstance(node, Nodes.Node):
        yield node
        if not isinstance(node, Nodes.FuncDefNode | ExprNodes.LambdaNode | Nodes.ClassDefNode):
            for attribute in node.child_attrs or ():
                yield from inside(getattr(node, attribute, None))


def return_type(function: Any, known: dict[str, str]) -> str:
    """Return a function's annotation, or infer it from its return statements."""
    if function.return_type_annotation is not None:
        return written(function.return_type_annotation)
    if function.name in RETURNS:
        return RETURNS[function.name]
    known = dict(known)
    nodes = list(inside(function.body))
    for node in nodes:
        if isinstance(node, Nodes.CVarDefNode):
            known |= {declarator_name(one): c_type(node.base_type) for one in node.declarators if not is_pointer(one)}
    if any(isinstance(node, ExprNodes.YieldExprNode) for node in nodes):
        return "Iterator[Any]"
    types = [
        "None" if node.value is None else expression_type(node.value, known)
        for node in nodes
        if isinstance(node, Nodes.ReturnStatNode)
    ]
    if not ends(function.body):
        types.append("None")
    if not types or (set(types) == {"None"} and any(isinstance(node, Nodes.ReturnStatNode) for node in nodes)):
        return "Any"  # it raises, or returns None for others to override
    return union(types)


def is_pointer(declarator: Any) -> bool:
    """Return whether a declarator is a pointer, an array or a function."""
    return not isinstance(declarator, Nodes.CNameDeclaratorNode)


def declarator_name(declarator: Any) -> str:
    """Return the declared name."""
    while not isinstance(declarator, Nodes.CNameDeclaratorNode):
        declarator = declarator.base
    return str(declarator.name)


def parameter(arg: Any) -> tuple[str, str]:
    """Return a parameter's name and type."""
    name = declarator_name(arg.declarator)
    if not name:  # Cython reads an untyped `x` as a type without a name
        kind = written(arg.annotation) if arg.annotation is not None else "Any"
        return str(arg.base_type.name), kind
    kind = c_type(arg.base_type)
    if arg.annotation is not None:
        kind = written(arg.annotation)
    if isinstance(arg.default, ExprNodes.NoneNode) and kind != "Any" and "None" not in kind:
        kind += " | None"
    return name, kind


def parameters(function: Any, method: bool) -> tuple[str, dict[str, str]]:
    """Write a parameter list; also return the types by name."""
    parts: list[str] = []
    known: dict[str, str] = {}
    star = False
    for position, arg in enumerate(function.args):
        name, kind = parameter(arg)
        if method and position == 0:
            parts.append(name)
            continue
        if arg.kw_only and not star:
            parts.append("*" if function.star_arg is None else f"*{function.star_arg.name}: Any")
            star = True
        known[name] = kind
        parts.append(f"{name}: {kind}" + (" = ..." if arg.default is not None else ""))
    if function.star_arg is not None and not star:
        parts.append(f"*{function.star_arg.name}: Any")
    if function.starstar_arg is not None:
        parts.append(f"**{function.starstar_arg.name}: Any")
    return ", ".join(parts), known


def function_lines(function: Any, attributes: dict[str, str], indent: str) -> list[str]:
    """Write a function or, indented, a method; `attributes` are those of its class."""
    marks = [getattr(one.decorator, "name", "") for one in function.decorators or ()]
    listed, known = parameters(function, bool(indent) and "staticmethod" not in marks)
    known |= {name if name.endswith("()") else f"self.{name}": kind for name, kind in attributes.items()}
    lines = [f"{indent}@{mark}" for mark in marks if mark in ("property", "staticmethod", "classmethod")]
    lines += [
        f"{indent}@{function.name}.setter"
        for one in function.decorators or ()
        if getattr(one.decorator, "attribute", "") == "setter"
    ]
    name = "__init__" if function.name == "__cinit__" else function.name
    result = "None" if name == "__init__" else return_type(function, known)
    return [*lines, f"{indent}def {name}({listed}) -> {result}: ..."]


def called(functions: list[Any], prefix: str) -> dict[str, str]:
    """Map calls to annotated functions, as "name()", to their return types."""
    return {
        f"{prefix}{one.name}()": written(one.return_type_annotation)
        for one in functions
        if one.return_type_annotation is not None
    }


def class_lines(node: Any, declared: dict[str, Any], outside: dict[str, str]) -> list[str]:
    """Write a class: bases, public attributes, constructor and public methods."""
    bodies = [one.body for one in (declared.get(node.class_name), node) if one is not None and one.body is not None]
    attributes: dict[str, str] = {}
    hidden: dict[str, str] = {}
    for body in bodies:
        for one in statements(body):
            if isinstance(one, Nodes.CVarDefNode):
                for declarator in one.declarators:
                    if not is_pointer(declarator):
                        place = attributes if one.visibility in ("public", "readonly") else hidden
                        place[declarator_name(declarator)] = c_type(one.base_type)
    functions = [one for one in statements(node.body) if isinstance(one, Nodes.DefNode)]
    constructors = [one for one in functions if one.name in ("__init__", "__cinit__") and len(one.args) > 1]
    shown = constructors[-1] if constructors else None  # __cinit__(self) passes all arguments on to the base class
    lines = [f"    {name}: {kind}" for name, kind in attributes.items()]
    known = hidden | attributes | called(functions, "self.") | called(functions, f"{node.class_name}.") | outside
    for function in functions:
        if function is shown or not function.name.startswith("_") or function.name in SPECIAL:
            lines += function_lines(function, known, "    ")
    for one in statements(node.body):
        if isinstance(one, Nodes.CFuncDefNode) and one.overridable:
            listed = ", ".join(f"{name}: {kind}" for name, kind in map(parameter, one.declarator.args[1:]))
            lines.append(f"    def {one.declarator.base.name}(self, {listed}) -> {c_type(one.base_type)}: ...")
    bases = ", ".join(base.name for base in getattr(node.bases, "args", ()) if base.name != "object")
    head = f"class {node.class_name}({bases}):" if bases else f"class {node.class_name}:"
    return ["", *([head, *lines] if lines else [f"{head} ..."])]


def stub(path: Path) -> str:
    """Return the stub of a .pyx file."""
    tree = list(statements(parsed(path).body))
    pxd = path.with_suffix(".pxd")
    declared = {}
    if pxd.exists():
        classes = [one for one in statements(parsed(pxd).body) if isinstance(one, Nodes.CClassDefNode)]
        declared = {one.class_name: one for one in classes}
    functions = [one for one in tree if isinstance(one, Nodes.DefNode)]
    outside = called(functions, "") | {
        f"{declarator_name(one.declarator)}()": c_type(one.base_type)
        for one in tree
        if isinstance(one, Nodes.CFuncDefNode)
    }
    lines: list[str] = []
    for one in tree:
        if isinstance(one, Nodes.CClassDefNode) and one.body is None:
            continue  # a forward declaration
        if isinstance(one, Nodes.CClassDefNode) and not one.class_name.startswith("_"):
            lines += class_lines(one, declared, outside)
        elif isinstance(one, Nodes.DefNode) and not one.name.startswith("_"):
            lines += function_lines(one, outside, "")
        elif isinstance(one, Nodes.CFuncDefNode) and one.overridable:
            listed = ", ".join(f"{name}: {kind}" for name, kind in map(parameter, one.declarator.args))
            lines.append(f"def {one.declarator.base.name}({listed}) -> {c_type(one.base_type)}: ...")
        elif isinstance(one, Nodes.SingleAssignmentNode) and isinstance(one.lhs, ExprNodes.NameNode):
            name = one.lhs.name
            if isinstance(one.rhs, ExprNodes.BitwiseOrNode | ExprNodes.IndexNode) and re.match(r"[A-Z][a-z]", name):
                lines.append(f"{name} = {written(one.rhs)}")
            elif not name.startswith("_") and not isinstance(one.rhs, ExprNodes.ImportNode):
                lines.append(f"{name}: {expression_type(one.rhs, {})}")
    return "\n".join([*imports(path, "\n".join(lines)), *lines]) + "\n"


def imports(path: Path, text: str) -> list[str]:
    """Write the imports of the names that a stub uses and does not define."""
    own = set(re.findall(r"^(?:class |def )?(\w+)(?:\(|:| = )", text, re.M))
    own_module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    used = re.sub(r"\"[^\"]*\"|'[^']*'", "", text)
    types = set(re.findall(r"(?:: |-> |\[|\(|\| |, |= )([A-Za-z_]\w*)", used))
    by_module: dict[str, set[str]] = {}
    for name in types - own:
        module = STANDARD.get(name) or homes().get(name)
        if module is not None and module != own_module:
            by_module.setdefault(module, set()).add(name)
    lines = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(by_module.items())]
    return [*(["import numpy as np"] if "np." in used else []), *lines]


def package_stub() -> str:
    """Return the stub of the package: every public name, imported from the module that defines it."""
    values = {}
    for node in ast.parse((PACKAGE / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = ast.literal_eval(node.value)
    places = re.findall(r'"(varifold[\w.]+):(\w+)"', (PACKAGE / "base" / "registry.py").read_text())
    names = {(module, name) for module, name in places}
    names |= {(module, name) for name, module in values["_OTHERS"].items()}
    names |= {("varifold", name) for name in (*values["_MODULES"], "errors")} | {("varifold._version", "__version__")}
    known = {name for _, name in names}
    names |= {("varifold.base", name) for name in values["__all__"] if name not in known}
    return "".join(f"from {module} import {name} as {name}\n" for module, name in sorted(names))


def main() -> None:
    """Write all stubs that changed and remove those whose module is gone."""
    stubs = {path.with_suffix(".pyi"): stub(path) for path in sorted(PACKAGE.rglob("*.pyx"))}
    stubs[PACKAGE / "__init__.pyi"] = package_stub()
    for place, text in stubs.items():
        if not place.exists() or place.read_text() != text:
            place.write_text(text)
    for stale in set(PACKAGE.rglob("*.pyi")) - set(stubs):
        stale.unlink()


if __name__ == "__main__":
    sys.exit(main())

"""Write the lists that follow from the registry: the stub of the package and the table of methods in README.md.

`make listings` runs it after a method was added; tests compare the two files with the registry.
"""

from __future__ import annotations

import re
from pathlib import Path

import varifold
from varifold.base.registry import models, transformers

ROOT = Path(__file__).parent.parent


def stub() -> str:
    """`__init__.pyi`: every public name, imported from where it is."""
    folder = ROOT / "src" / "varifold"
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    found = [("varifold", name) for name in modules - {"base", "cli"} if not name.startswith("_")]
    elsewhere = {"errors", "__version__", *varifold._OTHERS}
    found += [("varifold.base", name) for name in varifold.__all__ if name not in elsewhere]
    found += [("varifold._version", "__version__")]
    for registry in (models, transformers):
        classes = [registry[name] for name in registry.class_names().values()]
        found += [(cls.__module__, cls.__name__) for cls in classes]
    found += [(module, name) for name, module in varifold._OTHERS.items()]
    ordered = sorted(found, key=lambda entry: (entry[0], not entry[1].isupper(), not entry[1][0].isupper(), entry[1]))
    return "".join(f"from {module} import {name} as {name}\n" for module, name in ordered)


def table() -> list[str]:
    """Rows of the table of methods: name, class, first line of the docstring."""
    classes = {name: models[name] for name in sorted(models.class_names().values())}
    return [f"| `{name}` | `{cls.__name__}` | {(cls.__doc__ or '').splitlines()[0]} |" for name, cls in classes.items()]


def readme(text: str) -> str:
    """README.md with the rows of its table replaced."""
    return re.sub(r"(?:^\| `.*\n)+", lambda _: "\n".join(table()) + "\n", text, count=1, flags=re.M)


if __name__ == "__main__":
    (ROOT / "src" / "varifold" / "__init__.pyi").write_text(stub())
    page = ROOT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")

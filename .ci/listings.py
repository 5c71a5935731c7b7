"""Write what follows from the registry: the stub of the package. `make listings` runs it after a method was added."""

from __future__ import annotations

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


if __name__ == "__main__":
    (ROOT / "src" / "varifold" / "__init__.pyi").write_text(stub())

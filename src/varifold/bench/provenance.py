"""Provenance of the numbers: code, versions, machine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Collection
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from varifold.base.spec import ModelSpec, Nested, parse_model
from varifold.errors import ParameterError, UnknownNameError

__all__ = ["cell_code", "code_version", "current_for", "environment"]

_ABOVE = {"report", "cli", "checks"}
"""Parts of the package that do not affect any number."""
_BENCH = {"bench/crowd.py", "bench/detection.py", "bench/sources.py", "bench/work.py"}
"""Modules of bench that make streams and outcomes."""
_INSIDE = {"varifold", "builtins", "abc", "typing"}
_PEERS = "varifold.bench.peers."
_OF_PEERS = ("datasets/", "streams/", "evaluate/", "bench/")
"""Where the sources are that affect the numbers of other libraries' learners: not our own learners."""
_SOURCES = (".py", ".pyx", ".pxd", ".toml")


@cache
def code_version() -> str:
    """Return the checksum (12 digits) of every source that affects a number: learners, engine, streams, evaluation."""
    return _digest(_files_below(resources.files("varifold"), ""))


def _digest(files: list[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files):
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:12]


@cache
def _peer_version(model: str) -> str:
    """Return the version of another library's learner: of streams and evaluation, of its module, and its library."""
    module = model.partition(":")[0].removeprefix(_PEERS)
    folder = resources.files("varifold.bench").joinpath("peers")
    files = [f for f in _files_below(resources.files("varifold"), "") if f[0].startswith(_OF_PEERS)]
    files += [(name, folder.joinpath(f"{name}.py").read_bytes()) for name in ("columns", module)]
    package = {"sklearn": "scikit-learn"}.get(module, module)
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        version = ""
    return f"peers+{_digest([*files, (package, version.encode())])}"


def _files_below(folder: Traversable, below: str) -> list[tuple[str, bytes]]:
    files = []
    for item in folder.iterdir():
        name = f"{below}{item.name}"
        if item.is_dir():
            if name not in _ABOVE and item.name != "__pycache__" and below != "bench/":
                files += _files_below(item, f"{name}/")
        elif name.endswith(_SOURCES) and (below != "bench/" or name in _BENCH):
            files.append((name, item.read_bytes()))
    return files


@cache
def cell_code(model: str) -> str:
    """Return the version of the code behind a model's numbers: ours, and for an external learner that of its modules.

    Such a learner is imported, so the model must come from the command line or from code, not from a store. A module
    counts with its text, so that a changed file is another version; what the module imports does not count, apart from
    the classes that the learner inherits from. A model that cannot be made has a separate version. That of a peer does
    not contain our learners.
    """
    if model.startswith(_PEERS):
        return _peer_version(model)
    try:
        classes = _classes(parse_model(model, imports=True, detectors=True))
    except (UnknownNameError, ParameterError, ImportError, SyntaxError):
        return f"{code_version()}+unknown"
    modules = sorted({c.__module__ for cls in classes for c in cls.__mro__})
    outside = [name for name in modules if name.partition(".")[0] not in _INSIDE]
    if not outside:
        return code_version()
    digest = hashlib.sha256()
    for name in outside:
        digest.update(name.encode() + b"\0" + _text(name) + b"\0")
    return f"{code_version()}+{digest.hexdigest()[:12]}"


def current_for(imported: Collection[str] = ()) -> Callable[[str, str], bool]:
    """Return a function of (model, version) that returns whether an outcome comes from the current code.

    The modules of a learner from outside count where it is among those that may be `imported`: the models that the
    command line or code names. A store may name any other; of these only the version of our code is compared.
    """

    def is_current(model: str, version: str) -> bool:
        if model in imported or model.startswith(_PEERS):
            return version == cell_code(model)
        return version.partition("+")[0] == code_version()

    return is_current


def _classes(spec: ModelSpec) -> list[type[Any]]:
    """Return the class of a learner and of the learners among its parameters."""
    within = [value.spec for _, value in spec.params if isinstance(value, Nested)]
    return [spec.cls, *(cls for inner in within for cls in _classes(inner))]


def _text(module: str) -> bytes:
    """Read the source of a module, or its file if it is compiled; empty for one without a file."""
    path = getattr(sys.modules.get(module), "__file__", None)
    return b"" if path is None else Path(path).read_bytes()


@cache
def environment() -> dict[str, Any]:
    """Return versions and machine, which are stored with every number."""
    facts: dict[str, Any] = {"code": code_version(), "git": _git(), "python": platform.python_version()}
    for package in ("varifold", "numpy", "scipy", "river", "joblib", "lightgbm", "capymoa", "scikit-learn"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if "varifold" not in facts:
        from varifold import __version__

        facts["varifold"] = __version__
    facts["system"] = f"{platform.system()} {platform.machine()}"
    facts["processors"] = os.cpu_count()
    return facts


def _git() -> str | None:
    """Return the commit of the source tree, with + if it has changes; None outside a source tree."""
    folder = str(resources.files("varifold"))
    try:
        head = subprocess.run(
            ["git", "-C", folder, "describe", "--always", "--dirty=+", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip()

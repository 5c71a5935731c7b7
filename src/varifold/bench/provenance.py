"""With what the numbers were made: code, versions, machine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from typing import Any

__all__ = ["code_version", "environment"]

_ABOVE = {"bench", "report", "cli", "checks"}
"""Parts of the package that no learner's number depends on."""
_SOURCES = (".py", ".pyx", ".pxd", ".toml")


@cache
def code_version() -> str:
    """Checksum (12 digits) of every source that a number can depend on: learners, engine, streams, evaluation."""
    digest = hashlib.sha256()
    for name, content in sorted(_walk(resources.files("varifold"), "")):
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:12]


def _walk(folder: Traversable, below: str) -> list[tuple[str, bytes]]:
    found = []
    for item in folder.iterdir():
        name = f"{below}{item.name}"
        if item.is_dir():
            if name not in _ABOVE and item.name != "__pycache__":
                found += _walk(item, f"{name}/")
        elif name.endswith(_SOURCES):
            found.append((name, item.read_bytes()))
    return found


@cache
def environment() -> dict[str, Any]:
    """Versions and machine, to be kept beside every number."""
    found: dict[str, Any] = {"code": code_version(), "git": _git(), "python": platform.python_version()}
    for package in ("varifold", "numpy", "scipy", "river", "joblib"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if "varifold" not in found:
        from varifold import __version__

        found["varifold"] = __version__
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["processors"] = os.cpu_count()
    return found


def _git() -> str | None:
    """The commit of the tree that the package is run from, with + when it has changes; None when it is in no tree."""
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

"""Locate the files of a data set: the user's directory, the cache, or the original publisher."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
from pathlib import Path

from varifold.datasets.registry import Entry, File
from varifold.errors import DataError

__all__ = ["cache_directory", "content", "directories", "locate", "where"]


def cache_directory() -> Path:
    """Return the directory of downloads."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "varifold"


def directories() -> list[Path]:
    """Return the directories to search, in order: VARIFOLD_DATA, then the cache."""
    own = os.environ.get("VARIFOLD_DATA")
    return ([Path(own)] if own else []) + [cache_directory()]


def locate(file: File) -> Path | None:
    """Find the file on this machine, compressed or not; return None if it is missing."""
    for directory in directories():
        for name in (file.path, file.path.removesuffix(".gz")):
            path = directory / name
            if path.is_file():
                return path
    return None


def content(entry: Entry, file: File, path: Path) -> bytes:
    """Read the uncompressed bytes of a file and check them against the registry."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise DataError(f"{path} of data set {entry.name!r} cannot be decompressed: {error}") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != file.sha256:
        raise DataError(
            f"{path} of data set {entry.name!r} has sha256 {digest[:12]}..., expected {file.sha256[:12]}...; "
            "the file is damaged or another edition: replace it or delete it"
        )
    return data


def where(entry: Entry) -> str:
    """Return where a set would be loaded from: a directory, ``generated``, ``scikit-learn``, ``download`` or ``-``."""
    if entry.format == "synthetic":
        return "generated"
    paths = [locate(file) for file in entry.files]
    if paths and None not in paths:
        return str(paths[0].parent) if paths[0] is not None else "-"
    if entry.bundled and importlib.util.find_spec("sklearn") is not None:
        return "scikit-learn"
    return "download" if entry.files and all(file.url for file in entry.files) else "-"

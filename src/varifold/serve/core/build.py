"""Which build of the library runs: results are equal to the bit within one build only."""

from __future__ import annotations

import functools
import hashlib
import platform
from pathlib import Path

import varifold


@functools.cache
def build() -> str:
    """Sixteen hex digits over the compiled modules, the machine and its C library."""
    root = Path(varifold.__file__).parent
    digest = hashlib.sha256(f"{platform.machine()} {platform.libc_ver()}".encode())
    for module in sorted([*root.rglob("*.so"), *root.rglob("*.pyd")]):
        digest.update(str(module.relative_to(root)).encode())
        digest.update(module.read_bytes())
    return digest.hexdigest()[:16]


def identity() -> dict[str, str]:
    """Version and build, as a journal's header has them."""
    return {"version": varifold.__version__, "build": build()}

"""Model files with a right checksum and wrong content: refused or harmless, never a crash."""

from __future__ import annotations

import subprocess
import sys

import pytest

import varifold

FAMILIES = sorted({varifold.models[name].__module__.split(".")[1] for name in varifold.models})


@pytest.mark.parametrize("family", FAMILIES)
def test_no_crafted_file_crashes(family: str) -> None:
    """In a process of its own, since what is to be seen is that the process ends well."""
    names = [name for name in varifold.models if varifold.models[name].__module__.split(".")[1] == family]
    done = subprocess.run(
        [sys.executable, "-m", "tests.base.crafted", *names], capture_output=True, text=True, check=False
    )
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"exit code {done.returncode} at {last}: {done.stderr[-2000:]}"

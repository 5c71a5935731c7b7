"""Model files with a right checksum and wrong content: rejected or harmless, never a crash."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import varifold
from varifold.base import files
from varifold.errors import ModelFileError

METHODS = {**varifold.models, **varifold.detectors}
FAMILIES = sorted({cls.__module__.split(".")[1] for cls in METHODS.values()})


@pytest.mark.parametrize("family", FAMILIES)
def test_no_crafted_file_crashes(family: str) -> None:
    """In a process of its own, since what is to be seen is that the process ends well."""
    names = [name for name, cls in METHODS.items() if cls.__module__.split(".")[1] == family]
    done = subprocess.run(
        [sys.executable, "-m", "tests.base.crafted", *names], capture_output=True, text=True, check=False
    )
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"exit code {done.returncode} at {last}: {done.stderr[-2000:]}"


CYCLE = """
import gc, varifold
from varifold.base import files

def rejected():
    learner = varifold.ORF3V()
    for k in range(50):
        learner.learn_one({"a": k % 7}, "pq"[k % 2])
    header, arrays = files.decode(learner.to_bytes(), "")
    try:
        varifold.from_bytes(files.encode(header, {**arrays, "zzz": arrays["step"]}))
    except varifold.errors.ModelFileError as error:
        kept = error  # a cycle through this frame, which holds the learner

rejected()
gc.collect()
"""


def test_a_learner_in_a_cycle_is_collected_whole() -> None:
    done = subprocess.run([sys.executable, "-c", CYCLE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("make", "array"),
    [
        (lambda: varifold.Neighbours(window=10), "model.taken"),
        (lambda: varifold.NeighboursRegressor(window=10), "model.taken"),
        (lambda: varifold.DynFo(N=10), "model.window.taken"),
        (lambda: varifold.WindowForest(window=10), "model.window.taken"),
    ],
)
def test_counts_that_would_overflow_are_rejected(make: Any, array: str) -> None:
    learner = make()
    for k in range(40):
        learner.learn_one({"a": float(k % 7)}, float(k % 2))
    header, arrays = files.decode(learner.to_bytes(), "")
    arrays[array] = np.array([2**63 - 2])
    with pytest.raises(ModelFileError):
        varifold.from_bytes(files.encode(header, arrays))


@pytest.mark.parametrize("largest", [False, True])
def test_a_file_takes_memory_in_proportion_to_its_size(largest: bool) -> None:
    """Names, labels and parameters are small in a file; arrays of each name for each label, or of a window, are not."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.base.file_memory", *["largest"][:largest], *METHODS],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [name for name, _, _ in rows] == list(METHODS)
    wasteful = [f"{name}: {taken} of {size}" for name, taken, size in rows if int(taken) > 100 * int(size) + (64 << 20)]
    assert not wasteful, "bytes of memory for a file of these bytes"

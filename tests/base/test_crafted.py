"""Model files with a right checksum and wrong content: refused or harmless, never a crash."""

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

def refused():
    learner = varifold.ORF3V()
    for k in range(50):
        learner.learn_one({"a": k % 7}, "pq"[k % 2])
    header, arrays = files.decode(learner.to_bytes(), "")
    try:
        varifold.from_bytes(files.encode(header, {**arrays, "zzz": arrays["step"]}))
    except varifold.errors.ModelFileError as error:
        kept = error  # a cycle through this frame, which holds the learner

refused()
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
def test_counts_that_would_overflow_are_refused(make: Any, array: str) -> None:
    learner = make()
    for k in range(40):
        learner.learn_one({"a": float(k % 7)}, float(k % 2))
    header, arrays = files.decode(learner.to_bytes(), "")
    arrays[array] = np.array([2**63 - 2])
    with pytest.raises(ModelFileError):
        varifold.from_bytes(files.encode(header, arrays))


MEMORY = """
import resource, varifold
from varifold.base import files
from varifold.base.params import Integer

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

method = {{**varifold.models, **varifold.detectors}}[{name!r}]
learner = method()
learner.learn_one({{"a": 1.0, "b": "x"}}, *{target})
learner.learn_one({{"a": 2.0, "c": 1.0}}, *{target})
header, arrays = files.decode(learner.to_bytes(), "")
names = files.unpack_names(arrays)
many = [*names, *[f"n{{i}}" for i in range({names})]]
grown = {{key: a for key, a in arrays.items() if not key.startswith("names.")}}
for key in ("space.kind", "space.column", "space.seen", "scaler"):
    if len(grown[key]):
        rows = [grown[key][1:2]] * {names} if key != "space.column" else [range(len(names), len(many))]
        grown[key] = files.np.concatenate([grown[key], *rows]).astype(grown[key].dtype)
if header.get("labels"):
    header["labels"] = [f"l{{i}}" for i in range({labels})]
    grown["counts"] = files.np.ones({labels})
    for key in grown:
        if key.endswith("classes"):
            grown[key] = files.np.array([{labels}])
for key, constraint in method._constraints().items():
    for option in getattr(constraint, "options", [constraint]):
        if isinstance(option, Integer) and option.high is not None and {largest}:
            header["params"][key] = option.high
data = files.encode(header, {{**files.pack_names(many), **grown}})
before = peak()
try:
    varifold.from_bytes(data)
except varifold.errors.ModelFileError:
    pass
print(peak() - before, len(data))
"""


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("name", [*varifold.models, *varifold.detectors])
def test_a_file_takes_memory_in_proportion_to_its_size(name: str, largest: bool) -> None:
    """Names, labels and parameters are small in a file; arrays of each name for each label, or of a window, are not."""
    method = {**varifold.models, **varifold.detectors}[name]
    targets = {varifold.VaryingRegressor: "[1.0]", varifold.VaryingDetector: "[]"}
    target = next((text for base, text in targets.items() if issubclass(method, base)), "['l0']")
    script = MEMORY.format(name=name, target=target, names=5_000, labels=5_000, largest=largest)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    taken, size = map(int, done.stdout.split())
    assert taken < 100 * size + (64 << 20), f"{taken:,} bytes for a file of {size:,}"

"""Memory that loading a model file takes, by method: `python -m tests.base.file_memory [largest] NAME...`.

In a fork of this process (the peak of a process never falls) a file of each method is given many names and labels, with
`largest` the largest parameters too, and loaded. One line per method: name, bytes taken, bytes of the file.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from typing import Any

import numpy as np

import varifold
from varifold.base import files
from varifold.base.learner import is_detector, is_regressor
from varifold.base.params import Integer
from varifold.errors import ModelFileError

METHODS = {**varifold.models, **varifold.detectors}  # imported here, not in every fork
NAMES = LABELS = 5_000


def peak() -> int:
    """Return the most bytes that this process has taken so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def grown(method: Any, largest: bool) -> bytes:
    """Return the file of a learner of two instances with names and labels added."""
    learner = method()
    target = () if is_detector(learner) else (1.0,) if is_regressor(learner) else ("l0",)
    learner.learn_one({"a": 1.0, "b": "x"}, *target)
    learner.learn_one({"a": 2.0, "c": 1.0}, *target)
    header, arrays = files.decode(learner.to_bytes(), "")
    names = files.unpack_names(arrays)
    many = [*names, *[f"n{i}" for i in range(NAMES)]]
    arrays = {key: array for key, array in arrays.items() if not key.startswith("names.")}
    for key in ("space.kind", "space.column", "space.seen", "scaler"):
        if len(arrays[key]):
            rows = [arrays[key][1:2]] * NAMES if key != "space.column" else [range(len(names), len(many))]
            arrays[key] = np.concatenate([arrays[key], *rows]).astype(arrays[key].dtype)
    if header.get("labels"):
        header["labels"] = [f"l{i}" for i in range(LABELS)]
        arrays["counts"] = np.ones(LABELS)
        for key in arrays:
            if key.endswith("classes"):
                arrays[key] = np.array([LABELS])
    for key, constraint in method._constraints().items():
        for option in getattr(constraint, "options", [constraint]):
            if isinstance(option, Integer) and option.high is not None and largest:
                header["params"][key] = option.high
    return files.encode(header, {**files.pack_names(many), **arrays})


def measure(name: str, largest: bool) -> None:
    """Load a file of a method and print the memory that it took."""
    data = grown(METHODS[name], largest)
    before = peak()
    with contextlib.suppress(ModelFileError):
        varifold.from_bytes(data)
    print(name, peak() - before, len(data), flush=True)


if __name__ == "__main__":
    biggest = "largest" in sys.argv
    for each in sys.argv[1 + biggest :]:
        child = os.fork()
        if child == 0:
            measure(each, biggest)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            sys.exit(f"{each}: exit code {status}")

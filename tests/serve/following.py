"""`varifold follow` as a process, and lines to send to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from tests.serve.server import instance
from varifold.serve.core.database import Database
from varifold.serve.core.state import Limits, ModelState, Recovery
from varifold.serve.follow import Follower


def line(i: int, **more: Any) -> bytes:
    found = instance(i)
    return orjson.dumps({**found["x"], "state": found["y"], **more}) + b"\n"


def follow(*options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "varifold", "follow", "--target", "state", "--model", "arow", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    )


def ask(process: subprocess.Popen[bytes], data: bytes) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(data)
    process.stdin.flush()
    found: dict[str, Any] = orjson.loads(process.stdout.readline())
    return found


def outputs(follower: Follower, *lines: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(answer) for answer in follower.process(list(lines))]


def stored(folder: Path, name: str) -> tuple[ModelState, Recovery]:
    """Return a model as the store of a folder has it."""
    database = Database(folder)
    try:
        (row,) = (row for row in database.models() if row.name == name)
        return ModelState.load(database, row, Limits())
    finally:
        database.close()

"""A real server process for tests, and instances to send to it."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

numbers = itertools.count()
"""For names that no other test uses."""


def instance(i: int, features: int = 8) -> dict[str, Any]:
    rng = random.Random(i)
    x = {f"f{j}": round(rng.gauss(0, 1), 3) for j in range(features) if rng.random() < 0.8}
    return {"x": x, "y": "up" if sum(x.values()) > 0 else "down"}


def taught(client: httpx.Client, model: str, n: int = 40) -> None:
    """Let a model of the server learn some instances."""
    for i in range(n):
        assert client.post(f"/models/{model}/learn", json=instance(i)).status_code == 200


class Server:
    """`varifold serve` on a free port of this machine."""

    def __init__(self, folder: Path, *options: str, limit_file_size: int | None = None) -> None:
        self.folder = folder
        self.options = options
        self.errors = ""
        self._limit = limit_file_size
        self.environment: dict[str, str] = {}
        """Variables in addition to those of the tests."""
        self._log = folder.with_name(folder.name + ".log")
        self.process: subprocess.Popen[bytes]
        self.url = ""

    def start(self, wrap: list[str] | None = None) -> Server:
        command = [*(wrap or []), sys.executable, "-m", "varifold", "serve"]
        if self._limit is not None:
            command = ["bash", "-c", f'ulimit -f {self._limit}; trap "" XFSZ; exec "$@"', "-", *command]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--dir", str(self.folder), "--port", "0", *self.options],
                stderr=log,
                env=os.environ | self.environment,
            )
        line = self.wait_for_line("listening on ")
        self.url = re.findall(r"https?://[0-9.:]+", line)[0]
        return self

    def wait_for_line(self, text: str, seconds: float = 120.0) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in self.log().splitlines():
                if text in line:
                    return line
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no line with {text!r}: {self.log()}")

    def log(self) -> str:
        return self._log.read_text()

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=20.0, **more)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

"""Start a server process on a free port, and measure its memory and CPU time."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx


class Process:
    """`varifold serve` in a temporary folder; stops at the end of the with block."""

    def __init__(self, *options: str, folder: Path | None = None) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="varifold-serve-"))
        self.options = options
        self.url = ""

    def __enter__(self) -> Self:
        log = self.folder / "log"
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "varifold",
                    "serve",
                    "--dir",
                    str(self.folder / "state"),
                    "--port",
                    "0",
                    *self.options,
                ],
                stderr=file,
            )
        while not (found := re.search(r"http://\S+", log.read_text())):
            if self.process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.02)
        self.url = found[0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60.0)

    def rss(self) -> float:
        """Return the resident memory in MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) / 1024

    def cpu(self) -> float:
        """Return the CPU seconds used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def instance(rng: random.Random, features: int = 30, prefix: str = "f") -> dict[str, Any]:
    x = {f"{prefix}{j}": round(rng.gauss(0, 1), 6) for j in range(features)}
    return {"x": x, "y": "up" if sum(x.values()) > 0 else "down"}

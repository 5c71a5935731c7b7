"""A long run with churning features, devices and models: what must be flat, slot by slot, and the start after a kill.

Three streams run in turns: a model whose instances have 30 words that were never seen before, a model with learners by
key whose devices come and go, and models that are made, used and deleted. A probe measures how long an alert takes: a
feature falls silent, and the event is waited for.

python -m benchmarks.serve.soak [--minutes 30] [--method arow] [--max-features 500] [--max-keys 1000]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serve.process import Process

_COLUMNS = ("rss MB", "descriptors", "database MB", "p99 ms", "alert s", "report KB", "metrics ms")


def words(i: int, rng: random.Random) -> dict[str, Any]:
    """Generate ten permanent features and thirty words that were never seen before."""
    x = {f"stays-{j}": round(rng.gauss(0, 1), 3) for j in range(10)}
    label = "up" if sum(x.values()) > 0 else "down"
    return {"x": x | {f"word-{30 * i + j}": 1.0 for j in range(30)}, "y": label}


def reading(i: int, rng: random.Random) -> dict[str, Any]:
    """Generate a reading of one of 200 devices; an old one leaves and a new one comes every 20 readings."""
    x = {f"sensor-{j}": round(rng.gauss(0, 1), 3) for j in range(6)}
    return {"key": f"pump-{i // 20 + rng.randrange(200)}", "x": x, "y": "up" if sum(x.values()) > 0 else "down"}


class Soak:
    """Sends the streams and measures the server."""

    def __init__(self, server: Process, client: httpx.Client, method: str, max_features: int, max_keys: int) -> None:
        self.server, self.client = server, client
        self.rng, self.i = random.Random(5), 0
        made = {"method": method, "params": {"max_features": max_features}}
        client.put("/models/words", json=made).raise_for_status()
        client.put("/models/pumps", json={**made, "key": "device", "max_keys": max_keys}).raise_for_status()
        client.put("/models/probe", json={"method": "arow"}).raise_for_status()

    def slot(self, seconds: float) -> list[float]:
        """Send everything for a while; return the figures of this slot."""
        end, times = time.monotonic() + seconds, []
        while time.monotonic() < end:
            self.i += 1
            for name, body in (("words", words(self.i, self.rng)), ("pumps", reading(self.i, self.rng))):
                begun = time.perf_counter()
                self._learn_or_label(name, body)
                times.append(time.perf_counter() - begun)
            if self.i % 100 == 0:
                self._make_and_delete()
        return [
            self.server.rss(),
            len(list(Path(f"/proc/{self.server.process.pid}/fd").iterdir())),
            self._metric("store_bytes") / 1e6,
            statistics.quantiles(times, n=100)[98] * 1e3,
            self.alert_seconds(),
            len(self.client.get("/models/words/report").content) / 1e3,
            self._metrics_ms(),
        ]

    def _learn_or_label(self, name: str, body: dict[str, Any]) -> None:
        if self.i % 4:
            self.client.post(f"/models/{name}/learn", json=body).raise_for_status()
            return
        y = body.pop("y")
        kept = self.client.post(f"/models/{name}/predict", json={**body, "keep": True}).raise_for_status().json()["id"]
        if self.i % 8:
            self.client.post(f"/labels/{kept}", json={"y": y}).raise_for_status()

    def _make_and_delete(self) -> None:
        name = f"short-{self.i}"
        self.client.put(f"/models/{name}", json={"method": "auto"}).raise_for_status()
        for k in range(5):
            self.client.post(f"/models/{name}/learn", json=words(self.i + k, self.rng)).raise_for_status()
        self.client.delete(f"/models/{name}").raise_for_status()

    def alert_seconds(self) -> float:
        """Return the seconds from the moment a feature of the probe is missing to the event that reports it."""
        for _ in range(60):
            self.client.post("/models/probe/predict", json={"x": {"a": 1.0, "b": 1.0}}).raise_for_status()
        time.sleep(2.5)  # the check of the server, once a second, sees that it is here
        before, begun = self._silences(), time.monotonic()
        while self._silences() == before:
            self.client.post("/models/probe/predict", json={"x": {"a": 1.0}}).raise_for_status()
            time.sleep(0.02)
            if time.monotonic() - begun > 60:
                raise SystemExit("a silent feature was not reported within a minute")
        return time.monotonic() - begun

    def _silences(self) -> int:
        found = re.search(
            r'varifold_events_total\{kind="feature-silent",model="probe"\} (\S+)', self.client.get("/metrics").text
        )
        return 0 if found is None else int(float(found[1]))

    def _metric(self, name: str) -> float:
        return float(re.findall(rf"^varifold_{name} (\S+)", self.client.get("/metrics").text, re.M)[0])

    def _metrics_ms(self) -> float:
        begun = time.perf_counter()
        self.client.get("/metrics")
        return (time.perf_counter() - begun) * 1e3


def _restarted(folder: Path, options: tuple[str, ...]) -> str:
    """Start the killed server again; report the seconds until it serves, and how many of them it had a processor."""
    begun = time.perf_counter()
    with Process(*options, folder=folder) as server, server.client() as client:
        seconds, cpu = time.perf_counter() - begun, server.cpu()
        client.get("/models/words").raise_for_status()
    return f"{seconds:.1f} s, {cpu:.1f} s of CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--method", default="arow")
    parser.add_argument("--max-features", type=int, default=500)
    parser.add_argument("--max-keys", type=int, default=1_000, help="learners of devices, of which 200 send at a time")
    args = parser.parse_args()
    slots = max(6, min(30, round(args.minutes)))
    limits = ("--max-waiting", "200", "--max-ids", "200", "--max-model-memory", "4M")  # so small that all are reached
    options = (*limits, "--snapshot-every", "5000")
    rows: list[list[float]] = []
    with Process(*options) as server, server.client() as client:
        soak = Soak(server, client, args.method, args.max_features, args.max_keys)
        for slot in range(slots):
            rows.append(soak.slot(60 * args.minutes / slots))
            figures = "  ".join(f"{name} {value:.1f}" for name, value in zip(_COLUMNS, rows[-1], strict=True))
            print(f"{slot + 1:>3}  {2 * soak.i:>9,} instances  {figures}", flush=True)
        server.process.kill()
        server.process.wait()
    third = slots // 3
    summary = {}
    for k, name in enumerate(_COLUMNS):
        middle = statistics.median(row[k] for row in rows[third : 2 * third])
        last = statistics.median(row[k] for row in rows[-third:])
        summary[name] = (round(middle, 1), round(last, 1))
    print("middle third, last third:", json.dumps(summary))
    print(f"start after a kill: {_restarted(server.folder, options)}")
    shutil.rmtree(server.folder)


if __name__ == "__main__":
    main()

"""Sixty devices over MQTT: one loses a sensor, one dies, one drifts. When is each noticed, and by how many events?

A real broker (mosquitto), the server, and the dashboard in a real browser (chromium), which must show the three. Then a
burst of messages, all of which must be learned.

python -m benchmarks.serve.fleet [--devices 60] [--warm-up 40] [--burst 12000] [--picture fleet.png]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import aiomqtt
import httpx
from playwright.async_api import async_playwright

from benchmarks.serve.process import Process

_PAUSE = 0.5
"""Seconds between two readings of a device."""
SENSOR, DEAD, DRIFTED = "pump-07", "pump-21", "pump-42"
_EXPECTED = {SENSOR: "sensor-silent", DEAD: "device-silent", DRIFTED: "device-error"}
"""Device in trouble, and the kind of its event."""


def reading(key: str, rng: random.Random, trouble: bool) -> dict[str, Any]:
    """Generate a reading with its state; a drifting device has the states exchanged."""
    x = {name: round(rng.gauss(0, 1), 3) for name in ("pressure", "flow", "heat", "speed")}
    high = x["pressure"] + x["heat"] > 0
    if trouble and key == SENSOR:
        del x["flow"]
    if trouble and key == DRIFTED:
        high = not high
    return {**x, "state": "high" if high else "low", "ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


class Fleet:
    """Publishes the readings of all devices until it is stopped."""

    def __init__(self, client: aiomqtt.Client, devices: int) -> None:
        self.client = client
        self.keys = [f"pump-{k:02}" for k in range(devices)]
        self.trouble = False
        self.sent = 0
        self._rng = random.Random(3)

    async def run(self) -> None:
        while True:
            begun = time.monotonic()
            for key in self.keys:
                if not (self.trouble and key == DEAD):
                    await self._publish(key)
            await asyncio.sleep(max(0.0, _PAUSE - (time.monotonic() - begun)))

    async def _publish(self, key: str) -> None:
        payload = json.dumps(reading(key, self._rng, self.trouble))
        await self.client.publish(f"plant/{key}/reading", payload, qos=1)
        self.sent += 1

    async def burst(self, n: int) -> None:
        """Publish n readings as fast as the broker takes them."""
        for start in range(0, n, 500):
            keys = (self.keys[i % len(self.keys)] for i in range(start, min(n, start + 500)))
            await asyncio.gather(*map(self._publish, keys))


async def listen(url: str, found: list[tuple[float, dict[str, Any]]]) -> None:
    """Append the events of the server with the time of their arrival."""
    async with httpx.AsyncClient(timeout=None) as client, client.stream("GET", f"{url}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                found.append((time.monotonic(), json.loads(line[5:])))


async def steps(url: str) -> int:
    async with httpx.AsyncClient(timeout=30) as client:
        return int((await client.get(f"{url}/models/mqtt")).json()["steps"])


async def learned(url: str, n: int, seconds: float) -> float:
    """Wait until n readings are learned; return how long it took."""
    begun = time.monotonic()
    while await steps(url) < n:
        if time.monotonic() - begun > seconds:
            raise SystemExit(f"{await steps(url):,} of {n:,} readings are learned after {seconds:.0f} s")
        await asyncio.sleep(0.2)
    return time.monotonic() - begun


async def shown(url: str, picture: Path) -> list[str]:
    """Open the dashboard in a browser; return the devices at the top of its list with their status, and a picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1300, "height": 1500})
        await page.goto(f"{url}/#mqtt")
        await page.wait_for_selector("#device-list tr[data-device]", timeout=30_000)
        await page.wait_for_timeout(2_000)
        rows = await page.locator("#device-list tr").evaluate_all(
            "rows => rows.slice(0, 4).map(row => row.dataset.device + ': ' + row.dataset.status)"
        )
        await page.screenshot(path=str(picture))
        await browser.close()
    return list(rows)


async def run(port: int, url: str, args: argparse.Namespace) -> None:
    """Run the devices, the troubles and the burst; print what was noticed."""
    events: list[tuple[float, dict[str, Any]]] = []
    async with aiomqtt.Client("127.0.0.1", port, max_inflight_messages=2_000) as client:
        client.pending_calls_threshold = 100_000
        fleet = Fleet(client, args.devices)
        tasks = [asyncio.create_task(listen(url, events)), asyncio.create_task(fleet.run())]
        await asyncio.sleep(args.warm_up)
        early = [event["text"] for _, event in events if event["kind"].startswith(("device", "sensor", "feature"))]
        print(f"after {args.warm_up:.0f} s: {fleet.sent:,} readings sent, alerts {early}")
        fleet.trouble, begun, events[:] = True, time.monotonic(), []
        await asyncio.sleep(args.trouble)
        for key, kind in _EXPECTED.items():
            about = [(at - begun, event) for at, event in events if key in event.get("keys", ())]
            first = f"after {about[0][0]:.1f} s: {about[0][1]['text']}" if about else "not noticed"
            print(f"{key}: {len(about)} event(s), {[event['kind'] for _, event in about]} (expected {kind}), {first}")
        others = [event["text"] for _, event in events if not set(event.get("keys", ())) & set(_EXPECTED)]
        print(f"other events: {others}")
        print(f"dashboard, by trouble: {await shown(url, args.picture)}")
        tasks[1].cancel()
        await asyncio.sleep(1.0)
        await learned(url, fleet.sent, 120)
        begun = time.monotonic()
        await fleet.burst(args.burst)
        published = time.monotonic() - begun
        await learned(url, fleet.sent, 300)
        took = time.monotonic() - begun
        print(f"burst: {args.burst:,} published in {published:.1f} s, all of {fleet.sent:,} learned after {took:.1f} s")
        tasks[0].cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=60)
    parser.add_argument("--warm-up", type=float, default=40.0, help="seconds before the troubles start")
    parser.add_argument("--trouble", type=float, default=60.0, help="seconds for which they are observed")
    parser.add_argument("--burst", type=int, default=12_000)
    parser.add_argument("--picture", type=Path, default=Path("fleet.png"))
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="varifold-fleet-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    config = folder / "mosquitto.conf"
    settings = "allow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 256\npersistence false\nuser root\n"
    config.write_text(f"listener {port} 127.0.0.1\n{settings}")
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        raise SystemExit("mosquitto is needed: apt-get install mosquitto")
    broker = subprocess.Popen([program, "-c", str(config)], stderr=subprocess.DEVNULL)
    rules = json.dumps({"target": "state", "time": "ts"})
    topics = ("--mqtt", f"127.0.0.1:{port}", "--readings", "plant/{key}/reading", "--mqtt-input", rules)
    try:
        time.sleep(1.0)
        with Process(*topics, "--mqtt-method", "arow", folder=folder) as server:
            asyncio.run(run(port, server.url, args))
    finally:
        broker.terminate()
        broker.wait()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()

"""Speed of the server: learns by wrk at 1, 8 and 64 connections, NDJSON rows, web-socket messages, recovery, snapshots.

python -m benchmarks.serve.load [--method arow] [--seconds 5] [--fsync group]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import orjson
from websockets.asyncio.client import connect

from benchmarks.serve.process import Process, instance

LUA = """
local bodies, i = {}, 0
for line in io.lines("%s") do bodies[#bodies + 1] = line end
request = function()
  i = i + 1
  return wrk.format("POST", "/models/m/learn", {["content-type"] = "application/json"}, bodies[i %% #bodies + 1])
end
"""


def _bodies(folder: Path, n: int = 2_000) -> tuple[Path, list[bytes]]:
    rng = random.Random(1)
    lines = [orjson.dumps(instance(rng)) for _ in range(n)]
    path = folder / "bodies"
    path.write_bytes(b"\n".join(lines))
    return path, lines


def learns(server: Process, script: Path, connections: int, seconds: int) -> str:
    """Measure requests per second, latencies and CPU per request with wrk."""
    before, cpu = _seq(server), server.cpu()
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script), server.url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    done, cpu = _seq(server) - before, server.cpu() - cpu
    latency = dict(re.findall(r"(50|99)%\s+(\S+)", text))
    errors = re.findall(r"Non-2xx.*|Socket errors.*", text)
    rate = float(re.findall(r"Requests/sec:\s+([\d.]+)", text)[0])
    return (
        f"{connections:>3} connections  {rate:>8,.0f} learns/s  p50 {latency['50']:>8}  p99 {latency['99']:>8}  "
        f"cpu {cpu / max(1, done) * 1e6:.0f} us per learn{'  ' + errors[0] if errors else ''}"
    )


def _seq(server: Process) -> int:
    with server.client() as client:
        return int(client.get("/models").json()["models"][0]["seq"])


def rows(server: Process, lines: list[bytes], n: int) -> str:
    """Measure NDJSON rows per second."""
    content = b"\n".join(lines[i % len(lines)] for i in range(20_000))
    cpu, started = server.cpu(), time.perf_counter()
    with server.client() as client:
        for _ in range(n // 20_000):
            client.post("/models/m/batch", content=content).raise_for_status()
    seconds, cpu = time.perf_counter() - started, server.cpu() - cpu
    return f"NDJSON           {n / seconds:>8,.0f} rows/s    cpu {cpu / n * 1e6:.1f} us per row"


def messages(server: Process, lines: list[bytes], n: int) -> str:
    """Measure web-socket messages per second on one connection, with many in flight."""

    async def main() -> float:
        started = time.perf_counter()
        async with connect(server.url.replace("http", "ws") + "/models/m/stream", compression=None) as socket:

            async def send() -> None:
                for i in range(n):
                    await socket.send(lines[i % len(lines)])

            sending = asyncio.create_task(send())
            for _ in range(n):
                await socket.recv()
            await sending
        return time.perf_counter() - started

    cpu = server.cpu()
    seconds = asyncio.run(main())
    cpu = server.cpu() - cpu
    return f"web socket       {n / seconds:>8,.0f} messages/s  cpu {cpu / n * 1e6:.0f} us per message"


def pauses(lines: list[bytes], method: str, fsync: str, snapshots: int) -> str:
    """Measure how long snapshots block the writer, in a server that makes one every 1,000 changes."""
    content = b"\n".join(lines[i % len(lines)] for i in range(1_000))
    with Process("--fsync", fsync, "--snapshot-every", "1000") as server:
        with server.client() as client:
            client.put("/models/m", json={"method": method}).raise_for_status()
            while _metric(server, "snapshots") < snapshots:
                client.post("/models/m/batch", content=content).raise_for_status()
        made, p99, rss = _metric(server, "snapshots"), _metric(server, "snapshot_pause_p99_seconds"), server.rss()
    shutil.rmtree(server.folder)
    return f"snapshots        {made:.0f} of {method}: p99 of the pause {p99 * 1e3:.1f} ms; memory {rss:.0f} MB"


def _metric(server: Process, name: str) -> float:
    with server.client() as client:
        return float(re.findall(rf"varifold_model_{name}\{{.*\}} (\S+)", client.get("/metrics").text)[0])


def recovery(server: Process, folder: Path, method: str, fsync: str) -> str:
    """Kill the server and time the next start."""
    seq = _seq(server)
    server.process.kill()
    server.process.wait()
    started = time.perf_counter()
    with Process("--fsync", fsync, folder=folder) as again:
        seconds = time.perf_counter() - started
        same = _seq(again) == seq
    log = (folder / "log").read_text()
    replayed = re.findall(r"([\d,]+) changes replayed.*in ([\d.]+) s", log)
    return (
        f"recovery         {seq:,} changes of {method}: start in {seconds:.1f} s (replay {replayed}, complete: {same})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="arow")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--fsync", default="group")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--snapshots", type=int, default=100)
    args = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is needed: apt-get install wrk")
    folder = Path(tempfile.mkdtemp(prefix="varifold-load-"))
    path, lines = _bodies(folder)
    script = folder / "learn.lua"
    script.write_text(LUA % path)
    print(f"{args.method}, 30 features, fsync {args.fsync}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    server = Process("--fsync", args.fsync, folder=folder)
    server.__enter__()
    with server.client() as client:
        client.put("/models/m", json={"method": args.method}).raise_for_status()
    for connections in (1, 8, 64):
        print(learns(server, script, connections, args.seconds), flush=True)
    print(rows(server, lines, args.rows), flush=True)
    print(messages(server, lines, args.messages), flush=True)
    print(recovery(server, folder, args.method, args.fsync), flush=True)
    for method in dict.fromkeys((args.method, "auto")):
        print(pauses(lines, method, args.fsync, args.snapshots), flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()

"""A long run with churning features: memory stays flat, no request fails, the latency does not drift.

python -m benchmarks.serve.soak [--minutes 30] [--method arow] [--max-features 500]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Any

import httpx

from benchmarks.serve.process import Process


def churning(i: int, rng: random.Random) -> dict[str, Any]:
    """Generate twenty permanent features and ten from a slowly moving window of names that never return."""
    x = {f"stays-{j}": rng.gauss(0, 1) for j in range(20)}
    label = "up" if sum(x.values()) > 0 else "down"
    x |= {f"comes-{i // 7 + j}": rng.gauss(0, 1) for j in range(10)}
    return {"x": x, "y": label}


def one_minute(client: httpx.Client, start: int, rng: random.Random, seconds: float) -> tuple[int, list[float]]:
    """Learn, keep and label for a while; return the next index and the latencies."""
    end, times, i = time.monotonic() + seconds, [], start
    while time.monotonic() < end:
        body = churning(i, rng)
        begun = time.perf_counter()
        if i % 4:
            client.post("/models/m/learn", json=body).raise_for_status()
        else:
            kept = client.post("/models/m/predict", json={"x": body["x"], "keep": True}).raise_for_status().json()["id"]
            if i % 8:
                client.post(f"/labels/{kept}", json={"y": body["y"]}).raise_for_status()
        times.append(time.perf_counter() - begun)
        i += 1
    return i, times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--method", default="arow")
    parser.add_argument("--max-features", type=int, default=500)
    args = parser.parse_args()
    rng, i = random.Random(5), 0
    slots = max(4, min(30, round(args.minutes)))
    rows = []
    options = ("--max-waiting", "2000", "--max-ids", "2000", "--snapshot-every", "20000")
    with Process(*options) as server, server.client() as client:
        made = {"method": args.method, "params": {"max_features": args.max_features}}
        client.put("/models/m", json=made).raise_for_status()
        for slot in range(slots):
            i, times = one_minute(client, i, rng, 60 * args.minutes / slots)
            p99 = statistics.quantiles(times, n=100)[98] * 1e3
            rows.append((server.rss(), p99))
            print(f"{slot + 1:>3}  {i:>9,} instances  rss {rows[-1][0]:6.1f} MB  p99 {p99:6.1f} ms", flush=True)
    third = max(1, slots // 3)
    for k, name in enumerate(("rss MB", "p99 ms")):
        first = statistics.median(row[k] for row in rows[third : 2 * third])
        last = statistics.median(row[k] for row in rows[-third:])
        print(f"{name}: middle third {first:.1f}, last third {last:.1f} ({last / first - 1:+.1%})")


if __name__ == "__main__":
    main()

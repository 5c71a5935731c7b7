"""Thirty new words in every instance: memory, the check for alerts, the report and the snapshot must not grow.

The state of a model is driven without HTTP and disk, so that a million instances take minutes.

python -m benchmarks.serve.words [--instances 1000000] [--method arow] [--max-features 500] [--key [--max-keys 1000]]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from pathlib import Path

import orjson

from varifold.serve.alerts import AlertRules, Alerts
from varifold.serve.core import snapshot
from varifold.serve.core.models import Model, Models, Policy
from varifold.serve.core.state import Limits
from varifold.serve.reports import Reports


def _rss() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def feed(model: Model, first: int, last: int, rng: random.Random, *, keyed: bool) -> None:
    """Learn instances with ten permanent features and thirty new words; with `keyed` every one is of a new device."""
    for i in range(first, last):
        x: dict[str, float] = {f"stays-{j}": rng.random() for j in range(10)}
        label = "up" if sum(x.values()) > 5 else "down"
        x |= {f"word-{30 * i + j}": 1.0 for j in range(30)}
        model.state.apply({"x": x, "y": label, **({"key": f"device-{i}"} if keyed else {})}, b"{}")
        if i % 1_000 == 0:
            model.state.take_unwritten()


async def run(args: argparse.Namespace) -> None:
    """Print the figures ten times."""
    rng = random.Random(1)
    models = Models(Path(tempfile.mkdtemp(prefix="varifold-words-")), Policy(), Limits(), lambda reason: None)
    params, keyed = {"max_features": args.max_features}, ("key", None, args.max_keys) if args.key else ()
    model = await models.create("m", args.method, params, *keyed)
    alerts = Alerts(models, AlertRules())
    step = args.instances // 10
    for k in range(10):
        begun = time.process_time()
        feed(model, k * step, (k + 1) * step, rng, keyed=args.key)
        each = (time.process_time() - begun) / step * 1e6
        begun = time.process_time()
        alerts.check()
        check = (time.process_time() - begun) * 1e3
        size = len(orjson.dumps(Reports().of(model), option=orjson.OPT_NON_STR_KEYS))
        packed = sum(map(len, snapshot.split(model.state.parts())))
        print(
            f"{(k + 1) * step:>9,} instances  {each:5.1f} us each  rss {_rss():6.1f} MB  alert check {check:5.1f} ms  "
            f"report {size / 1e3:6.1f} KB  snapshot {packed / 1e3:8.1f} KB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=1_000_000)
    parser.add_argument("--method", default="arow")
    parser.add_argument("--max-features", type=int, default=500)
    parser.add_argument("--key", action="store_true", help="every instance is of a new device")
    parser.add_argument("--max-keys", type=int, default=1_000)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()

"""Time the evolving family on a stream whose 60 old features are replaced by 42 new linear functions of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import varifold

ROWS, OLD, NEW, OVERLAP = 4000, 60, 42, 10


def replaced() -> Any:
    rng = np.random.default_rng(0)
    old = rng.normal(size=(ROWS, OLD))
    y = (old @ rng.normal(size=OLD) + 2 * rng.normal(size=ROWS) > 0).tolist()
    new = old @ rng.normal(size=(OLD, NEW))
    old[ROWS // 2 :] = np.nan
    new[: ROWS // 2 - OVERLAP] = np.nan
    return varifold.to_block(np.hstack([old, new]), y)


def contenders(block: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield (name, function that runs one whole pass)."""
    for name, make in {
        "varifold FESL, block": varifold.FESL,
        "varifold PAFE, block": varifold.PAFE,
        "varifold CWFE, full covariance, block": varifold.CWFE,
        "varifold CWFE, diagonal, block": lambda: varifold.CWFE(covariance="diagonal"),
        "varifold CWFE, new model alone, block": lambda: varifold.CWFE(part="new"),
    }.items():
        yield name, lambda make=make: make().predict_learn_many(block)
    rows, y = list(block.rows()), block.y

    def singly() -> None:
        model = varifold.CWFE()
        for x, label in zip(rows, y, strict=True):
            model.predict_one(x)
            model.learn_one(x, label)

    yield "varifold CWFE, full covariance, dicts", singly


def show(only: str = "") -> None:
    """Print the best of three passes of each contender whose name contains `only`."""
    block = replaced()
    print(f"\nfeatures replaced half way: {len(block)} instances, {OLD} old features, then {NEW} new ones", flush=True)
    for name, run in contenders(block):
        if only.lower() in name.lower():
            best = min(timed(run) for _ in range(3)) / len(block)
            print(f"  {name:45} {1e6 * best:10.3f} us an instance {1 / best:12,.0f} instances/s", flush=True)


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start

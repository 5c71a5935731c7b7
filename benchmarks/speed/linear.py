"""Time every linear method and OVFIV through both APIs, compared with OLVF and river's LogisticRegression.

    python -m benchmarks.speed.linear      (also a part of python -m benchmarks.speed)

`spambase` with half of its values removed (generated data if VARIFOLD_DATA is not set); predict, then learn. Processor
time of the fastest of several passes from an empty model. The passes of all methods alternate, so that load on the
machine affects all of them alike.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from river import linear_model

import varifold
from varifold import Block

METHODS = [
    *["olvf", "arow", "pa", "ogd", "olsf", "fobos", "ftrlproximal", "ftrladp", "olids", "nb3", "gaussiannb"],
    *["ocds", "ovfiv"],
]
ROWS = 1500  # of the dict API
PASSES = 25


def seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def show(block: Block, only: str = "") -> None:
    """Print the table for OLVF and the methods whose name contains `only`."""
    rows = list(zip(block.rows(indicators=True), block.y, strict=True))[:ROWS]
    makers: dict[str, Callable[[], Any]] = {
        name: varifold.models[name] for name in METHODS if name == "olvf" or only.lower() in name
    }

    def singly(make: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            model = make()
            for x, y in rows:
                model.predict_one(x)
                model.learn_one(x, y)

        return run

    best: dict[tuple[str, str], float] = defaultdict(lambda: float("inf"))
    for _ in range(PASSES):
        for name, make in [*makers.items(), ("river LogisticRegression", linear_model.LogisticRegression)]:
            best[name, "dicts"] = min(best[name, "dicts"], seconds(singly(make)) / len(rows))
            if name in makers:
                taken = seconds(lambda make=make: make().run_block(block)) / len(block)
                best[name, "block"] = min(best[name, "block"], taken)
    unit = best["olvf", "block"]
    print(f"\nlinear methods, spambase vfs:0.5, {len(block.indices) / len(block):.1f} values each, us an instance")
    print(f"  {'method':28}{'dicts':>9}{'block':>9}{'block / OLVF':>14}")
    for name in makers:
        one, two = best[name, "dicts"], best[name, "block"]
        print(f"  {name:28}{1e6 * one:>9.2f}{1e6 * two:>9.3f}{two / unit:>14.2f}")
    print(f"  {'river LogisticRegression':28}{1e6 * best['river LogisticRegression', 'dicts']:>9.2f}")


if __name__ == "__main__":
    from benchmarks.speed.__main__ import spambase

    show(spambase())

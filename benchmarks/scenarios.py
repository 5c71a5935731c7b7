"""Compare the cost of simulating a scenario with the cost of learning the resulting stream.

    python -m benchmarks.scenarios [NAME ...]

For each registered set (default: spambase and imdb-7500, a bag of words) and each scenario: processor time for
permutation and mask, in ns per stored cell and relative to the time of OLVF, the cheapest learner: to learn the stream
only, and to predict, score and learn it. Best of several runs each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from varifold import OLVF, datasets
from varifold.evaluate import prequential
from varifold.streams import prepare

SPECS = (
    "vfs:0.25", "vfs:0.5", "vfs:0.75", "vfs:0.5,mode=exact", "capricious", "capricious:mode=pairs", "trapezoidal",
    "informative", "uninformative", "outage", "rotating", "bursts",
)  # fmt: skip


def best(task: Callable[[], object], times: int) -> float:
    """Return the least processor time of several runs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        task()
        taken.append(time.process_time() - start)
    return min(taken)


def compare(name: str) -> None:
    """Print the table of one data set."""
    block = datasets.load(name).block
    cells = len(block.indices)
    print(f"\n{name}: {len(block):,} rows, {cells:,} cells\n")
    print("| scenario | kept | mask, ns a cell | with permutation | mask / learn | mask / predict and learn |")
    print("|---|---|---|---|---|---|")
    for spec in SPECS:
        made = prepare(block, spec, seed=1).block
        mask = best(lambda spec=spec: prepare(block, spec, seed=1, shuffle=False), 7)
        both = best(lambda spec=spec: prepare(block, spec, seed=1), 5)
        learn = best(lambda made=made: OLVF().learn_many(made), 3)
        run = best(lambda made=made: prequential(OLVF(), made), 3)
        print(
            f"| {spec} | {len(made.indices) / cells:.2f} | {1e9 * mask / cells:.1f} | {1e9 * both / cells:.1f} "
            f"| {mask / learn:.2f} | {mask / run:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ["spambase", "imdb-7500"]:
        compare(chosen)

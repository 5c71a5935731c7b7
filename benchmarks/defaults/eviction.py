"""Time and error of learners whose memory is bounded by `max_features`, on streams of words with 10^5 names.

    python -m benchmarks.defaults.eviction [--methods arow,olvf] [--rows 3000] [--bound 5000]

Mails with 156 words each, drawn from 100,000 words by a power law, and IMDB's reviews. Processor time per instance of
predict and learn (block API), the runs with and without a bound in turns, best of `--passes`; the ratio must stay below
1.5. Errors in percent.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import varifold
from benchmarks.defaults.scaling import error
from benchmarks.defaults.streams import imdb

METHODS = ("arow", "olvf", "pa", "ogd", "ftrlproximal", "olsf", "fobos", "ftrladp", "additive", "nb3", "gaussiannb")


def mails(rows: int, seed: int = 0, vocabulary: int = 100_000, length: int = 156) -> varifold.Block:
    """Make mails whose label 200 of the commoner words decide."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, vocabulary + 1) ** 0.9
    edges = np.cumsum(share / share.sum())
    effect = np.zeros(vocabulary)
    effect[rng.choice(3000, 200, replace=False)] = rng.normal(size=200) * 2.0
    texts, y = [], []
    for _ in range(rows):
        words = np.unique(np.searchsorted(edges, rng.random(length + 20)))[:length]
        texts.append({f"w{j}": 1.0 for j in words.tolist()})
        y.append(bool(effect[words].sum() + 0.5 * rng.normal() > 0))
    return varifold.to_block(texts, y)


def seconds(make: Any, block: varifold.Block) -> float:
    learner = make()
    start = time.process_time()
    learner.run_block(block)
    return (time.process_time() - start) / len(block)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join((*METHODS, "auto")))
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--bound", type=int, default=5000)
    parser.add_argument("--passes", type=int, default=3)
    args = parser.parse_args()
    streams = {"mails": mails(args.rows), "imdb": imdb(args.rows)(0)}
    print(f"{'':26}{'us unbounded':>14}{'us bounded':>12}{'ratio':>8}{'error':>8}{'bounded':>9}")
    for stream, block in streams.items():
        print(f"{stream}, {len(block)} rows, {len(block.vocabulary)} names")
        for name in args.methods.split(","):
            makers = [varifold.models[name], lambda name=name: varifold.models[name](max_features=args.bound)]
            times = [[seconds(make, block) for make in makers] for _ in range(args.passes)]
            free, bounded = (1e6 * t for t in np.min(times, axis=0))
            errors = [error(make(), block) for make in makers]
            print(
                f"  {name:24}{free:>14.1f}{bounded:>12.1f}{bounded / free:>8.2f}{errors[0]:>8.1f}{errors[1]:>9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

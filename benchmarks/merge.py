"""Merging: one stream against the same instances learned in shards, which are merged once, vote, or merge in rounds.

    python benchmarks/merge.py [--shards 8] [--repeats 10] [--rows 8000] [--rounds 10] [--first-seed 3000] [--sets ...]

Seeds from 3000 on are for reports; how learners are merged was chosen with seeds from 1000 on.

Seven of ten instances (half of the values removed, order by seed) are learned, the others tested: percent right, mean
over the repeats. ``one``: all instances in one stream; ``shard``: one learner of one shard; ``merged``: all shards,
merged once, at the end; ``rounds``: the stream in that many rounds, after each of which every shard continues from the
merged learner; ``vote``: `Vote` of the shards. The last column is merged less one stream; ``!`` marks more than .5
points behind. For exact methods it is followed by the largest difference between two probabilities.
The original data sets are read from the folder that VARIFOLD_DATA names.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import varifold
from varifold import Block, datasets, streams
from varifold.base.shares import share_of

SETS = ["spambase", "magic04", "a8a"]


def mergeable() -> list[str]:
    return [name for name, cls in varifold.models.items() if cls().traits.merging]


def cut(block: Block, shards: int) -> list[Block]:
    to = share_of(np.arange(len(block), dtype=np.uint64), shards)
    return [block.take(np.flatnonzero(to == number)) for number in range(shards)]


def trained(model: str, blocks: list[Block]) -> list[Any]:
    found = [varifold.models[model]() for _ in blocks]
    for learner, block in zip(found, blocks, strict=True):
        learner.learn_many(block)
    return found


def in_rounds(model: str, block: Block, shards: int, rounds: int) -> Any:
    """Merge after each round; every shard continues from the merged learner, so that the past counts once per shard."""
    whole = varifold.models[model]()
    for part in np.array_split(np.arange(len(block)), rounds):
        learners = [copy.deepcopy(whole) for _ in range(shards)]
        for learner, piece in zip(learners, cut(block.take(part), shards), strict=True):
            learner.learn_many(piece)
        whole = varifold.merge(learners)
    return whole


def right(learner: Any, block: Block) -> float:
    found = learner.predict_many(block)
    return 100.0 * sum(a == b for a, b in zip(found, block.y, strict=True)) / len(block)


def apart(one: Any, other: Any, block: Block) -> float:
    """Return the largest difference between probabilities of two learners."""
    pairs = zip(one.predict_proba_many(block), other.predict_proba_many(block), strict=True)
    return max(abs(p - b[label]) for a, b in pairs for label, p in a.items())


def repeats(model: str, name: str, args: argparse.Namespace) -> Iterator[dict[str, float]]:
    given = datasets.load(name).block
    for seed in range(args.first_seed, args.first_seed + args.repeats):
        block = streams.prepare(given, "vfs:0.5", seed=seed).block[: args.rows]
        split = int(0.7 * len(block))
        train, test = block[:split], block[split:]
        (one,) = trained(model, [train])
        shards = trained(model, cut(train, args.shards))
        merged = varifold.merge(shards)
        found = {
            "one": right(one, test),
            "shard": right(shards[0], test),
            "merged": right(merged, test),
            "vote": right(varifold.Vote(shards), test),
            "apart": apart(one, merged, test),
        }
        if args.rounds:
            found["rounds"] = right(in_rounds(model, train, args.shards, args.rounds), test)
        yield found


def row(model: str, name: str, args: argparse.Namespace) -> str:
    runs = list(repeats(model, name, args))
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    spread = float(np.std([run["merged"] - run["one"] for run in runs]))
    behind = mean["merged"] - mean["one"]
    cells = [f"{mean[key]:.1f}" for key in ("one", "shard", "merged", "vote")]
    cells.append(f"{mean['rounds']:.1f}" if args.rounds else "")
    kind = str(varifold.models[model]().traits.merging)
    more = f" ({max(run['apart'] for run in runs):.0e})" if kind == "exact" else ""
    mark = " !" if behind < -0.5 else ""
    return f"| {name} | {model} | {kind} | {' | '.join(cells)} | {behind:+.2f} ± {spread:.2f}{more}{mark} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=3000)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--methods", nargs="+", default=mergeable())
    args = parser.parse_args()
    print("| set | method | merging | one | shard | merged | vote | rounds | merged - one |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in args.sets:
        for model in args.methods:
            print(row(model, name, args))
            sys.stdout.flush()


if __name__ == "__main__":
    main()

"""What each expert of the default learner is worth: the mean error without it.

    VARIFOLD_DATA=... python benchmarks/auto_ablation.py --cache ablation.jsonl [--budget balanced] [--seeds 100 101]

The streams are those of `auto_peers.py` (the long one left out) and scenarios of the papers' sets. Shown are the mean
error of all streams without the expert, how much that is more than with all experts (in points: what the expert is
worth), on how many streams it is at least .1 point worse or better, and the CPU microseconds per instance that leaving
it out saves. Cells are cached as they are in `auto_peers.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from auto_peers import GROUPS, STREAMS, measure

from varifold import AutoClassifier, datasets, evaluate, streams

SETS = ("german", "ionosphere", "wdbc", "spambase", "svmguide3", "wpbc", "diabetes", "wine")
SCENARIOS = ("vfs:0.5", "trapezoidal", "informative")
ROWS = 2000
ALL = "(none)"


def names_of(budget: str) -> list[str]:
    """The experts of a new learner."""
    return list(AutoClassifier(budget)._engine.model.names)


def without(expert: str, budget: str) -> AutoClassifier:
    """A new learner without one of its experts."""
    model = AutoClassifier(budget)
    if expert != ALL:
        model._names = [name for name in names_of(budget) if name != expert]
        model._engine = model._make_engine()
    return model


def cut_to(found: datasets.Dataset, seed: int) -> datasets.Dataset:
    """Some rows of a large set."""
    order = np.random.default_rng(seed).permutation(len(found.block))[:ROWS]
    return replace(found, block=found.block.take(order)) if len(found.block) > ROWS else found


def cell(stream: str, seed: int, expert: str, budget: str) -> dict[str, Any]:
    model = without(expert, budget)
    if stream in STREAMS:
        found = measure(model, STREAMS[stream](seed))
    else:
        name, scenario = stream.split(" ")
        prepared = streams.prepare(cut_to(datasets.load(name), seed), scenario, seed=seed)
        start = time.process_time()
        error = evaluate.prequential(model, prepared).cer
        found = {"error": error, "us": 1e6 * (time.process_time() - start) / len(prepared.block)}
    return {"stream": stream, "seed": seed, "without": expert, "budget": budget, **found}


def wanted(args: argparse.Namespace) -> Iterator[tuple[str, int, str, str]]:
    generated = [stream for group, some in GROUPS.items() if group != "long" for stream in some]
    known = [*generated, *(f"{name} {scenario}" for name in SETS for scenario in SCENARIOS)]
    for stream in args.streams or known:
        for seed in args.seeds:
            for expert in [ALL, *(args.experts or names_of(args.budget))]:
                yield stream, seed, expert, args.budget


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("auto_ablation.jsonl"))
    parser.add_argument("--budget", default="balanced", choices=["fast", "balanced", "best"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--streams", nargs="+", help="instead of all; a set and a scenario as 'german vfs:0.5'")
    parser.add_argument("--experts", nargs="+", help="to leave out, each in turn, instead of all")
    args = parser.parse_args()
    lines = args.cache.read_text().splitlines() if args.cache.exists() else []
    known = {tuple(c[k] for k in ("stream", "seed", "without", "budget")): c for c in map(json.loads, lines)}
    cells = list(wanted(args))
    with args.cache.open("a") as out:
        for key in cells:
            if key not in known:
                known[key] = cell(*key)
                out.write(json.dumps(known[key]) + "\n")
                out.flush()
    print_table({key: known[key] for key in cells}, args)


def print_table(known: dict[Any, dict[str, Any]], args: argparse.Namespace) -> None:
    experts = [ALL, *(args.experts or names_of(args.budget))]
    table = {e: np.array([[c["error"], c["us"]] for c in known.values() if c["without"] == e]) for e in experts}
    print("| without | mean error | worth | worse on | better on | us saved |\n|---|---|---|---|---|---|")
    for expert in experts:
        gap = 100 * (table[expert][:, 0] - table[ALL][:, 0])
        saved = table[ALL][:, 1].mean() - table[expert][:, 1].mean()
        print(
            f"| {expert} | {100 * table[expert][:, 0].mean():.2f} | {gap.mean():+.2f} | {(gap >= 0.1).sum()} "
            f"| {(gap <= -0.1).sum()} | {saved:.1f} |"
        )


if __name__ == "__main__":
    main()

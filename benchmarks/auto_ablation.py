"""Measure what each expert of the default classifier is worth: the mean error without it.

    VARIFOLD_DATA=... python benchmarks/auto_ablation.py --cache ablation.jsonl [--budget balanced] [--seeds 100 101]

`--experts "linear, full" "recall + recall, additive"` leaves out these (several at once, joined by " + ") instead of
each expert in turn. The streams are those of `auto_peers.py` without the long one, scenarios of the papers' sets, and
correlated features with many labels. The first table shows, for each group of streams, the mean error with all experts
and how much it rises (in points) without some; the second one, over all streams, on how many the error changes by at
least .1 point and the CPU microseconds per instance that leaving out saves. Cells are cached as in `auto_peers.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from auto_peers import GROUPS, Rows, measure

from varifold import AutoClassifier, datasets, evaluate, streams

SETS = ("german", "ionosphere", "wdbc", "spambase", "svmguide3", "wpbc", "diabetes", "wine")
SCENARIOS = ("vfs:0.5", "trapezoidal", "informative", "evolvable")
CATEGORICAL = ("australian", "credit-a", "credit-g", "kr-vs-kp", "splice")
"""Sets with string columns; in the papers they are streams whose features are replaced."""
ROWS = 2000
ALL = "(none)"


def correlated(labels: int) -> Callable[[int], Rows]:
    """Return a generator of 100 linear combinations of 20 factors; the label is the largest of random factor scores."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        mixing, weights = rng.normal(size=(20, 100)), rng.normal(size=(20, labels))
        factors = rng.normal(size=(ROWS, 20))
        values = factors @ mixing + 0.5 * rng.normal(size=(ROWS, 100))
        y = (factors @ weights).argmax(axis=1)
        return [({f"f{j}": float(v) for j, v in enumerate(x)}, int(c)) for x, c in zip(values, y, strict=True)]

    return make


GENERATED: dict[str, dict[str, Callable[[int], Rows]]] = {
    **{group: some for group, some in GROUPS.items() if group != "long"},
    "correlated": {f"correlated, {labels} labels": correlated(labels) for labels in (2, 5, 26)},
}
PREPARED = {
    **{scenario: [f"{name} {scenario}" for name in SETS] for scenario in SCENARIOS},
    "categorical": [f"{name} {scenario}" for name in CATEGORICAL for scenario in ("trapezoidal", "evolvable")],
}
GROUP_OF = {stream: group for group, some in [*GENERATED.items(), *PREPARED.items()] for stream in some}


def names_of(budget: str) -> list[str]:
    """List the experts of a new learner."""
    return list(AutoClassifier(budget)._engine.model.names)


def without(experts: str, budget: str) -> AutoClassifier:
    """Make a learner without these experts, joined by " + "."""
    model = AutoClassifier(budget)
    if experts != ALL:
        model._names = [name for name in names_of(budget) if name not in experts.split(" + ")]
        model._engine = model._make_engine()
    return model


def cut(data: datasets.Dataset, seed: int) -> datasets.Dataset:
    """Draw ROWS rows of a larger set."""
    order = np.random.default_rng(seed).permutation(len(data.block))[:ROWS]
    return replace(data, block=data.block.take(order)) if len(data.block) > ROWS else data


def cell(stream: str, seed: int, experts: str, budget: str) -> dict[str, Any]:
    """Measure one learner on one stream."""
    model = without(experts, budget)
    generated = GENERATED.get(GROUP_OF[stream])
    if generated:
        result = measure(model, generated[stream](seed))
    else:
        name, scenario = stream.split(" ")
        prepared = streams.prepare(cut(datasets.load(name), seed), scenario, seed=seed)
        start = time.process_time()
        error = evaluate.prequential(model, prepared).cer
        result = {"error": error, "us": 1e6 * (time.process_time() - start) / len(prepared.block)}
    return {"stream": stream, "seed": seed, "without": experts, "budget": budget, **result}


def wanted(args: argparse.Namespace) -> Iterator[tuple[str, int, str, str]]:
    """List the cells of the tables."""
    for seed in args.seeds:
        for stream in args.streams or GROUP_OF:
            for experts in [ALL, *(args.experts or names_of(args.budget))]:
                yield stream, seed, experts, args.budget


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("auto_ablation.jsonl"))
    parser.add_argument("--budget", default="balanced", choices=["fast", "balanced", "best"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--streams", nargs="+", help="some of them, such as 'german vfs:0.5'")
    parser.add_argument("--experts", nargs="+", help="experts to leave out, joined by ' + '")
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
    print_tables({key: known[key] for key in cells}, args)


def print_tables(known: dict[Any, dict[str, Any]], args: argparse.Namespace) -> None:
    """Print how much the error rises without the experts, by group and over all streams."""
    left_out = args.experts or names_of(args.budget)
    cells: dict[str, dict[tuple[str, int], dict[str, Any]]] = {e: {} for e in [ALL, *left_out]}
    for c in known.values():
        cells[c["without"]][c["stream"], c["seed"]] = c
    groups = dict.fromkeys(GROUP_OF[stream] for stream, _ in cells[ALL])
    print(f"| streams | runs | all experts | {' | '.join(left_out)} |\n|---|---|---|{'---|' * len(left_out)}")
    for group in [*groups, "all"]:
        keys = [key for key in cells[ALL] if group in (GROUP_OF[key[0]], "all")]
        error = {e: 100 * np.array([cells[e][key]["error"] for key in keys]) for e in cells}
        rises = " | ".join(f"{(error[e] - error[ALL]).mean():+.2f}" for e in left_out)
        print(f"| {group} | {len(keys)} | {error[ALL].mean():.2f} | {rises} |")
    print("\n| without | mean error | rise (standard error) | worse on | better on | us saved |")
    print("|---|---|---|---|---|---|")
    for e in cells:
        table = np.array([[100 * cells[e][key]["error"], cells[e][key]["us"]] for key in cells[ALL]])
        full = np.array([[100 * cells[ALL][key]["error"], cells[ALL][key]["us"]] for key in cells[ALL]])
        gap = table[:, 0] - full[:, 0]
        print(
            f"| {e} | {table[:, 0].mean():.2f} | {gap.mean():+.3f} ({gap.std() / len(gap) ** 0.5:.3f}) "
            f"| {(gap >= 0.1).sum()} | {(gap <= -0.1).sum()} | {(full - table)[:, 1].mean():.1f} |"
        )


if __name__ == "__main__":
    main()

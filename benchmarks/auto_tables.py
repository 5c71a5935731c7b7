"""The default learner, untouched, beside the best printed figure of any method in every cell of the papers' tables.

    VARIFOLD_DATA=... python benchmarks/auto_tables.py --repeats 3 [--tables ovfm-2,ovfiv-2] [--single arow,additive]

Every cell: CER of `auto` (mean over seeds 0, 1, ...), the best printed CER, that of the majority class, and the best of
the single learners asked for. A cell is won when ours is below the best printed one.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Any

import numpy as np

import varifold
from varifold import datasets, evaluate, streams
from varifold.bench.table import Data, Setting, Table, find_table

TABLES = "olvf-2,olvf-5,ovfm-2,orf3v-2,ovfiv-2,ovfiv-3,cwfe-2"


def best_printed(table: Table) -> dict[tuple[str, str], float]:
    """Lowest error of any method by (setting, data set); accuracies are turned into errors."""
    best: dict[tuple[str, str], float] = defaultdict(lambda: 1.0)
    for p in table.published:
        if p.mean is None or p.metric == "f1":
            continue
        key = (p.setting, p.data)
        best[key] = min(best[key], 1.0 - p.mean if p.metric == "accuracy" else p.mean)
    return best


def block_of(data: Data) -> Any:
    return datasets.load(data.load or data.name).block


def cell(setting: Setting, data: Data, learners: dict[str, Any], repeats: int) -> tuple[dict[str, float], float]:
    scenario = f"{data.before}+{setting.scenario}" if data.before else setting.scenario
    found: dict[str, list[float]] = {name: [] for name in learners}
    majority = []
    for seed in range(repeats):
        prepared = streams.prepare(block_of(data), scenario, seed=seed, shuffle=setting.shuffle)
        for name, make in learners.items():
            result = evaluate.prequential(make(), prepared)
            found[name].append(result.cer)
        majority.append(result.majority_cer)
    return {name: float(np.mean(values)) for name, values in found.items()}, float(np.mean(majority))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--single", default="additive,arow")
    parser.add_argument("--largest", type=int, default=6_000, help="leave out sets of more rows than this")
    args = parser.parse_args()
    learners = {name: varifold.models[name] for name in ["auto", *filter(None, args.single.split(","))]}
    won = lost = behind = 0
    for name in args.tables.split(","):
        table = find_table(name)
        printed = best_printed(table)
        for setting, data in table.places():
            best = printed.get((setting.name, data.name))
            if data.gap or best is None or len(block_of(data)) > args.largest:
                continue
            errors, majority = cell(setting, data, learners, args.repeats)
            mine = errors["auto"]
            won, lost = won + (mine < best), lost + (mine >= best)
            behind += mine > majority + 0.005
            single = min((v, k) for k, v in errors.items() if k != "auto") if len(errors) > 1 else (float("nan"), "")
            mark = "+" if mine < best else "-"
            print(
                f"{name:8} {setting.name:16} {data.name:14} {mark} auto {mine:.4f}  printed {best:.4f}"
                f"  majority {majority:.4f}  single {single[0]:.4f} {single[1]}",
                flush=True,
            )
    print(f"won {won} of {won + lost}; {behind} cells more than .005 behind the majority class")


if __name__ == "__main__":
    main()

"""The default learner, untouched, beside the best printed figure of any method in every cell of the papers' tables.

    VARIFOLD_DATA=... python benchmarks/auto_tables.py --repeats 3 [--tables ovfm-2,ovfiv-2] [--single arow,additive]

Every cell: CER of `auto` (mean over seeds 0, 1, ...), the best printed CER, the best of the single learners asked for,
and the majority class. A cell is won when ours is below the best printed one. At the end: the cells not won, with what
a ridge classifier reaches offline (ten-fold cross-validation on all rows of the very stream, absent values zero after
standardising; for evolving streams on the rows that count), and the average rank among all printed methods. A set of
more than `--rows` rows is cut to its first permuted rows, and marked with `*`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np

import varifold
from varifold import datasets, evaluate, streams
from varifold.bench.table import Data, Setting, Table, find_table

TABLES = "olvf-2,olvf-5,ovfm-2,orf3v-2,ovfiv-2,ovfiv-3,cwfe-2"
SINGLE = "additive,arow,gaussiannb,orf3v"


def printed(table: Table) -> dict[tuple[str, str], dict[str, float]]:
    """Error by method, for each (setting, data set); accuracies are turned into errors."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for p in table.published:
        if p.mean is not None and p.metric != "f1":
            found[p.setting, p.data][p.method] = 1.0 - p.mean if p.metric == "accuracy" else p.mean
    return found


@cache
def load(name: str) -> varifold.Block:
    return datasets.load(name).block


def stream(setting: Setting, data: Data, seed: int, rows: int) -> Any:
    block = load(data.load or data.name)
    if len(block) > rows:
        order = np.random.default_rng(seed).permutation(len(block)) if setting.shuffle else np.arange(len(block))
        block = block.take(order[:rows])
    scenario = f"{data.before}+{setting.scenario}" if data.before else setting.scenario
    return streams.prepare(block, scenario, seed=seed, shuffle=setting.shuffle)


def offline(prepared: Any) -> float:
    """Error of a ridge classifier, ten-fold, on the rows that count."""
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    block = prepared.block[prepared.scored_from :]
    dense = np.full((len(block), block.vocabulary.size), np.nan)
    dense[np.repeat(np.arange(len(block)), np.diff(block.indptr)), block.indices] = block.values
    dense = np.nan_to_num(StandardScaler().fit_transform(dense[:, ~np.isnan(dense).all(axis=0)]))
    model = make_pipeline(RidgeClassifierCV(np.logspace(-1, 4, 6)))
    return 1.0 - float(cross_val_score(model, dense, block.codes, cv=10).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--single", default=SINGLE)
    parser.add_argument("--rows", type=int, default=6_000, help="rows of a larger set that are run")
    args = parser.parse_args()
    learners = {name: varifold.models[name] for name in ["auto", *filter(None, args.single.split(","))]}
    done: dict[tuple[str, str], tuple[dict[str, float], float]] = {}
    lost: list[tuple[str, Setting, Data, float, float]] = []
    ranks, best_of_ours, cells, behind = [], 0, 0, []
    print(f"{'':42} {'auto':>7} {'printed':>8} {'single':>7} {'majority':>9}")
    for name in args.tables.split(","):
        table = find_table(name)
        for setting, data in table.places():
            methods = printed(table).get((setting.name, data.name), {})
            if data.gap or not methods:
                continue
            key = (f"{data.before}+{setting.scenario}", data.load or data.name)
            if key not in done:
                done[key] = cell(setting, data, learners, args)
            errors, majority = done[key]
            mine, best = errors["auto"], min(methods.values())
            single, which = min([(v, k) for k, v in errors.items() if k != "auto"] or [(1.0, "")])
            cells += 1
            best_of_ours += mine < single
            ranks.append(1 + sum(v < mine for v in methods.values()) + sum(v == mine for v in methods.values()) / 2)
            if mine >= best:
                lost.append((name, setting, data, mine, best))
            if mine > majority + 0.005:
                behind.append(f"{data.name} {setting.scenario} {mine - majority:.4f}")
            cut = "*" if len(load(data.load or data.name)) > args.rows else " "
            place = f"{name:8} {setting.scenario[:20]:20} {data.name:12}{cut}"
            mark = "+" if mine < best else "-"
            print(f"{place} {mark}{mine:7.4f} {best:8.4f} {single:7.4f} {majority:9.4f}  {which}", flush=True)
    print(
        f"\nwon {cells - len(lost)} of {cells} ({(cells - len(lost)) / cells:.0%}); better than every single learner "
        f"run in {best_of_ours}; average rank among the printed methods {np.mean(ranks):.2f}"
    )
    print(f"more than .005 behind the majority class: {'; '.join(behind) or 'none'}")
    print("\nnot won: ours, printed, ridge offline")
    for name, setting, data, mine, best in lost:
        reached = offline(stream(setting, data, 0, args.rows))
        print(f"{name:8} {setting.scenario[:28]:28} {data.name:12} {mine:.4f} {best:.4f} {reached:.4f}", flush=True)


def cell(setting: Setting, data: Data, learners: dict[str, Any], args: argparse.Namespace) -> Any:
    found: dict[str, list[float]] = {name: [] for name in learners}
    majority = []
    for seed in range(args.repeats):
        prepared = stream(setting, data, seed, args.rows)
        for name, make in learners.items():
            result = evaluate.prequential(make(), prepared)
            found[name].append(result.cer)
        majority.append(result.majority_cer)
    return {name: float(np.mean(values)) for name, values in found.items()}, float(np.mean(majority))


if __name__ == "__main__":
    main()

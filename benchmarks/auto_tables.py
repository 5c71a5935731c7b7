"""Compare the default learner with the best printed figure of any method, in every cell of the papers' tables.

    VARIFOLD_DATA=... python benchmarks/auto_tables.py [--repeats 3] [--tables ovfm-2,ovfiv-2] [--single arow,additive]

Every cell: CER of `auto` (mean over seeds), the best printed CER, the best of our single learners (those that
`--single` names, or all of them; on the first `--single-repeats` seeds, where `auto` is compared with them) and the
running majority class. A cell is won when ours is below the best printed one.

At the end: the cells not won, each with what learners reach offline on the very rows and a reason; the cells behind the
majority class; and the average rank among all printed methods and all of ours. Offline means five-fold cross-validation
on all rows of the stream of the first seed, or of an evolving stream on the rows that count: the best of ridge (absent
values zero after standardising), a random forest and gradient boosting (both see what is absent). A set of more than
`--rows` rows is cut to its first permuted rows, and marked with `*`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import rankdata

import varifold
from varifold import datasets, evaluate, streams
from varifold.bench.table import Data, Setting, Table
from varifold.bench.tables import find_table

SINGLE = "additive,arow,gaussiannb,orf3v,olvf,ftrladp"
TABLES = "olvf-2,olvf-5,ovfm-2,orf3v-2,ovfiv-2,ovfiv-3,cwfe-2"


def printed(table: Table) -> dict[tuple[str, str], dict[str, float]]:
    """Return the error by method for each (setting, data set); accuracies are converted to errors."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for p in table.published:
        if p.mean is not None and p.metric != "f1":
            found[p.setting, p.data][p.method] = 1.0 - p.mean if p.metric == "accuracy" else p.mean
    return found


@cache
def load(name: str) -> datasets.Dataset:
    return datasets.load(name)


def stream(setting: Setting, data: Data, seed: int, rows: int) -> Any:
    found = load(data.load or data.name)  # the data set, not its block: it knows how the papers convert it
    n = len(found.block)
    if n > rows:
        order = np.random.default_rng(seed).permutation(n) if setting.shuffle else np.arange(n)
        found = replace(found, block=found.block.take(order[:rows]))
    scenario = f"{data.before}+{setting.scenario}" if data.before else setting.scenario
    return streams.prepare(found, scenario, seed=seed, shuffle=setting.shuffle)


@dataclass
class Runs:
    """Errors of our learners on a stream by seed: `auto` on all seeds, the others on the first ones."""

    auto: np.ndarray[Any, Any]
    single: dict[str, np.ndarray[Any, Any]]
    majority: float

    @property
    def mean(self) -> float:
        return float(self.auto.mean())

    def alike(self) -> dict[str, float]:
        """Return the mean error by learner over the seeds that all of them ran."""
        shared = min([len(self.auto), *(len(e) for e in self.single.values())])
        return {name: float(e[:shared].mean()) for name, e in {"auto": self.auto, **self.single}.items()}

    def best_single(self) -> tuple[float, str]:
        return min(((float(e.mean()), name) for name, e in self.single.items()), default=(float("nan"), ""))


@dataclass
class Cell:
    """A cell of a paper's table, and our results for it."""

    table: str
    setting: Setting
    data: Data
    methods: dict[str, float]
    runs: Runs
    cut: bool

    @property
    def best(self) -> float:
        return min(self.methods.values())

    @property
    def won(self) -> bool:
        return self.runs.mean < self.best

    def place(self) -> str:
        return f"{self.table:8} {self.setting.scenario[:28]:28} {self.data.name[:17]:17}{'*' if self.cut else ' '}"

    def line(self) -> str:
        single, which = self.runs.best_single()
        mark = "+" if self.won else "-"
        figures = f"{self.runs.mean:7.4f} {self.best:8.4f} {single:7.4f} {self.runs.majority:9.4f}"
        return f"{self.place()} {mark}{figures}  {which}"


def run(setting: Setting, data: Data, single: list[str], args: argparse.Namespace) -> Runs:
    auto, majority = [], []
    others: dict[str, list[float]] = {name: [] for name in single}
    for seed in range(args.seed, args.seed + args.repeats):
        prepared = stream(setting, data, seed, args.rows)
        result = evaluate.prequential(varifold.AutoClassifier(), prepared)
        auto.append(result.cer)
        majority.append(result.majority_cer)
        if seed < args.seed + args.single_repeats:
            for name in single:
                others[name].append(evaluate.prequential(varifold.models[name](), prepared).cer)
    kept = {name: np.array(errors) for name, errors in others.items()}
    return Runs(np.array(auto), kept, float(np.mean(majority)))


def offline(prepared: Any) -> tuple[float, str]:
    """Return the least five-fold error of three learners on the rows that count."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    block = prepared.block[prepared.scored_from :]
    dense = np.full((len(block), block.vocabulary.size), np.nan)
    dense[np.repeat(np.arange(len(block)), np.diff(block.indptr)), block.indices] = block.values
    dense = dense[:, ~np.isnan(dense).all(axis=0)]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    learners: dict[str, tuple[Any, Any]] = {
        "ridge": (RidgeClassifierCV(np.logspace(-1, 4, 6)), np.nan_to_num(StandardScaler().fit_transform(dense))),
        "forest": (RandomForestClassifier(100, min_samples_leaf=3, random_state=0), dense),
        "boosting": (HistGradientBoostingClassifier(learning_rate=0.05, max_leaf_nodes=8, random_state=0), dense),
    }
    with threadpool_limits(1):
        errors = {n: 1.0 - float(cross_val_score(m, x, block.codes, cv=folds).mean()) for n, (m, x) in learners.items()}
    return min((e, n) for n, e in errors.items())


def reason(cell: Cell, reached: float) -> str:
    """Return the reason why a cell is not won, from the figures alone."""
    short = cell.runs.mean - cell.best
    spread = float(cell.runs.auto.std(ddof=1) / np.sqrt(len(cell.runs.auto))) if len(cell.runs.auto) > 1 else 0.0
    single, which = cell.runs.best_single()
    if reached >= cell.best:
        return "not reached offline either"
    if short <= 2.0 * spread:
        return f"within two standard errors ({spread:.4f})"
    if single < cell.best:
        return f"{which} alone would win: the combination learns whom to trust too late"
    return "reached offline only, after many passes" + (" over more rows" if cell.cut else "")


def ranks(cells: list[Cell]) -> list[tuple[float, str, int]]:
    """Return the average rank by method over the cells that have it; printed methods in capitals, as in the papers."""
    found: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        errors = {f"{name} (printed)": e for name, e in cell.methods.items()} | cell.runs.alike()
        for name, rank in zip(errors, rankdata(list(errors.values())), strict=True):
            found[name].append(float(rank) / len(errors))
    return sorted((float(np.mean(r)), name, len(r)) for name, r in found.items())


def gather(args: argparse.Namespace, single: list[str], report: Callable[[Cell], None]) -> list[Cell]:
    done: dict[tuple[str, str], Runs] = {}
    cells = []
    for name in args.tables.split(","):
        table = find_table(name)
        for setting, data in table.places():
            methods = printed(table).get((setting.name, data.name), {})
            if data.gap or not methods:
                continue
            key = (f"{data.before}+{setting.scenario}", data.load or data.name)
            if key not in done:
                done[key] = run(setting, data, single, args)
            cut = len(load(data.load or data.name).block) > args.rows
            cells.append(Cell(name, setting, data, methods, done[key], cut))
            report(cells[-1])
    return cells


def summarise(cells: list[Cell], args: argparse.Namespace) -> None:
    for title, some in (("all cells", cells), ("sets run whole", [c for c in cells if not c.cut])):
        won = sum(c.won for c in some)
        alike = [c.runs.alike() for c in some if c.runs.single]
        ahead = sum(a["auto"] < min(v for n, v in a.items() if n != "auto") for a in alike)
        print(f"{title}: won {won} of {len(some)} ({won / len(some):.1%}), ahead of every single learner in {ahead}")
    behind = {f"{c.data.name} {c.setting.scenario}": c.runs.mean - c.runs.majority for c in cells}
    worst = sorted(behind.items(), key=lambda item: -item[1])[:3]
    print("furthest behind the majority class (at most .005 is allowed): ", end="")
    print("; ".join(f"{place} {gap:+.4f}" for place, gap in worst))
    print("\naverage rank, as a part of those in the cell (0 best, 1 last), all printed methods and ours:")
    for rank, name, count in ranks(cells)[:10]:
        print(f"  {rank:.3f}  {name}, {count} cells")
    print(f"\nnot won:\n{'':56} {'auto':>7} {'printed':>8} {'single':>7} {'majority':>9} {'offline':>8}")
    for c in cells:
        if not c.won:
            reached, which = offline(stream(c.setting, c.data, args.seed, args.rows))
            single, name = c.runs.best_single()
            figures = f"{c.runs.mean:7.4f} {c.best:8.4f} {single:7.4f} {c.runs.majority:9.4f} {reached:8.4f}"
            print(f"{c.place()} {figures}  {name}; {which}; {reason(c, reached)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--single", default=SINGLE, help="our single learners, separated by commas; none; all")
    parser.add_argument("--single-repeats", type=int, default=1, help="seeds on which the single learners are run")
    parser.add_argument("--rows", type=int, default=6_000, help="rows of a larger set that are run")
    args = parser.parse_args()
    named = {"all": [name for name in varifold.models if name != "auto"], "none": []}
    single = named.get(args.single, args.single.split(","))
    print(f"{'':56} {'auto':>8} {'printed':>8} {'single':>7} {'majority':>9}")
    cells = gather(args, single, lambda cell: print(cell.line(), flush=True))
    print()
    summarise(cells, args)


if __name__ == "__main__":
    main()

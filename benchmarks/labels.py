"""AutoDetector with labels of some rows: how much a few of them improve the weights of its experts.

    VARIFOLD_DATA=... python -m benchmarks.labels [--rows 3000] [--seeds 30,31]

The sets and scenarios of `varifold bench run anomaly`. Every row is scored, then learned; then a share of the rows,
drawn at random, is labelled. The figures are the mean AUROC over all rows, those before the first label included, and
the cells (set and scenario) that are more than .05 behind the best single expert.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import varifold
from varifold import Block, datasets, streams
from varifold.bench import find_table
from varifold.evaluate import detection_scores

SCENARIOS = {setting.name: setting.scenario for setting in find_table("anomaly").settings}
SHARES = (0.0, 0.02, 0.1)
EXPERTS = ("taildetector", "copuladetector", "neighboursdetector", "isolationdetector")


def area(scores: Any, y: NDArray[np.bool_]) -> float:
    """Return the AUROC."""
    return detection_scores(scores, y, np.zeros(len(y))).auroc


def labelled(block: Block, y: NDArray[np.bool_], seed: int, share: float) -> float:
    """Return the AUROC of an AutoDetector that gets labels of a share of the rows."""
    model, rng, scores = varifold.AutoDetector(seed=seed), random.Random(seed), []
    for x, anomaly in zip(block.rows(), y, strict=True):
        scores.append(model.score_one(x))
        model.learn_one(x)
        if rng.random() < share:
            model.label_one(x, bool(anomaly))
    return area(scores, y)


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", default="30,31")
    args = parser.parse_args()
    seeds = [int(seed) for seed in args.seeds.split(",")]
    areas: dict[Any, dict[str, list[float]]] = {key: {s: [] for s in SCENARIOS} for key in (*SHARES, "best")}
    for data in find_table("anomaly").data:
        whole = datasets.load(data.load)
        for scenario in SCENARIOS:
            found: dict[Any, list[float]] = {key: [] for key in (*SHARES, *EXPERTS)}
            for seed in seeds:
                block = streams.prepare(whole, f"sample:{args.rows}+{SCENARIOS[scenario]}", seed=seed).block
                y = block.codes == 1
                for share in SHARES:
                    found[share].append(labelled(block, y, seed, share))
                for name in EXPERTS:
                    found[name].append(area(varifold.detectors[name]().run_block(block)[0], y))
            for share in SHARES:
                areas[share][scenario].append(float(np.mean(found[share])))
            areas["best"][scenario].append(max(float(np.mean(found[name])) for name in EXPERTS))
    print("| labels | " + " | ".join(SCENARIOS) + " | cells .05 behind | worst |\n|---|" + "---|" * 6)
    for share in SHARES:
        behind = np.concatenate([np.subtract(areas["best"][s], areas[share][s]) for s in SCENARIOS])
        cells = " | ".join(f"{np.mean(areas[share][s]):.3f}" for s in SCENARIOS)
        print(f"| {share:.0%} | {cells} | {(behind > 0.05).sum()} | {behind.max():.3f} |")


if __name__ == "__main__":
    main()

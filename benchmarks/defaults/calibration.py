"""Log loss of every classifier with and without `calibrate`, next to river's scaled logistic regression.

    python -m benchmarks.defaults.calibration [--streams development|report] [--methods arow,olvf]

Natural streams and registered sets (`streams.py`), first seed of each; also the time per instance of both forms (block
API, processor time, in turns, best of three).
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
from river import compose, linear_model, preprocessing
from river.multiclass import OneVsRestClassifier

import varifold
from benchmarks.defaults.streams import DEVELOPMENT, REPORT, seeds

METHODS = "additive,arow,cwfe,fesl,ftrladp,ftrlproximal,gaussiannb,nb3,ogd,olsf,olvf,pa,ovfm,windowforest"
STREAMS = (
    *("icu", "weather", "nhanes", "football", "spambase", "spambase, words 1.0", "magic04", "frogs"),
    *("dna", "drybean"),
)
SLOW = ("ovfm",)


def log_loss(learner: Any, block: varifold.Block) -> float:
    """Return the mean log loss; a label that has not been seen costs as much as a fair guess between two."""
    _, chances = learner.run_block(block)
    labels = {y: c for c, y in enumerate(learner.classes)}
    truth = [labels[y] for y in block.y]
    p = np.array([row[c] for row, c in zip(chances, truth, strict=True)])
    seen: set[int] = set()
    for i, c in enumerate(truth):
        if c not in seen:
            p[i] = 0.5
            seen.add(c)
    return float(-np.log(np.clip(p, 1e-6, 1.0)).mean())


def river_loss(block: varifold.Block) -> float:
    model = compose.Pipeline(preprocessing.StandardScaler(), OneVsRestClassifier(linear_model.LogisticRegression()))
    total = 0.0
    for x, y in zip(block.rows(indicators=True), block.y, strict=True):
        total -= math.log(min(max(model.predict_proba_one(x).get(y, 0.5), 1e-6), 1.0))
        model.learn_one(x, y)
    return total / len(block)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", choices=["development", "report"], default="development")
    parser.add_argument("--methods", default=METHODS)
    args = parser.parse_args()
    report = args.streams == "report"
    methods = args.methods.split(",")
    print(f"{'':22}{'river':>8}" + "".join(f"{name[:12]:>14}" for name in methods))
    spent = dict.fromkeys(methods, (0.0, 0.0))
    for stream, make in (REPORT if report else DEVELOPMENT).items():
        if stream not in STREAMS:
            continue
        block = make(seeds(stream, report)[0])
        cells = []
        for name in methods:
            rows = block.take(np.arange(min(len(block), 1000))) if name in SLOW else block
            losses = [log_loss(varifold.models[name](calibrate=c), rows) for c in (False, True)]
            cells.append(f"{losses[0]:.3f} {losses[1]:.3f}")
            times = []
            for _ in range(1 if name in SLOW else 3):
                for c in (False, True):
                    learner = varifold.models[name](calibrate=c)
                    start = time.process_time()
                    learner.run_block(rows)
                    times.append(time.process_time() - start)
            spent[name] = (spent[name][0] + min(times[::2]), spent[name][1] + min(times[1::2]))
        print(f"{stream:22}{river_loss(block):>8.3f}" + "".join(f"{cell:>14}" for cell in cells), flush=True)
    print(f"{'time, calibrated / not':30}" + "".join(f"{b / a:>14.2f}" for a, b in spent.values()))


if __name__ == "__main__":
    main()

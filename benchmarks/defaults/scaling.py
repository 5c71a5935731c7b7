"""Compare the kinds of scaling as the default of every method that scales its inputs.

    python -m benchmarks.defaults.scaling [--streams development|report] [--methods arow,olvf] [--kinds standard,robust]

Prints the error in percent of every method with every kind on every stream (regressors: mean absolute error as a share
of that of the running median of all targets so far), the mean over streams, and where a kind is more than .5 points
worse than the first.
Development: seeds 0, 10, 20 (natural streams: the first rows); report: seeds 1, 11, 21 (other rows), other data sets.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import varifold
from benchmarks.defaults.streams import DEVELOPMENT, REGRESSION, REPORT, seeds
from varifold.base.learner import UnscaledLearner, is_regressor

UNSCALED = ("auto", "autoregressor", "gaussiannb", "nb3", "variation", "meanregressor")  # or measured elsewhere
SLOW = ("ovfm", "neighbours", "copularegressor", "ocds", "ovfiv", "variation")


def scaled_methods() -> dict[str, Any]:
    """Return the methods that scale their inputs, by name."""
    return {
        name: varifold.models[name]
        for name in varifold.models
        if not issubclass(varifold.models[name], UnscaledLearner) and name not in UNSCALED
    }


def error(learner: Any, block: varifold.Block) -> float:
    """Return the prequential error in percent."""
    if is_regressor(learner):
        predicted = learner.run_block(block)
        truth = np.asarray(block.targets)
        naive = [0.0, *(np.cumsum(truth)[:-1] / np.arange(1, len(truth)))]
        return 100.0 * float(np.abs(predicted - truth).mean() / np.abs(naive - truth).mean())
    classes, _ = learner.run_block(block)
    truth = np.array([learner.classes.index(y) for y in block.y])
    return 100.0 * float((classes != truth).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", choices=["development", "report"], default="development")
    parser.add_argument("--methods", default="")
    parser.add_argument("--kinds", default="standard,robust")
    args = parser.parse_args()
    report = args.streams == "report"
    kinds = args.kinds.split(",")
    methods = {k: v for k, v in scaled_methods().items() if not args.methods or k in args.methods.split(",")}
    results: dict[tuple[str, str, str], float] = {}
    for tasks, regression in ((REPORT if report else DEVELOPMENT, False), (REGRESSION, True)):
        chosen = [name for name in methods if is_regressor(methods[name]) == regression]
        if not chosen:
            continue
        print(f"\n{'':22}" + "".join(f"{name[:14]:>15}" for name in chosen))
        for stream, make in tasks.items():
            blocks = [make(seed) for seed in seeds(stream, report)]
            cells = []
            for name in chosen:
                few = 200 if stream.startswith("imdb") else 800
                some = [b.take(np.arange(min(len(b), few))) if name in SLOW else b for b in blocks]
                for kind in kinds:
                    errors = [error(methods[name](scale=kind), b) for b in some]
                    results[stream, name, kind] = float(np.mean(errors))
                cells.append(" ".join(f"{results[stream, name, kind]:.1f}" for kind in kinds))
            print(f"{stream:22}" + "".join(f"{cell:>15}" for cell in cells), flush=True)
        means = [[np.mean([results[s, name, k] for s in tasks]) for k in kinds] for name in chosen]
        print(f"{'mean':22}" + "".join(f"{' '.join(f'{m:.2f}' for m in row):>15}" for row in means))
        for stream in tasks:
            for name in chosen:
                first, *others = (results[stream, name, k] for k in kinds)
                for kind, other in zip(kinds[1:], others, strict=True):
                    if other > first + 0.5:
                        print(f"worse: {stream}, {name}: {kinds[0]} {first:.1f}, {kind} {other:.1f}")


if __name__ == "__main__":
    main()

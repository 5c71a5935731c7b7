"""Compare policies of requesting labels: error over the stream by labels spent.

    python -m benchmarks.asking [--rows 3000] [--seeds 0 1] [--model arow]

Every policy gets the same streams (a permutation per seed, half of the values absent); *to reach* is the share of
labels at which a policy has the error that random requests have with 10 % of the labels, interpolated between the
budgets run.
"""

from __future__ import annotations

import argparse

import numpy as np

from varifold import datasets, models, streams
from varifold.ask import POLICIES, AskingClassifier, AskPolicy
from varifold.evaluate import prequential

BUDGETS = (0.01, 0.02, 0.035, 0.05, 0.1)
DEVELOPMENT = ("spambase", "magic04", "kr-vs-kp", "wbc", "german")
REPORT = ("a8a", "splice", "svmguide3", "frogs", "diabetes")


def error(model: str, name: str, rows: int, seed: int, by: str, budget: float) -> tuple[float, float, AskPolicy]:
    """Return the error of one run, the share of labels spent, and the policy."""
    stream = streams.prepare(datasets.load(name), "vfs:0.5", seed=seed)
    block = stream.block[:rows]
    policy = AskPolicy(budget, by=by, seed=seed)
    result = prequential(AskingClassifier(models[model](), policy), block)
    return result.cer, policy.asked / policy.seen, policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--model", default="arow")
    parser.add_argument("--report", action="store_true", help="the report sets instead of the development sets")
    args = parser.parse_args()
    reached: dict[str, list[float]] = {by: [] for by in POLICIES}
    gaps = []
    print(f"{'':12}" + "".join(f"{by:>10}{'to reach':>10}" for by in POLICIES) + "   error at 5 %")
    for name in REPORT if args.report else DEVELOPMENT:
        curves = {}
        for by in POLICIES:
            runs = [[error(args.model, name, args.rows, s, by, b) for b in BUDGETS] for s in args.seeds]
            curves[by] = np.array([[(r[0], r[1]) for r in run] for run in runs]).mean(axis=0)
            for run in runs:
                for true, _, policy in run:
                    estimate = policy.estimate()
                    if estimate.standard_error > 0.0:
                        gaps.append((estimate.error - true) / estimate.standard_error)
        goal = curves["random"][-1, 0]
        cells = []
        for by, curve in curves.items():
            best = np.minimum.accumulate(curve[:, 0])
            share = float(np.interp(-goal, -best, curve[:, 1], right=np.inf)) if best[-1] <= goal else np.inf
            reached[by].append(share)
            cells.append(f"{curve[3, 0]:10.3f}{share:10.3f}")
        print(f"{name:12}" + "".join(cells), flush=True)
    print(f"{'median':12}" + "".join(f"{'':10}{np.median(shares):10.3f}" for shares in reached.values()))
    z = np.array(gaps)
    within = np.mean(np.abs(z) < 2)
    print(f"estimated less true error, in standard errors: median {np.median(z):+.2f}, within two {within:.0%}")


if __name__ == "__main__":
    main()

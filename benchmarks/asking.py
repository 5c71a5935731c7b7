"""Compare policies of requesting labels: error over the stream by labels spent, the budget kept, and drift.

    python -m benchmarks.asking [--rows 2500] [--seeds 0 1 2] [--model arow] [--report]
    python -m benchmarks.asking --drift [--seeds 0 1 2] [--model auto:budget=fast]

Every policy gets the same streams (a permutation per seed, half of the values absent). The goal is the error of the
same learner with 10 % of the labels, each drawn independently; *to reach* is how many labels a policy needs for it, as
a share of those. A policy that never gets there counts as 1.5, the largest budget run. *random* is the policy of that
name: as the others it requests the first instances and keeps the budget over every 1,000 rows, but chooses the rest at
random. A set is hard if the goal is below *majority*, the error of always predicting the most frequent label: elsewhere
any policy reaches the goal early.

With --drift, half-way through 8,000 rows the concept changes: the labels are exchanged; or only where the classifier is
sure; or the feature that decided falls silent and another, never labelled, takes its place. The budget is 5 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from varifold import datasets, streams
from varifold.ask import POLICIES, AskingClassifier, AskPolicy
from varifold.base.spec import parse_model
from varifold.evaluate import prequential

BUDGETS = (0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.15)
GOAL = 0.1
DEVELOPMENT = ("spambase", "magic04", "kr-vs-kp", "wbc", "german", "drybean", "dna", "ionosphere", "australian")
REPORT = ("a8a", "splice", "svmguide3", "frogs", "diabetes", "wdbc", "credit-g", "adult", "electricity")
DRIFT_ROWS = 8000


class Logged(AskPolicy):
    """A policy that keeps its decisions, to check the budget."""

    def __init__(self, *args: Any, **params: Any) -> None:
        super().__init__(*args, **params)
        self.requests: list[bool] = []

    def decide(self, x: Any, probabilities: Any) -> Any:
        """Decide, and keep the decision."""
        decision = super().decide(x, probabilities)
        self.requests.append(decision.ask)
        return decision

    def excess(self) -> float:
        """Return how much more than the budget was requested in the worst 1,000 rows, as a share of the rows."""
        if len(self.requests) < 1000:
            return 0.0
        return float(np.convolve(self.requests, np.ones(1000), "valid").max()) / 1000 - self.budget


class Independent(AskPolicy):
    """Labels drawn independently with the same probability."""

    def decide(self, x: Any, probabilities: Any) -> Any:
        """Draw."""
        rng = np.random.default_rng((self.seed, self.seen))
        decision = super().decide(x, probabilities)
        ask = bool(rng.random() < self.budget)
        self.asked += ask - decision.ask
        return decision._replace(ask=ask, chance=self.budget)


def run(model: str, block: Any, policy: AskPolicy) -> tuple[float, float, float]:
    """Return the error of one run, the share of the labels spent, and the error of the most frequent label."""
    result = prequential(AskingClassifier(parse_model(model)(), policy), block)
    return result.cer, policy.asked / policy.seen, result.majority_cer


def reached(goal: float, curve: np.ndarray) -> float:
    """Return the share of labels at which a curve of (error, share) first reaches an error."""
    best = np.minimum.accumulate(curve[:, 0])
    return float(np.interp(-goal, -best, curve[:, 1])) if best[-1] <= goal else float("inf")


def compare(names: Sequence[str], args: argparse.Namespace) -> None:
    """Print the labels that each policy needs, by data set."""
    needed: dict[str, list[float]] = {by: [] for by in args.policies}
    gaps, hard, excess = [], [], 0.0
    print(
        f"{'labels to reach':17}{'goal':>7}{'majority':>9}" + "".join(f"{by:>10}" for by in args.policies), flush=True
    )
    for name in names:
        blocks = [streams.prepare(datasets.load(name), "vfs:0.5", seed=s).block[: args.rows] for s in args.seeds]
        seeded = list(zip(args.seeds, blocks, strict=True))
        goals = [run(args.model, b, Independent(GOAL, "random", seed=100 * k + s)) for s, b in seeded for k in range(3)]
        goal, share, majority = np.mean(goals, axis=0)
        hard.append(goal < majority)
        cells = []
        for by in args.policies:
            curves = []
            for seed, block in seeded:
                policies = [Logged(budget, by, seed=seed) for budget in BUDGETS]
                curves.append([run(args.model, block, policy) for policy in policies])
                for (error, _, _), policy in zip(curves[-1], policies, strict=True):
                    estimate = policy.estimate()
                    excess = max(excess, policy.excess())
                    if estimate.standard_error > 0.0:
                        gaps.append((estimate.error - error) / estimate.standard_error)
            needed[by].append(min(1.5, reached(goal, np.mean(curves, axis=0)) / share))
            cells.append(f"{needed[by][-1]:10.2f}")
        print(f"{name:17}{goal:7.3f}{majority:9.3f}" + "".join(cells), flush=True)
    for name, chosen in (("mean", [True] * len(hard)), ("mean, hard sets", hard)):
        means = [np.mean(np.array(shares)[chosen]) for shares in needed.values()]
        print(f"{name:33}" + "".join(f"{mean:10.2f}" for mean in means))
    z = np.array(gaps)
    within = np.mean(abs(z) < 2)
    print(f"estimated less true error in standard errors: median {np.median(z):+.2f}, within two {within:.0%}")
    print(f"most requested above the budget in any 1,000 rows: {excess:.2%} of the rows")


def drifting(kind: str, seed: int) -> list[tuple[dict[str, float], str]]:
    """Return a stream whose concept changes half-way."""
    rng = np.random.default_rng(seed)
    rows = []
    for step in range(DRIFT_ROWS):
        late = step >= DRIFT_ROWS // 2
        signal, load, noise = rng.normal(size=3).tolist()
        x = {"load": load, "noise": noise, ("valve" if late and kind == "feature" else "heat"): signal}
        x = {feature: value for feature, value in x.items() if rng.random() < 0.8}
        score = signal + 0.4 * load
        turned = late and (kind == "exchanged" or (kind == "sure" and signal > 1.0))
        rows.append((x, "ok" if (score > 0) != turned else "trip"))
    return rows


def compare_drift(args: argparse.Namespace) -> None:
    """Print the error before and after a change of the concept, by policy."""
    half, some = DRIFT_ROWS // 2, 500
    parts = {
        "before": (half - 1000, half),
        "first 500": (half, half + some),
        "last 1,000": (DRIFT_ROWS - 1000, DRIFT_ROWS),
    }
    print(f"{'':12}{'':14}" + "".join(f"{by:>10}" for by in (*args.policies, " all labels")))
    for kind in ("exchanged", "sure", "feature"):
        columns = []
        for by in (*args.policies, None):
            errors = []
            for seed in args.seeds:
                kept: list[Any] = []
                ask = None if by is None else AskPolicy(0.05, by, seed=seed)
                prequential(parse_model(args.model)(), drifting(kind, seed), ask=ask, predictions=kept.append)
                missed = np.concatenate([one.predicted != one.truth for one in kept])
                errors.append([missed[lo:hi].mean() for lo, hi in parts.values()])
            columns.append(np.mean(errors, axis=0))
        for k, part in enumerate(parts):
            print(f"{kind:12}{part:14}" + "".join(f"{column[k]:10.3f}" for column in columns), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--model", default="arow")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=POLICIES)
    parser.add_argument("--sets", nargs="+", help="data sets, instead of the development sets")
    parser.add_argument("--report", action="store_true", help="the report sets instead of the development sets")
    parser.add_argument("--drift", action="store_true")
    args = parser.parse_args()
    if args.drift:
        compare_drift(args)
    else:
        compare(args.sets or (REPORT if args.report else DEVELOPMENT), args)


if __name__ == "__main__":
    main()

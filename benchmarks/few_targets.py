"""Compare regressors that learn instances without a target with the same ones ignoring them.

    python -m benchmarks.few_targets [--model copularegressor] [--shares 0.01 0.05 0.1] [--seeds 0 1 2 3 4]
                                      [--scenario vfs:0.5]

Streams of at most 2,000 rows, half of the values absent by default; targets are drawn at random. Every prediction after
the first target counts. Columns: the MAE if instances without a target are ignored, its relative difference if they are
learned, and the standard error of that over the seeds, in the last line over the streams.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.regressors import STREAMS, Rows
from varifold import streams, to_block
from varifold.base.spec import parse_model

ROWS = 2000


def factors(seed: int, d: int) -> Rows:
    """Features and target depend linearly on three factors."""
    rng = np.random.default_rng(seed)
    loadings, slopes = rng.normal(size=(d, 3)), rng.normal(size=3)
    made: Rows = []
    for _ in range(ROWS):
        f = rng.normal(size=3)
        x = loadings @ f + 0.7 * rng.normal(size=d)
        made.append(({f"f{j}": float(x[j]) for j in range(d)}, float(slopes @ f + 0.3 * rng.normal())))
    return made


def independent(seed: int) -> Rows:
    """The target depends on three of ten independent features."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(ROWS, 10)), 0.3 * rng.normal(size=ROWS)
    y = x[:, :3].sum(axis=1) + noise
    return [({f"f{j}": float(v) for j, v in enumerate(row)}, float(y[i])) for i, row in enumerate(x)]


MADE = {"3 factors, 12": lambda seed: factors(seed, 12), "3 factors, 40": lambda seed: factors(seed, 40)}
NAMES = [*(name for name in STREAMS if name != "ChickWeights"), *MADE, "independent"]


def stream(name: str, seed: int, scenario: str) -> Rows:
    """Return a stream: abalone and diabetes in another order per seed, the others as they are or are made."""
    made = (independent(seed) if name == "independent" else {**STREAMS, **MADE}[name](seed))[:ROWS]
    if name in ("abalone", "diabetes"):
        made = [made[i] for i in np.random.default_rng(seed).permutation(len(made))]
    block = to_block([x for x, _ in made], [y for _, y in made], numeric=True)
    varied = streams.prepare(block, scenario, seed=seed, shuffle=False).block
    return list(zip(varied.rows(), varied.targets.tolist(), strict=True))


def mae(model: Any, rows: Rows, share: float, learn: bool, seed: int) -> float:
    """Return the MAE from the first target on."""
    known = np.random.default_rng(seed + 5).random(len(rows)) < share
    first = int(np.argmax(known))
    total = 0.0
    for t, (x, y) in enumerate(rows):
        if t > first:
            total += abs(model.predict_one(x) - y)
        if known[t]:
            model.learn_one(x, y)
        elif learn:
            model.learn_one(x, None)
    return total / (len(rows) - first)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table per share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", default="copularegressor", help="a learner; autoregressor gets its option unlabelled"
    )
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--scenario", default="vfs:0.5", help="what hides values; vfs:0 hides none")
    args = parser.parse_args(argv)
    ignoring = parse_model(args.model)
    learning = parse_model(f"{args.model}:unlabelled=learn") if ignoring.takes("unlabelled") else ignoring
    for share in args.shares:
        print(f"{100 * share:g} % of the targets")
        means = []
        for name in NAMES:
            found = []
            for seed in args.seeds:
                rows = stream(name, seed, args.scenario)
                found.append(
                    [
                        mae(made(), rows, share, made_learn, seed)
                        for made, made_learn in ((ignoring, False), (learning, True))
                    ]
                )
            without, difference = np.mean(found, axis=0)[0], np.array([b / a - 1 for a, b in found])
            means.append(difference.mean())
            print(f"  {name:15}{without:9.3f}{100 * means[-1]:+8.1f} % ±{_error(difference):.1f}", flush=True)
        print(f"  {'mean':24}{100 * np.mean(means):+8.1f} % ±{_error(np.array(means)):.1f}")


def _error(values: Any) -> float:
    return float(100 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()

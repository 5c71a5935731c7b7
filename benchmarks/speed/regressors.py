"""Time every regressor through both APIs, compared with river's LinearRegression behind a StandardScaler.

    python -m benchmarks.speed.regressors

Generated data with 28 of 57 features present in each instance; predict, then learn. Processor time of the fastest of
several passes from an empty model (three for slow methods). The passes of all methods alternate, so that load on the
machine affects all of them alike. The last line is the project's requirement for `AROWRegressor`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from river import linear_model, preprocessing

import varifold
from benchmarks.speed.linear import seconds
from varifold.base.learner import is_regressor

ROWS, NAMES = 1500, 57
PASSES, FEW = 15, 3
SLOW = 1e-4  # seconds per instance above which only FEW passes are run
RIVER = "river StandardScaler | LinearRegression"


def made(rows: int) -> tuple[list[dict[str, float]], list[float]]:
    """Generate instances with every feature present half of the time, and a linear function of them as targets."""
    rng = np.random.default_rng(1)
    values, there = rng.normal(size=(rows, NAMES)), rng.random((rows, NAMES)) < 0.5
    targets = values @ rng.normal(size=NAMES) + rng.normal(size=rows)
    found = [{f"f{j}": float(values[i, j]) for j in np.flatnonzero(there[i])} for i in range(rows)]
    return found, targets.tolist()


def singly(make: Callable[[], Any], rows: list[Any], targets: list[float]) -> None:
    model = make()
    for x, y in zip(rows, targets, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)


def show() -> None:
    """Print the table."""
    rows, targets = made(ROWS)
    block = varifold.to_block(rows, targets, numeric=True)
    makers: dict[str, Callable[[], Any]] = {n: cls for n, cls in varifold.models.items() if is_regressor(cls)}
    makers["arowregressor, full"] = lambda: varifold.AROWRegressor(covariance="full")
    best: dict[tuple[str, str], float] = defaultdict(lambda: float("inf"))
    river: Callable[[], Any] = lambda: preprocessing.StandardScaler() | linear_model.LinearRegression()  # noqa: E731
    for done in range(PASSES):
        for name, make in [*makers.items(), (RIVER, river)]:
            if done >= FEW and best[name, "dicts"] > SLOW:
                continue
            taken = seconds(lambda make=make: singly(make, rows, targets)) / ROWS
            best[name, "dicts"] = min(best[name, "dicts"], taken)
            if name in makers:
                taken = seconds(lambda make=make: make().run_block(block)) / ROWS
                best[name, "block"] = min(best[name, "block"], taken)
    print(f"\nregressors, {len(block.indices) / ROWS:.1f} of {NAMES} values each, us per instance (predict and learn)")
    print(f"  {'method':42}{'dicts':>9}{'block':>9}{'dicts / river':>15}")
    for name in [*makers, RIVER]:
        one = best[name, "dicts"]
        two = f"{1e6 * best[name, 'block']:>9.3f}" if name in makers else f"{'':>9}"
        print(f"  {name:42}{1e6 * one:>9.2f}{two}{one / best[RIVER, 'dicts']:>15.3f}")
    ratio = best["arowregressor", "dicts"] / best[RIVER, "dicts"]
    print(f"  arowregressor / {RIVER}: {ratio:.3f} (required: at most 1/10 = .100)")


if __name__ == "__main__":
    show()

"""Measure what labels cost: one prequential step of every method at 2, 10, 100 and 1,000 labels, 28 features present.

    python -m benchmarks.speed.classes [--only TEXT] [--labels 2 10 100 1000]

Made data: 28 numbers, all present, the label the largest of as many linear scores. Every label was learned before the
clock starts. Microseconds of processor time per instance through blocks, the best of several passes, and over
the time at the smallest number of labels. Below it, 10,000 labels and 100 features present, compared with a plain loop
in C over the same multiplications.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import varifold
from varifold.base.learner import is_regressor

PRESENT = 28
MANY, WIDE = 10_000, 100
BUDGET = 1.5
"""Most seconds for one figure."""
LOOP = """
#include <stdint.h>
void scores(int64_t n, int64_t k, const double *w, const double *x, double *out)
{
    for (int64_t c = 0; c < k; c++) out[c] = 0.0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < k; c++)
            out[c] += w[i * k + c] * x[i];
}
"""


def stream(labels: int, rows: int, features: int) -> Any:
    """Generate instances whose first rows have every label once."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    y = np.argmax(X @ rng.normal(size=(features, labels)), axis=1)
    y[:labels] = np.arange(labels)[:rows]
    return varifold.to_block(X, y.tolist())


def seconds(model: Any, block: Any) -> float:
    start = time.process_time()
    model.run_block(block)
    return time.process_time() - start


def cost(make: Any, labels: int) -> float:
    """Return microseconds per instance once all labels are known; NaN if that would exceed the time limit."""
    rows = max(20, 2000 // labels)
    block = stream(labels, labels + rows, PRESENT)
    model = make()
    if seconds(model, block[:labels]) > 20 * BUDGET:
        return float("nan")
    later = block[labels:]
    best, spent = float("inf"), 0.0
    while spent < BUDGET and best > 0.0:
        taken = seconds(model, later)
        best, spent = min(best, taken), spent + taken
    return 1e6 * best / rows


def table(names: list[str], counts: list[int]) -> None:
    heads = "".join(f"{f'{k:,}':>10}{'ratio':>8}" for k in counts)
    print(f"{PRESENT} features present, us per instance by number of labels\n  {'method':16}{heads}", flush=True)
    for name in names:
        found: list[float] = []
        for k in counts:
            slow = found and not found[-1] * (k / counts[len(found) - 1]) ** 2 * k < 60e6
            found.append(float("nan") if slow else cost(varifold.models[name], k))
        print(f"  {name:16}" + "".join(f"{t:>10.2f}{t / found[0]:>8.1f}" for t in found), flush=True)


def plain_loop(folder: Path) -> float:
    """Return the seconds that C needs for the scores of MANY labels from WIDE features."""
    source, library = folder / "loop.c", folder / "loop.so"
    source.write_text(LOOP)
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-o", library, source], check=True)
    w, x, out = np.ones((WIDE, MANY)), np.ones(WIDE), np.zeros(MANY)
    call = ctypes.CDLL(str(library)).scores
    arguments = [ctypes.c_int64(WIDE), ctypes.c_int64(MANY), *(ctypes.c_void_p(a.ctypes.data) for a in (w, x, out))]
    best = float("inf")
    for _ in range(50):
        start = time.process_time()
        call(*arguments)
        best = min(best, time.process_time() - start)
    return best


def many(names: list[str]) -> None:
    """Print the times with MANY labels relative to the loop in C: predict only, and predict and learn."""
    with tempfile.TemporaryDirectory() as folder:
        unit = plain_loop(Path(folder))
    print(f"\n{MANY:,} labels, {WIDE} features present; a loop in C over the products takes {1e3 * unit:.2f} ms")
    rng = np.random.default_rng(0)
    later = varifold.to_block(rng.normal(size=(5, WIDE)), rng.integers(0, MANY, 5).tolist())
    for name in names:
        model = varifold.models[name]()
        for code in range(MANY):
            model.learn_one({"x": float(code % 7)}, code)
        model.learn_many(later)
        learned, predicted = float("inf"), float("inf")
        for _ in range(5):
            start = time.process_time()
            model.predict_many(later)
            predicted = min(predicted, (time.process_time() - start) / len(later))
            learned = min(learned, seconds(model, later) / len(later))
        print(f"  {name:16} predict {predicted / unit:6.1f}   predict and learn {learned / unit:6.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="methods whose name contains this")
    parser.add_argument("--labels", type=int, nargs="+", default=[2, 10, 100, 1000])
    parser.add_argument("--many", nargs="*", default=["pa", "arow", "olvf"], help=f"methods to try at {MANY:,} labels")
    args = parser.parse_args()
    names = [name for name, cls in varifold.models.items() if not is_regressor(cls) and args.only in name]
    table(names, args.labels)
    if args.many:
        many(args.many)


if __name__ == "__main__":
    main()

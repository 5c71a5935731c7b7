"""Measure the time of one prequential step (predict, then learn) of ours and others on the same instances, in one run.

    python -m benchmarks.speed [--only TEXT]

`spambase` with half of its values removed (made data of that shape when VARIFOLD_DATA is not set), and a made bag of
words (25,000 texts, 7,500 words, about 120 each, Zipf). Every figure is the best of three passes from an empty model,
of fifteen for those that take less than a second in all; the passes of all contenders take turns, so that a busy
machine is unfair to none. Elapsed time, and processor time of all threads: vowpalwabbit parses in a second one. Below
each table, what the project requires of its figures.
The evolving family has a separate stream, whose features are replaced (`evolving.py`).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import varifold
from benchmarks.speed import evolving, linear
from varifold import streams

DENSE = 10_000_000  # up to this many cells scikit-learn gets an array, which suits it better than a sparse matrix
ONE_BY_ONE = 1000  # scikit-learn is so slow on single rows that it only gets a part of the stream

DICTS, BLOCK, VOWPAL = "varifold OLVF, dicts", "varifold OLVF, block", "vowpalwabbit, cache file"
LOGISTIC, SCALED = "river LogisticRegression", "river StandardScaler | LogisticRegression"
LIMIT = "C, scaler + intercept + OLVF"
SPAM, WORDS = "spambase, vfs:0.5", "bag of words"
REQUIRED = {
    SPAM: (
        (DICTS, SCALED, ".067"),
        (DICTS, LOGISTIC, ".250"),
        (BLOCK, DICTS, ".250"),
        (BLOCK, LIMIT, "1.5"),
        (BLOCK, VOWPAL, ".333"),
    ),
    WORDS: ((DICTS, SCALED, ".067"), (DICTS, LOGISTIC, ".180"), (BLOCK, LIMIT, "1.6"), (BLOCK, VOWPAL, ".450")),
}


def spambase() -> Any:
    if os.environ.get("VARIFOLD_DATA"):
        block = varifold.datasets.load("spambase").block
    else:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(4601, 57))
        block = varifold.to_block(X, (X[:, :9].sum(axis=1) > 0).tolist())
    return streams.prepare(block, "vfs:0.5", seed=0).block


def bag_of_words() -> Any:
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 7501)
    texts, y = [], []
    leaning = rng.normal(size=7500)
    for _ in range(25_000):
        words = np.unique(rng.choice(7500, size=230, p=share / share.sum()))[:120]
        texts.append({f"word{j}": 1.0 for j in words.tolist()})
        y.append(bool(leaning[words].sum() > 0))
    return varifold.to_block(texts, y)


def limit(folder: Path) -> Any:
    library = folder / "limit.so"
    source = Path(__file__).with_name("limit.c")
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    found = ctypes.CDLL(str(library))
    found.limit_pa.restype = found.limit_olvf.restype = ctypes.c_int64
    return found


def address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def contenders(block: Any, folder: Path) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Yield (name, instances, function that runs one whole pass)."""
    from river import linear_model, preprocessing
    from scipy import sparse
    from sklearn.linear_model import SGDClassifier

    rows, y = list(block.rows(indicators=True)), block.y
    n, d = len(block), block.vocabulary.size
    codes = np.ascontiguousarray(block.codes)
    parts = [address(a) for a in (block.indptr, block.indices, block.values, codes)]

    def singly(make: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            model = make()
            for x, label in zip(rows, y, strict=True):
                model.predict_one(x)
                model.learn_one(x, label)

        return run

    yield DICTS, n, singly(varifold.OLVF)
    yield BLOCK, n, lambda: varifold.OLVF().predict_learn_many(block)
    yield "varifold AROW, dicts", n, singly(varifold.AROW)
    yield "varifold AROW, block", n, lambda: varifold.AROW().predict_learn_many(block)
    yield LOGISTIC, n, singly(linear_model.LogisticRegression)
    yield "river PAClassifier", n, singly(linear_model.PAClassifier)
    for rule in (linear_model.LogisticRegression, linear_model.PAClassifier):
        scaled = singly(lambda rule=rule: preprocessing.StandardScaler() | rule())
        yield f"river StandardScaler | {rule.__name__}", n, scaled
    yield from vowpal(block, folder)
    matrix = sparse.csr_array((block.values, block.indices, block.indptr.astype(np.int32)), shape=(n, d))
    table = matrix.toarray() if n * d < DENSE else matrix

    def sgd(size: int, upto: int) -> Callable[[], None]:
        def run() -> None:
            model = SGDClassifier()
            for lo in range(0, upto, size):
                if lo:
                    model.predict(table[lo : lo + size])
                model.partial_fit(table[lo : lo + size], codes[lo : lo + size], classes=[0, 1])

        return run

    yield "scikit-learn SGD, one by one", ONE_BY_ONE, sgd(1, ONE_BY_ONE)
    yield "scikit-learn SGD, batches of 1000", n, sgd(1000, n)
    c = limit(folder)

    def plain() -> None:
        weights = np.zeros(d)  # held until the loop is over
        c.limit_pa(ctypes.c_int64(n), *parts, address(weights))

    yield "C, plain PA", n, plain
    three = [ctypes.c_double(v) for v in (0.01, 1e-3, 3.0)]
    yield LIMIT, n, lambda: c.limit_olvf(ctypes.c_int64(n), ctypes.c_int64(d), *parts, *three)


def vowpal(block: Any, folder: Path) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Yield vowpalwabbit over its cache file, in process."""
    import vowpalwabbit

    text, cache = folder / "data.vw", folder / "data.cache"
    with text.open("w") as file:
        for i in range(len(block)):
            lo, hi = block.indptr[i], block.indptr[i + 1]
            cells = " ".join(f"{j}:{v:.9g}" for j, v in zip(block.indices[lo:hi], block.values[lo:hi], strict=True))
            file.write(f"{1 if block.codes[i] else -1} | {cells}\n")
    common = f"--quiet --loss_function logistic --cache_file {cache}"
    vowpalwabbit.Workspace(f"{common} -d {text} -k").finish()
    yield VOWPAL, len(block), lambda: vowpalwabbit.Workspace(f"{common} -d {text}").finish()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="contenders whose name contains this")
    only = parser.parse_args().only
    for title, block in ((SPAM, spambase()), (WORDS, bag_of_words())):
        print(f"\n{title}: {len(block)} instances, {len(block.indices) / len(block):.1f} values each", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            found = {name: (n, run) for name, n, run in contenders(block, Path(folder)) if only.lower() in name.lower()}
            seen = _by_turns(found)
        for name, (elapsed, used) in seen.items():
            print(f"  {name:45} {elapsed:10.3f} us an instance {used:10.3f} us of processor time", flush=True)
        for one, other, limit in REQUIRED[title]:
            if one in seen and other in seen:
                elapsed, used = (mine / theirs for mine, theirs in zip(seen[one], seen[other], strict=True))
                print(f"  {one} / {other}: {elapsed:.3f}, of processor time {used:.3f} (required: at most {limit})")
    linear.show(spambase(), only)
    evolving.show(only)


def _by_turns(contenders: dict[str, tuple[int, Callable[[], Any]]]) -> dict[str, tuple[float, float]]:
    """Return microseconds per instance, elapsed and of processor time, of the best pass of each."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for turn in range(15):
        for name, (_, run) in contenders.items():
            if turn < 3 or sum(elapsed for elapsed, _ in times[name][:3]) < 1.0:
                times[name].append(_timed(run))
    best = {name: (min(e for e, _ in taken), min(u for _, u in taken)) for name, taken in times.items()}
    return {name: (1e6 * best[name][0] / n, 1e6 * best[name][1] / n) for name, (n, _) in contenders.items()}


def _timed(run: Callable[[], Any]) -> tuple[float, float]:
    start, used = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start, time.process_time() - used


if __name__ == "__main__":
    main()

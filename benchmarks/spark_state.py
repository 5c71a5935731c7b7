"""Measure what a key costs in Spark's state: bytes of its snapshot, and the memory of RocksDB over many micro-batches.

    python benchmarks/spark_state.py [--models arow additive orf3v auto] [--features 30] [--after 100 1000] [--keys 5]
    python benchmarks/spark_state.py --batches 50 [--models arow] [--keys 100] [--rows 200]

The first form needs no Spark: one key's learner learns instances of which half of the features are present, and is
written and read as `learn_stream` does; bytes are means over the keys, times are processor time. The second runs
`spark_exactly_once.py` without kills and reports what RocksDB held after each micro-batch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import varifold

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import spark_exactly_once as stream
from varifold.spark.keyed import Keyed


def learned(model: str, key: int, n: int, features: int) -> Keyed:
    """Return one key of a stream after its first n instances, with every label available."""
    keyed = Keyed(varifold.models[model](), 1_000)
    rows = [row for row in stream.rows_of(key, n, features) if "num" in row]
    for row in rows:
        x = {**row["num"], **row["cat"]}
        keyed.learner.learn_one(x, "high" if sum(row["num"].values()) > 0 else "low")
    return keyed


def cpu_ms(call: object, repeats: int = 20) -> float:
    """Return the processor time of a call in milliseconds."""
    started = time.process_time()
    for _ in range(repeats):
        call()  # type: ignore[operator]
    return (time.process_time() - started) / repeats * 1e3


def snapshot_row(model: str, args: argparse.Namespace) -> str:
    """Format the bytes after each number of instances, and the time to write and to read the last snapshot."""
    sizes = []
    for n in args.after:
        keys = [learned(model, key, n, args.features) for key in range(args.keys)]
        sizes.append(float(np.mean([len(keyed.to_bytes()) for keyed in keys])))
    data, blank = keys[0].to_bytes(), varifold.models[model]()
    write = cpu_ms(keys[0].to_bytes)
    read = cpu_ms(lambda: Keyed.from_bytes(data, blank, 1_000))
    return f"| {model} | {' | '.join(f'{size:,.0f}' for size in sizes)} | {write:.2f} ms | {read:.2f} ms |"


def rocksdb_row(model: str, args: argparse.Namespace) -> str:
    """Format RocksDB's memory after the first and last ten micro-batches, its maximum, and the final file size."""
    with tempfile.TemporaryDirectory() as folder:
        run = argparse.Namespace(
            keys=args.keys, rows=args.rows, features=args.features, files=args.batches, batch=1, kills=0, model=model,
            buckets=args.buckets, logged=16, cores=2, folder=folder,
        )  # fmt: skip
        stream.write_stream(Path(folder) / "in", run)
        reports = stream.kill_and_go_on(run)
    held = np.array([batch["rocksdb_bytes"] for batch in reports]) / 1e6
    files = reports[-1]["sst_bytes"]
    early, late = np.median(held[:10]), np.median(held[-10:])
    return (
        f"| {model} | {len(held)} | {early:.1f} | {late:.1f} | {held.max():.1f} | "
        f"{'-' if files is None else f'{files / 1e6:.1f}'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["arow", "additive", "orf3v", "auto"])
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--after", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--batches", type=int, default=0)
    parser.add_argument("--buckets", type=int, default=4)
    args = parser.parse_args()
    if args.batches:
        print("| model | micro-batches | MB in the first ten | MB in the last ten | most | MB of files |")
        print("|---|---|---|---|---|---|")
    else:
        print(f"| model | {' | '.join(f'{n:,}' for n in args.after)} | write | read |")
        print("|---|" + "---|" * (len(args.after) + 2))
    for model in args.models:
        print(rocksdb_row(model, args) if args.batches else snapshot_row(model, args), flush=True)


if __name__ == "__main__":
    main()

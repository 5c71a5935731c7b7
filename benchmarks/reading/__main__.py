"""Measure reading and learning a CSV file with empty cells: processor time and peak memory of ours and others.

    python -m benchmarks.reading --rows 1000000 --columns 50 --directory DIR [--only NAME ...]

Every contender runs in a separate process on the same generated file, which is deleted afterwards.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

EMPTY = 0.3


def generate(path: Path, rows: int, columns: int) -> None:
    """Write normal cells with six decimals, 30% of them empty; the label is the sign of a linear score."""
    draw = np.random.default_rng(0)
    weight = draw.normal(size=columns)
    with path.open("w") as file:
        file.write(",".join(f"x{j}" for j in range(columns)) + ",y\n")
        for start in range(0, rows, 10_000):
            x = draw.normal(size=(min(10_000, rows - start), columns))
            gone = draw.random(x.shape) < EMPTY
            labels = np.where(gone, 0.0, x) @ weight > 0
            for cells, holes, label in zip(x.tolist(), gone.tolist(), labels.tolist(), strict=True):
                line = ",".join("" if hole else f"{cell:.6f}" for cell, hole in zip(cells, holes, strict=True))
                file.write(f"{line},{int(label)}\n")


def ours_read(path: str) -> int:
    from varifold import streams

    return sum(len(block) for block in streams.read(path, target="y").blocks())


def ours_learn(path: str) -> int:
    from varifold import OLVF, streams

    model = OLVF()
    for block in streams.read(path, target="y").blocks():
        model.learn_many(block)
    return model.steps


def ours_run(path: str) -> int:
    from contextlib import redirect_stdout
    from io import StringIO

    from varifold.cli import main as varifold

    page = StringIO()
    with redirect_stdout(page):
        if varifold(["run", path, "--target", "y", "--model", "olvf", "--format", "json"]):
            raise RuntimeError(f"varifold run failed: {page.getvalue()}")
    return int(json.loads(page.getvalue())["instances"])


def river_learn(path: str) -> int:
    from river import linear_model, stream

    with open(path) as file:
        names = file.readline().strip().split(",")[:-1]
    converters = dict.fromkeys(names, _float_or_none) | {"y": int}
    model = linear_model.LogisticRegression()
    rows = 0
    for x, y in stream.iter_csv(path, target="y", converters=converters):
        model.learn_one({name: value for name, value in x.items() if value is not None}, y)
        rows += 1
    return rows


def _float_or_none(cell: str) -> float | None:
    return float(cell) if cell else None


def pyarrow_read(path: str) -> int:
    from pyarrow import csv

    return sum(batch.num_rows for batch in csv.open_csv(path, read_options=csv.ReadOptions(use_threads=False)))


def polars_read(path: str) -> int:
    import polars

    return len(polars.read_csv(path))


def duckdb_read(path: str) -> int:
    import duckdb

    return int(duckdb.execute("create table cells as select * from read_csv(?)", [path]).fetchall()[0][0])


CONTENDERS = {
    "varifold: read": ours_read,
    "varifold: read and learn (OLVF)": ours_learn,
    "varifold run: read, predict, score, learn (OLVF)": ours_run,
    "river: iter_csv and LogisticRegression": river_learn,
    "pyarrow: read, streaming, one thread": pyarrow_read,
    "polars: read, whole file": polars_read,
    "DuckDB: read into a table": duckdb_read,
}


def measure(name: str, path: str) -> None:
    """Run one contender in this process and print its times and peak memory."""
    start, used = time.perf_counter(), time.process_time()
    rows = CONTENDERS[name](path)
    taken = {"rows": rows, "cpu": time.process_time() - used, "wall": time.perf_counter() - start, "peak": peak()}
    print(json.dumps(taken))


def peak() -> float:
    """Return the peak memory of this process in MB, from the kernel, since ru_maxrss also counts the parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("the kernel does not report VmHWM")


def compare(path: Path, names: list[str]) -> None:
    """Run the contenders one after the other and print a table."""
    size = path.stat().st_size / 1e6
    print(f"{size:,.0f} MB\n\n| | processor s | wall s | MB/s (processor) | peak RSS, MB |\n|---|---|---|---|---|")
    for name in names:
        command = [sys.executable, "-m", "benchmarks.reading", "--measure", name, "--file", str(path)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        cpu, wall, most = found["cpu"], found["wall"], found["peak"]
        print(f"| {name} | {cpu:.1f} | {wall:.1f} | {size / cpu:.0f} | {most:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--directory", type=Path, default=Path())
    parser.add_argument("--only", nargs="*", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--repeat", type=int, default=1, help="write the generated rows this many times")
    parser.add_argument("--measure", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, args.file)
        return
    path = args.directory / "varifold-reading.csv"
    try:
        generate(path, args.rows, args.columns)
        lengthen(path, args.repeat)
        compare(path, args.only)
    finally:
        path.unlink(missing_ok=True)


def lengthen(path: Path, times: int) -> None:
    """Append the rows of a file to itself."""
    if times > 1:
        rows = path.read_bytes().partition(b"\n")[2]
        with path.open("ab") as file:
            for _ in range(times - 1):
                file.write(rows)


if __name__ == "__main__":
    main()

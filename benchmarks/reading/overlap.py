"""Measure whether reading and learning a CSV file overlap: wall time of `varifold run` and of its two parts.

    python -m benchmarks.reading.overlap [--rows 1000000] [--columns 50] [--times 5] [--directory DIR]

The parts are reading alone, and predicting, scoring and learning the same blocks from memory (OLVF). The whole is the
command, where a thread reads ahead. Every measurement is a separate process and the best wall time counts; processor
time is split into that of the main thread and of the others. Wall time means nothing while other processes use the
processors: the load before each round is printed, and where the machine allows it the measurements may be given
real-time priority (``chrt -f 1 python -m ...``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.reading.__main__ import duckdb_read, generate, lengthen, ours_read, ours_run, polars_read
from varifold import OLVF, streams
from varifold.evaluate import prequential
from varifold.streams.stream import Batch, Stream


@dataclass(frozen=True)
class Held(Stream):
    """Batches in memory."""

    held: list[Batch]

    def batches(self) -> Iterator[Batch]:
        yield from self.held


def from_memory(path: str) -> Callable[[], object]:
    """Return a function that does everything the command does after reading."""
    held = Held(list(streams.read(path, target="y").batches()))
    return lambda: prequential(OLVF(), held)


PARTS: dict[str, Callable[[str], Callable[[], object]]] = {
    "read": lambda path: lambda: ours_read(path),
    "predict, score and learn, from memory": from_memory,
    "varifold run": lambda path: lambda: ours_run(path),
    "polars: read, whole file": lambda path: lambda: polars_read(path),
    "DuckDB: read into a table": lambda path: lambda: duckdb_read(path),
}


def measure(name: str, path: str) -> None:
    """Run one part in this process and print its times."""
    work = PARTS[name](path)
    wall, all_threads, main_thread = time.perf_counter(), time.process_time(), time.thread_time()
    work()
    main_thread = time.thread_time() - main_thread
    taken = {"wall": time.perf_counter() - wall, "main": main_thread, "all": time.process_time() - all_threads}
    print(json.dumps(taken))


def compare(path: Path, times: int) -> None:
    """Measure all parts in turn, several times, and print the best of each."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(times):
        print(f"load {Path('/proc/loadavg').read_text().split()[0]}", file=sys.stderr, flush=True)
        for name in PARTS:
            command = [sys.executable, "-m", "benchmarks.reading.overlap", "--measure", name, "--file", str(path)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            if name not in best or found["wall"] < best[name]["wall"]:
                best[name] = found
    print(f"{path.stat().st_size / 1e6:,.0f} MB\n\n| | wall s | processor s, main thread | other threads |")
    print("|---|---|---|---|")
    for name, found in best.items():
        print(f"| {name} | {found['wall']:.2f} | {found['main']:.2f} | {found['all'] - found['main']:.2f} |")
    read, learn, run = (best[name]["wall"] for name in list(PARTS)[:3])
    print(f"\nrun / longer part: {run / max(read, learn):.2f}; run / sum of the parts: {run / (read + learn):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=Path())
    parser.add_argument("--measure", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, args.file)
        return
    path = args.directory / "varifold-overlap.csv"
    made = min(args.rows, 100_000)
    try:
        generate(path, made, args.columns)
        lengthen(path, max(1, args.rows // made))
        compare(path, args.times)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()

"""Exactly once: a stream of many keys with late labels, whose driver is killed; every value against one plain process.

    python benchmarks/spark_exactly_once.py [--keys 1000] [--rows 1000] [--kills 3] [--model arow] [--files 100]
        [--batch 2] [--features 20] [--folder FOLDER]

Writes the stream as files, then runs a driver over them and kills it with SIGKILL after some of the predictions,
`kills` times; the last driver runs to the end. Then every prediction is compared with one process that has one learner
per key: each instance predicted once, label and probabilities equal to the bit. 18 % of the labels come 1 to 20 rows
late.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import varifold

LATE = 0.18
SCHEMA = "device string, id long, seq long, num map<string,double>, cat map<string,string>, label string"


def rows_of(key: int, n: int, features: int) -> list[dict[str, Any]]:
    """Generate the rows of one key in order; a late label is a row without features."""
    rng = random.Random(key)
    slopes = [rng.gauss(0, 1) for _ in range(features)]
    placed: list[tuple[float, dict[str, Any]]] = []
    for t in range(n):
        x = {f"sensor {j}": round(rng.gauss(0, 1), 6) for j in range(features) if rng.random() < 0.5}
        score = sum(slopes[int(name[7:])] * v for name, v in x.items())
        row = {"device": f"device {key}", "id": t, "num": x, "cat": {"mode": rng.choice(["on", "off"])}}
        label = "high" if score > 0 else "low"
        if rng.random() < LATE:
            placed.append((t, row))
            placed.append((t + 0.5 + rng.randrange(20), {"device": row["device"], "id": t, "label": label}))
        else:
            placed.append((t, {**row, "label": label}))
    placed.sort(key=lambda pair: pair[0])
    return [{**row, "seq": seq} for seq, (_, row) in enumerate(placed)]


def write_stream(folder: Path, args: argparse.Namespace) -> None:
    """Write the stream as files, each with the next rows of every key."""
    folder.mkdir(parents=True)
    files = [(folder / f"{number:05d}.json").open("w") for number in range(args.files)]
    for key in range(args.keys):
        rows = rows_of(key, args.rows, args.features)
        for place, row in enumerate(rows):
            files[place * args.files // len(rows)].write(json.dumps(row) + "\n")
    for number, file in enumerate(files):
        file.close()
        os.utime(folder / f"{number:05d}.json", (1e9 + number, 1e9 + number))  # Spark reads the oldest first


def plain(args: argparse.Namespace) -> tuple[dict[tuple[str, int], tuple[Any, dict[Any, float], int]], float, int]:
    """Run one process; return predictions by key and id, its seconds in the learners, and its number of rows."""
    found = {}
    spent, count = 0.0, 0
    blank = varifold.base.spec.parse_model(args.model)()
    for key in range(args.keys):
        rows = rows_of(key, args.rows, args.features)
        count += len(rows)
        learner, waiting = blank.clone(), {}
        started = time.process_time()
        for row in rows:
            if "num" in row:
                x = {**row["num"], **row["cat"]}
                output = learner.predict_one(x), learner.predict_proba_one(x), learner.steps
                found[row["device"], row["id"]] = output
                if "label" in row:
                    learner.learn_one(x, row["label"])
                else:
                    waiting[row["id"]] = x
            else:
                learner.learn_one(waiting.pop(row["id"]), row["label"])
        spent += time.process_time() - started
    return found, spent, count


def session(cores: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", str(cores)).config("spark.driver.memory", "2g")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def drive(args: argparse.Namespace) -> None:
    """Run the driver until the stream ends, and print a line per micro-batch."""
    from varifold.spark import learn_stream

    folder = Path(args.folder)
    spark = session(args.cores)
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", args.batch).json(str(folder / "in"))
    out = learn_stream(
        df,
        key="device",
        model=args.model,
        numbers="num",
        words="cat",
        id="id",
        order="seq",
        buckets=args.buckets,
        logged=args.logged,
    )
    query = out.writeStream.option("checkpointLocation", str(folder / "checkpoint")).partitionBy("kind")
    query = query.trigger(availableNow=True).format("parquet").start(str(folder / "out"))
    shown: set[int] = set()
    while True:
        done = query.awaitTermination(1)
        for progress in query.recentProgress:
            if progress["batchId"] not in shown and progress["numInputRows"]:
                shown.add(progress["batchId"])
                print(json.dumps(summary(progress)), flush=True)
        if done:
            break
    spark.stop()


def cpu_seconds() -> float:
    """Return the processor time of the driver, the JVM and the Python workers together."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == os.getsid(0):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def summary(progress: Any) -> dict[str, Any]:
    state = progress["stateOperators"][0]
    custom = state["customMetrics"]
    return {
        "batch": progress["batchId"],
        "rows": progress["numInputRows"],
        "ms": progress["durationMs"]["triggerExecution"],
        "add_ms": progress["durationMs"]["addBatch"],
        "cpu_s": round(cpu_seconds(), 2),
        "commit_ms": state["commitTimeMs"],
        "state_rows": state["numRowsTotal"],
        "rocksdb_bytes": state["memoryUsedBytes"],
        "sst_bytes": custom.get("rocksdbSstFileSize"),
    }


def kill_and_go_on(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Run drivers one after the other and kill all but the last; return the reports of the micro-batches."""
    reports: list[dict[str, Any]] = []
    batches = -(-args.files // args.batch)
    for life in range(args.kills + 1):
        until = (life + 1) * batches // (args.kills + 1)
        command = [sys.executable, __file__, "--drive"]
        for name in ("folder", "model", "batch", "buckets", "logged", "cores"):
            command += [f"--{name}", str(getattr(args, name))]
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert driver.stdout is not None
        for line in driver.stdout:
            if line.startswith("{"):
                reports.append({"life": life, **json.loads(line)})
                print(line, end="", flush=True)
                if life < args.kills and reports[-1]["batch"] + 1 >= until:
                    time.sleep(random.Random(life).random())  # anywhere in the next micro-batch
                    os.killpg(driver.pid, signal.SIGKILL)
                    break
        driver.wait()
        print(f"driver {life} ended with {driver.returncode}", flush=True)
    return reports


def compare(args: argparse.Namespace) -> int:
    """Count predictions that are missing, duplicate or differ from those of one process; print all counts."""
    spark = session(args.cores)
    expected, seconds, rows = plain(args)
    print(f"plain Python: {rows:,} rows, {seconds / rows * 1e6:.1f} us of processor time per row in the learners")
    found: dict[tuple[str, int], Any] = {}
    twice = wrong = problems = 0
    for row in spark.read.parquet(str(Path(args.folder) / "out")).toLocalIterator():
        if row["kind"] != "prediction":
            problems += 1
            continue
        place = row["key"], row["id"]
        twice += place in found
        found[place] = None
        wrong += (row["label"], dict(row["probabilities"]), row["steps"]) != expected.get(place)
    missing = len(expected.keys() - found.keys())
    print(f"{len(found):,} predictions of {len(expected):,}; {missing} missing, {twice} twice, {wrong} that differ, ")
    print(f"{problems} problems")
    wrong_models = learners_differ(args, spark)
    spark.stop()
    return missing + twice + wrong + problems + wrong_models


def learners_differ(args: argparse.Namespace, spark: Any) -> int:
    """Count learners of the checkpoint whose bytes differ from those of one process, for a few keys."""
    from varifold.spark import models_of

    exported = dict(models_of(Path(args.folder) / "checkpoint", spark))
    wrong = args.keys - len(exported)
    for key in range(min(args.keys, 20)):
        learner, waiting = exported[f"device {key}"].clone(), {}
        for row in rows_of(key, args.rows, args.features):
            if "num" in row and "label" in row:
                learner.learn_one({**row["num"], **row["cat"]}, row["label"])
            elif "num" in row:
                waiting[row["id"]] = {**row["num"], **row["cat"]}
            else:
                learner.learn_one(waiting.pop(row["id"]), row["label"])
        wrong += learner.to_bytes() != exported[f"device {key}"].to_bytes()
    print(f"{len(exported):,} learners exported, {wrong} that differ or are missing")
    return wrong


def throughput(reports: list[dict[str, Any]]) -> str:
    """Format rows per second and processor time per row, without the first two micro-batches of each driver.

    These load learners and compile code. On a shared machine only processor times are comparable.
    """
    rows, ms, cpu = 0, 0, 0.0
    for before, now in itertools.pairwise(reports):
        first = min(b["batch"] for b in reports if b["life"] == now["life"])
        if now["life"] == before["life"] and now["batch"] >= first + 2:
            rows += now["rows"]
            ms += now["ms"]
            cpu += now["cpu_s"] - before["cpu_s"]
    if not rows:
        return "no steady micro-batches"
    return f"Spark: {rows / ms * 1000:,.0f} rows/s, {cpu / rows * 1e6:.0f} us of processor time per row ({rows:,} rows)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--model", default="arow")
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--batch", type=int, default=4, help="files per micro-batch")
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--logged", type=int, default=16)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--drive", action="store_true", help="be a driver; used by the script itself")
    args = parser.parse_args()
    if args.drive:
        drive(args)
        return 0
    with tempfile.TemporaryDirectory() as made:
        args.folder = args.folder or made
        write_stream(Path(args.folder) / "in", args)
        reports = kill_and_go_on(args)
        print(throughput(reports))
        bad = compare(args)
    print("FAILED" if bad else "exactly once, equal to the bit")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())

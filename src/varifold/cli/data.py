"""``varifold data``: list, fetch, export and show data sets."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import Any

from varifold.base.plural import plural
from varifold.cli.numbers import natural
from varifold.cli.output import print_json, shorten, table
from varifold.cli.source import add_reading_options, batches_of, named_set, title_of
from varifold.cli.targets import check_picture, check_target
from varifold.errors import DataError

_MOST_LABELS = 10
"""Most labels that `data show` lists."""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its subcommands."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "data",
        help="list, fetch, export and show data sets",
        description="List, fetch, export and show data sets and streams.",
    )
    parts = parser.add_subparsers(dest="part", required=True, metavar="list|info|fetch|export|show")
    found = parts.add_parser("list", help="list every registered set")
    found.add_argument("--format", choices=["table", "json"], default="table")
    info = parts.add_parser("info", help="describe a registered set")
    info.add_argument("name", metavar="NAME")
    info.add_argument("--format", choices=["table", "json"], default="table")
    fetch = parts.add_parser("fetch", help="download sets into the cache and verify them")
    fetch.add_argument("names", nargs="+", metavar="NAME")
    fetch.add_argument("--timeout", type=float, default=30.0, metavar="S", help="seconds without a response")
    export = parts.add_parser("export", help="write a set as a file")
    export.add_argument("name", metavar="NAME")
    export.add_argument("--to", choices=["csv", "jsonl"], default="csv", help="format")
    export.add_argument("--output", metavar="FILE", help="output file (default: standard output)")
    export.add_argument("--scenario", default=None, metavar="SPEC", help="scenario to apply, such as vfs:0.5")
    export.add_argument("--seed", type=natural, default=0, metavar="S")
    _show_options(parts.add_parser("show", help="show which features are present when"))


def _show_options(show: argparse.ArgumentParser) -> None:
    show.add_argument("what", nargs="+", metavar="NAME|FILE", help="a registered set, or files")
    show.add_argument("--target", metavar="COL", help="column of the label, for files")
    show.add_argument(
        "--scenario", default=None, metavar="SPEC", help="how features appear and vanish, such as vfs:0.5"
    )
    show.add_argument("--seed", type=natural, default=0, metavar="S")
    show.add_argument("--plot", metavar="FILE.png", help="draw a picture of it")
    show.add_argument("--format", choices=["table", "json"], default="table")
    add_reading_options(show)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    parts = {"list": _list, "info": _info, "fetch": _fetch, "export": _export, "show": _show}
    return parts[args.part](args)


def _list(args: argparse.Namespace) -> int:
    import varifold.datasets as datasets

    entries = [datasets.find(name) for name in datasets.names()]
    if args.format == "json":
        print_json([{**_facts(entry), "found": datasets.where(entry)} for entry in entries])
        return 0
    rows = [
        [
            e.name,
            shorten(e.licence, 30),
            shorten(datasets.where(e), 40),
            f"{e.rows:,}",
            f"{e.features:,}",
            str(e.classes),
        ]
        for e in entries
        if not e.group
    ]
    print(table(["name", "licence", "found", "rows", "features", "classes"], rows, left=3))
    print("\nnatural: streams whose features come and go by themselves, in their own order")
    rows = [
        [e.name, e.task, e.target, shorten(datasets.where(e), 40), f"{e.rows:,}", f"{e.features:,}"]
        for e in entries
        if e.group == "natural"
    ]
    print(table(["name", "task", "target", "found", "rows", "features"], rows, left=4))
    print("\nanomaly: sets with anomalies, label 1, for detectors")
    rows = [
        [e.name, shorten(datasets.where(e), 40), e.note, f"{e.rows:,}", f"{e.features:,}"]
        for e in entries
        if e.group == "anomaly"
    ]
    print(table(["name", "found", "", "rows", "features"], rows, left=3))
    return 0


def _facts(entry: Any) -> dict[str, Any]:
    return {key: value for key, value in asdict(entry).items() if value not in (None, "", (), {}, False)}


def _info(args: argparse.Namespace) -> int:
    import varifold.datasets as datasets

    entry = datasets.find(args.name)
    facts = {**_facts(entry), "found": datasets.where(entry)}
    if args.format == "json":
        print_json(facts)
        return 0
    shown = ("name", "group", "title", "task", "rows", "features", "classes", "types", "target", "positive", "above",
             "equals", "order", "known", "delay", "note", "licence", "citation", "page", "found")  # fmt: skip
    width = max(map(len, shown))
    for key in shown:
        if key in facts:
            print(f"{key.ljust(width)}  {facts[key]}")
    for file in entry.files:
        print(f"{'file'.ljust(width)}  {file.path}  sha256 {file.sha256}" + (f"  {file.url}" if file.url else ""))
    return 0


def _fetch(args: argparse.Namespace) -> int:
    import varifold.datasets as datasets

    failed = 0
    for entry in [datasets.find(name) for name in args.names]:
        try:
            paths = datasets.fetch(entry.name, timeout=args.timeout)
        except DataError as error:
            failed += 1
            print(f"varifold: {error}", file=sys.stderr)
        else:
            print(f"{entry.name}: {', '.join(map(str, paths)) or 'generated, nothing to fetch'}")
    return 1 if failed else 0


def _export(args: argparse.Namespace) -> int:
    import varifold.datasets as datasets
    import varifold.streams as streams

    check_target(args.output)
    data = datasets.load(args.name)
    block = data.block if args.scenario is None else streams.prepare(data, args.scenario, seed=args.seed).block
    target = data.entry.target or "label"
    if args.output is None:
        datasets.export(block, sys.stdout, args.to, target)
    else:
        with open(args.output, "w", encoding="utf-8", newline="") as file:
            datasets.export(block, file, args.to, target)
    return 0


def _show(args: argparse.Namespace) -> int:
    from varifold.streams.presence import percent, presence

    check_picture(args.plot)
    data, scenario = _source(args), args.scenario
    if scenario is not None:
        import varifold.streams as streams

        data = streams.prepare(data, scenario, seed=args.seed)
    found = presence(data if not hasattr(data, "block") else data.block)
    times = getattr(data, "times", None)
    name = title_of(args.what)
    if args.plot:
        from varifold.report.presence import plot_presence

        about = f"{name}: {data.title}" if times else name if scenario is None else f"{name} · {scenario}"
        plot_presence(found, args.plot, about, times)
    summary: dict[str, Any] = {
        "rows": found.rows,
        "columns": len(found.names),
        "absent": found.absent_share,
        "empty": found.empty,
        "labels": dict(zip(map(str, found.labels), found.counts, strict=True)),
        "targets": found.targets,
    }
    if args.format == "json":
        print_json(summary)
    else:
        balance = f"labels: {_most_frequent(summary['labels'])}"
        if found.targets is not None:
            balance = "numbers to predict from {lowest:g} to {highest:g}, mean {mean:g}".format(**found.targets)
        print(
            f"{name}: {plural(found.rows, 'row')}, {plural(len(found.names), 'column')}, "
            f"{percent(found.absent_share)} of the cells absent, {plural(found.empty, 'row')} without any; {balance}"
        )
    return 0


def _most_frequent(counts: dict[str, int]) -> str:
    """List labels with their counts; of many, the most frequent and the number of the others."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{shorten(y, 30)} {k:,}" for y, k in ordered[:_MOST_LABELS])
    more = len(ordered) - _MOST_LABELS
    return (f"{shown} and {more:,} more (--format json has all)" if more > 0 else shown) or "none"


def _source(args: argparse.Namespace) -> Any:
    """Load a registered set if one name is given that is not a file, else the files as one block."""
    from varifold._engine.data.block import concatenate

    if (data := named_set(args.what)) is not None:
        return data
    blocks = [batch.block for batch in batches_of(args)]
    if not blocks:
        raise DataError(f"{' '.join(args.what)}: no rows to show")
    return concatenate(blocks)

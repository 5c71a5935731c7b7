"""``varifold watch``: report what happens to the features of a stream, without labels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.names.vocabulary import is_missing
from varifold.base.clock import shown_time
from varifold.cli.numbers import positive
from varifold.cli.output import named, print_json, table
from varifold.cli.source import add_reading_options, batches_of, named_set, title_of
from varifold.cli.targets import check_picture, check_target
from varifold.streams import Batch

if TYPE_CHECKING:
    from varifold.monitor import Event

_MOST_FEATURES = 40
_MOST_EVENTS = 40
_LONGEST_TIME = 40
"""Most characters of a time that are kept and shown."""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "watch",
        help="report which features appear, fall silent, drift or are renamed",
        description="Follow the features of files without labels: which appear, fall silent, return, get stuck, change "
        "distribution or unit, and which look renamed. Events that begin together are one event.",
    )
    parser.add_argument("what", nargs="+", metavar="FILE|NAME", help="files, read in this order, or a registered set")
    parser.add_argument("--target", metavar="COL", help="column of the label: not a feature")
    parser.add_argument(
        "--every", type=positive, default=50, metavar="N", help="check features every N instances (default 50)"
    )
    parser.add_argument("--html", metavar="FILE.html", help="write a page with map, events and features")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the map of features and events")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    add_reading_options(parser)


def run(args: argparse.Namespace) -> int:
    """Follow the files and print what happened."""
    from varifold.monitor import Monitor
    from varifold.report.watch import plot_monitor, watch_page, watch_summary

    check_target(args.html, args.what)
    check_picture(args.plot)
    monitor = Monitor(every=args.every)
    data = named_set(args.what)
    times: list[NDArray[np.bytes_]] = []  # by batch; as bytes, because many rows have one
    for batch in batches_of(args) if data is None else [Batch(data.block)]:
        monitor.learn_many(batch.block)
        if batch.times is not None:
            times.append(np.array([_stamp(time).encode() for time in batch.times]))
    monitor.check()
    stamps = np.concatenate(times) if times else np.zeros(0)
    when = {event.step: shown_time(stamps[max(event.step, 1) - 1].decode()) for event in monitor.events if times}
    title = title_of(args.what)
    if args.html:
        Path(args.html).write_text(watch_page(monitor, title, when), encoding="utf-8")
    if args.plot:
        plot_monitor(monitor, args.plot, title)
    if args.format == "json":
        report = monitor.report()
        for event in report["events"]:
            event.update({"time": when[event["step"]] or None} if when else {})
        print_json(report)
        return 0
    print(f"{title}: {watch_summary(monitor)}\n")
    features = list(monitor.features.values())
    rows = [
        [named(f.name), f.status, f"{f.first:,}", f"{f.last:,}", f"{f.share:.0%}", f"{f.recent:.0%}"]
        for f in features[:_MOST_FEATURES]
    ]
    print(table(["feature", "status", "first seen", "last seen", "usually", "recently"], rows, left=2))
    if len(features) > _MOST_FEATURES:
        print(f"... and {len(features) - _MOST_FEATURES:,} more (--format json lists all)")
    _print_events(monitor.events, when)
    for rename in monitor.renames:
        print(f"suggested rename: {rename}")
    return 0


def _stamp(time: Any) -> str:
    """Return the text of a time, empty for none; all take as much memory as the longest, so that is bounded."""
    text = "" if is_missing(time) else str(time)
    return text if len(text) <= _LONGEST_TIME else f"{text[: _LONGEST_TIME - 3]}..."


def _print_events(events: list[Event], when: dict[int, str]) -> None:
    hidden = f" (the latest {_MOST_EVENTS} of {len(events):,}; --format json lists all)"
    if events:
        print(f"\nevents, by the instance at which they began{hidden if len(events) > _MOST_EVENTS else ''}:")
    else:
        print("\nno events")
    for event in sorted(events, key=lambda event: event.step)[-_MOST_EVENTS:]:
        print(f"  {when[event.step] or '-'}  {event}" if when else f"  {event}")

"""Show progress on standard error: a bar on a terminal if rich is installed, else a line every few seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Report = Callable[[int], None]
_SECONDS = 5.0


@contextmanager
def progress(what: str, total: int | None, unit: str) -> Iterator[Report]:
    """Yield a function to call with the amount done."""
    if not sys.stderr.isatty():
        yield _lines(what, total, unit)
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield _lines(what, total, unit)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{what} ({unit})", total=total)
        yield lambda done: bar.update(task, completed=done)


def _lines(what: str, total: int | None, unit: str) -> Report:
    """Print a line at most every few seconds, so that short runs stay silent."""
    last = monotonic()

    def report(done: int) -> None:
        nonlocal last
        if monotonic() - last >= _SECONDS:
            last = monotonic()
            of = f" of {total:,}" if total is not None else ""
            print(f"{what}: {done:,}{of} {unit}", file=sys.stderr, flush=True)

    return report

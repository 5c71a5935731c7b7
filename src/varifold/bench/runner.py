"""Run the cells that are not in the store yet, several at a time; only this process writes the store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from varifold.base.spec import parse_model
from varifold.bench.cell import Cell, Outcome
from varifold.bench.provenance import cell_code, current_for, environment
from varifold.bench.sources import length
from varifold.bench.store import ResultStore
from varifold.bench.table import Table
from varifold.bench.work import Failure, attempt
from varifold.ensemble.workers import each
from varifold.errors import ParameterError, UnknownNameError

__all__ = ["Progress", "RunSummary", "missing_model", "plan", "run"]

_SECONDS = 1.0


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    done: int
    total: int
    left: float | None
    """Estimated seconds left, once known."""
    cell: Cell


@dataclass
class RunSummary:
    """Counts, failures and time of a run."""

    wanted: int = 0
    already: int = 0
    ran: int = 0
    failures: dict[Cell, Failure] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    """Models that are not registered, and why."""
    seconds: float = 0.0


def missing_model(text: str, *, imports: bool) -> str:
    """Return why a model cannot be made; empty if it can. `imports` is that of `parse_model`."""
    try:
        parse_model(text, imports=imports, detectors=True)
    except UnknownNameError:
        return f"{text.partition(':')[0]} is not registered"
    except ParameterError as error:
        return str(error)
    return ""


def plan(tables: Iterable[Table], repeats: int | None = None) -> list[Cell]:
    """Return the cells of some tables, each once, in the order of work: by seed, small sets first, by stream."""
    cells = {
        cell for table in tables for slot in table.slots(repeats) for group in slot.cells.values() for cell in group
    }
    rows = {name: length(name) for name in {cell.data for cell in cells}}
    return sorted(cells, key=lambda c: (c.seed, rows[c.data], c.data, c.scenario, c.scale, c.model, c.overrides))


def run(
    tables: Iterable[Table],
    store: ResultStore,
    *,
    repeats: int | None = None,
    jobs: int = 1,
    backend: str | None = None,
    older: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """Run the cells that are not in the store yet.

    Parameters
    ----------
    tables
        The tables to run; see `find_table`.
    store
        The store of outcomes.
    repeats
        Most seeds (0, 1, ...); None uses the number of each table.
    jobs, backend
        Cells at a time, and the joblib backend that runs them (loky, threading, dask, ray, ...).
    older
        Whether outcomes of other code versions count as done.
    progress
        Called after each cell.

    """
    facts = environment()
    wanted = plan(tables, repeats)
    unknown = {
        text: reason for text in sorted({c.model for c in wanted}) if (reason := missing_model(text, imports=True))
    }
    wanted = [cell for cell in wanted if cell.model not in unknown]
    stored = store.outcomes(None if older else current_for({cell.model for cell in wanted}))
    todo = [cell for cell in wanted if cell not in stored]
    summary = RunSummary(len(wanted), len(wanted) - len(todo), unknown=unknown)
    clock = _Clock(stored, todo, jobs)
    started = perf_counter()
    for cell, outcome in _results(todo, jobs, backend):
        if isinstance(outcome, Outcome):
            store.put(cell, outcome, facts, cell_code(cell.model))
            summary.ran += 1
        else:
            store.put_failure(cell, outcome, cell_code(cell.model))
            summary.failures[cell] = outcome
        clock.note(cell, outcome)
        if progress is not None:
            progress(Progress(summary.ran + len(summary.failures), len(todo), clock.left(), cell))
    summary.seconds = perf_counter() - started
    return summary


def _results(todo: list[Cell], jobs: int, backend: str | None) -> Iterator[tuple[Cell, Outcome | Failure]]:
    if (jobs == 1 and backend is None) or not todo:
        yield from map(attempt, todo)
        return
    yield from each(attempt, todo, jobs, backend, _died)


def _died(cell: Cell) -> tuple[Cell, Failure]:
    return cell, "its process died twice (killed, out of memory, or a crash); run it with --jobs 1 to see more"


class _Mean:
    """A running mean."""

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    def value(self) -> float:
        return self.total / self.count


class _Clock:
    """Estimates the time left: that of the cell with another seed, else that of others on the same data."""

    def __init__(self, stored: dict[Cell, Outcome], todo: list[Cell], jobs: int) -> None:
        self.jobs = jobs
        self.by_kind: dict[tuple[object, ...], _Mean] = defaultdict(_Mean)
        self.by_data: dict[str, _Mean] = defaultdict(_Mean)
        self.every = _Mean()
        for cell, outcome in stored.items():
            self._add(cell, outcome.wall)
        self.todo = Counter(cell.kind for cell in todo)
        self.estimate = (-_SECONDS, 0.0)

    def _add(self, cell: Cell, wall: float) -> None:
        for mean in (self.by_kind[cell.kind], self.by_data[cell.data], self.every):
            mean.add(wall)

    def note(self, cell: Cell, outcome: Outcome | Failure) -> None:
        """Record that a cell is done."""
        self.todo[cell.kind] -= 1
        if isinstance(outcome, Outcome):
            self._add(cell, outcome.wall)

    def left(self) -> float | None:
        """Return the seconds left; computed at most once a second, and at the end."""
        now = perf_counter()
        if not self.every.count:
            return None
        if now - self.estimate[0] >= _SECONDS or not self.todo.total():
            self.estimate = (now, sum(n * self._expected(kind) for kind, n in self.todo.items()) / max(1, self.jobs))
        return self.estimate[1]

    def _expected(self, kind: tuple[Any, ...]) -> float:
        known = self.by_kind.get(kind) or self.by_data.get(kind[0]) or self.every
        return known.value()

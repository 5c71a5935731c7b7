"""Collect single records (JSON lines, svmlight, ARFF, dicts) into batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import Labels, is_missing
from varifold.base.nearest import nearest
from varifold.errors import DataError, VarifoldError
from varifold.streams.readers._numbers import label_of
from varifold.streams.readers.context import SAMPLE, Context, bag_of_words, inferred_type
from varifold.streams.readers.notation import number_of, without_unit
from varifold.streams.readers.targets import make_batch
from varifold.streams.stream import Batch

__all__ = ["Record", "Row", "batches_of_rows", "flatten", "rows_of"]

Record = tuple[int, Mapping[Any, Any]]
"""Line (or number) of a record, and its values by name."""

_DEEPEST = 50
_MOST_JOINED = 8 << 20
"""Most characters that names of outer records add to those of inner ones, in one record."""


@dataclass
class Row:
    """One row before its values are converted."""

    line: int
    x: dict[Any, Any]
    y: Any = None
    id: Any = None
    time: Any = None
    weight: Any = None


def rows_of(context: Context, file: str, records: Iterable[Record]) -> Iterator[Row]:
    """Split each record into features and target; report one that is nested too deeply."""
    for line, record in records:
        try:
            row = _split(context, line, record)
        except DataError as error:
            context.failed(file, line, None, str(error))
        else:
            yield row


def _split(context: Context, line: int, record: Mapping[Any, Any]) -> Row:
    """Separate a record's target, id, time and weight from its features; nested records become ``outer.inner``."""
    x: dict[Any, Any] = {}
    flatten(x, record, context.ignore)
    row = Row(line, x)
    for name, role in context.special().items():
        if name in x:
            context.names_seen.add(name)
        keeps = role == "time" and name in context.dates
        setattr(row, {"target": "y"}.get(role, role), x.get(name) if keeps else x.pop(name, None))
    for name in context.ignore:
        if name in x:
            context.names_seen.add(name)
            del x[name]
    return row


def flatten(
    out: dict[Any, Any],
    record: Mapping[Any, Any],
    ignored: Iterable[Any] = (),
    prefix: str = "",
    depth: int = 0,
    left: int = _MOST_JOINED,
) -> int:
    """Copy the values of a record to `out`; those of a nested record become ``outer.inner`` unless it is ignored.

    Return how many characters may still be added to names: a long outer name would be repeated for each inner one.
    """
    if depth > _DEEPEST:
        raise DataError(f"records are nested more than {_DEEPEST} deep")
    left -= len(prefix) * len(record)
    if left < 0:
        raise DataError(
            f"column {prefix[:60]!r} holds an object whose columns, such as outer.inner, would have names of more than "
            f"{_MOST_JOINED >> 20} MB; shorten the names, or ignore the column"
        )
    for name, value in record.items():
        full = f"{prefix}{name}" if prefix else name
        if isinstance(value, Mapping) and full not in ignored:
            left = flatten(out, value, ignored, f"{full}.", depth + 1, left)
        else:
            out[full] = value
    return left


def batches_of_rows(context: Context, file: str, rows: Iterable[Row]) -> Iterator[Batch]:
    """Collect rows into batches; yield the rows before an unreadable one, then raise the error."""
    waiting: list[Row] = []
    cells = 0
    try:
        for row in rows:
            waiting.append(row)
            cells += len(row.x)
            if len(waiting) >= context.block_rows or cells >= context.block_cells:
                full, waiting, cells = waiting, [], 0
                yield from _batch(context, file, full)
    except DataError:
        if waiting:
            yield from _batch(context, file, waiting)
        raise
    if waiting:
        yield from _batch(context, file, waiting)


def _batch(context: Context, file: str, rows: list[Row]) -> Iterator[Batch]:
    """Yield the rows that can be read, then raise the error about one that cannot."""
    _learn_types(context, rows)
    good, failure = _until_failure(rows, lambda row: _prepared(context, file, row))
    try:
        block = _block(context, good)
    except VarifoldError:
        good, earlier = _until_failure(good, lambda row: _readable(context, file, row))
        failure = earlier or failure
        block = _block(context, good)
    if good or failure is None:
        ids = [row.id for row in good] if context.id is not None else None
        times = [row.time for row in good] if context.time is not None else None
        yield make_batch(context, block, ids, times)
    if failure is not None:
        raise failure


def _until_failure(rows: list[Row], accept: Callable[[Row], bool]) -> tuple[list[Row], DataError | None]:
    """Return the rows that are accepted before the first error, and that error."""
    accepted: list[Row] = []
    for row in rows:
        try:
            if accept(row):
                accepted.append(row)
        except DataError as error:
            return accepted, error
    return accepted, None


def _prepared(context: Context, file: str, row: Row) -> bool:
    """Convert the values of a row; report the row and return False if that fails."""
    try:
        _prepare(context, row)
    except VarifoldError as error:
        context.failed(file, row.line, None, str(error))
        return False
    return True


def _block(context: Context, rows: list[Row]) -> Block:
    y = None if context.target is None else [row.y for row in rows]
    w = None if context.weight is None else [row.weight for row in rows]
    return Block.from_dicts([row.x for row in rows], y, w, context.vocabulary, context.labels)


def _readable(context: Context, file: str, row: Row) -> bool:
    """Return whether a block can be made of this row alone; report the row if not."""
    try:
        labels = [row.y] if context.target is not None and not is_missing(row.y) else None
        Block.from_dicts([row.x], labels, None, context.vocabulary, Labels())
    except VarifoldError as error:
        context.failed(file, row.line, None, str(error).replace(" at step 1", ""))
        return False
    return True


def _learn_types(context: Context, rows: list[Row]) -> None:
    """Infer the types of new columns from these rows."""
    strings: dict[Any, list[str]] = {}
    numbers: dict[Any, list[float]] = {}
    others: Counter[Any] = Counter()
    for row in rows:
        for name, value in row.x.items():
            if name not in context.columns and name not in context.dates and not is_missing(value):
                sample = strings.setdefault(name, [])
                if isinstance(value, str) and value not in context.absent and len(sample) < SAMPLE:
                    sample.append(value)
                elif type(value) in (int, float):
                    numbers.setdefault(name, []).append(value)
                others[name] += not isinstance(value, str)
    for name, cells in strings.items():
        column = context.column(name, cells, typed=True)
        if not column.given and cells:
            column.type = "text" if inferred_type(cells) == "text" else "category"
            column.revised = column.type == "category" and others[name] >= len(cells)
        if not column.given and not cells:
            context.warn_of_counter(name, numbers.get(name, [])[:SAMPLE])
    context.report_units()


def _prepare(context: Context, row: Row) -> None:
    """Convert a row's label, weight, dates and values."""
    if context.key is not None and (is_missing(given := row.x.get(context.key)) or given in context.absent):
        raise DataError(context.no_key(row.x))
    if context.target is not None:
        row.y = _label(context, row)
    if context.weight is not None:
        row.weight = _weight(context, row.weight)
    if context.dates.parts:
        _add_dates(context, row)
    _convert(context, row.x)


def _convert(context: Context, x: dict[Any, Any]) -> None:
    """Convert the values of a row by the types of their columns; a text becomes the counts of its words."""
    changed: dict[Any, Any] = {}
    texts: list[Any] = []
    for name, value in x.items():
        column = context.columns.get(name)
        if isinstance(value, (list, tuple, set)):
            if context.names_only:
                changed[name] = None
                continue
            raise DataError(
                f"column {name!r} holds a list; a value is a number, a string or null: leave it out, "
                f"ignore=[{name!r}] (--ignore {name})"
            )
        if column is None:
            continue
        if isinstance(value, str):
            if value in context.absent:
                changed[name] = None
            elif column.type == "text":
                texts.append(name)
            elif column.type == "numeric":
                number = number_of(value.strip(), context.notations.get(str(name), context.written))
                column.revised |= number is None
                changed[name] = value if number is None else number
        elif column.type == "category" and column.given and not is_missing(value):
            changed[name] = _spelled(value)
    x.update(changed)
    for name in texts:
        x.update({f"{name}:{word}": count for word, count in bag_of_words(x.pop(name)).items()})


def _add_dates(context: Context, row: Row) -> None:
    """Replace dates by their features."""
    for column in context.dates.parts:
        value = row.x.pop(column, None)
        if not is_missing(value) and value not in context.absent:
            context.names_seen.add(column)
            at = None if is_missing(row.time) or row.time in context.absent else row.time
            try:
                row.x.update(context.dates.features(column, value, at))
            except DataError as error:
                raise DataError(f"column {column!r}: {error}") from error


def _spelled(value: Any) -> str:
    """Spell a number as the name of a category: 3.0 is '3'."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _label(context: Context, row: Row) -> Any:
    y = row.y
    if is_missing(y) or (isinstance(y, str) and y in context.absent):
        if context.unlabelled == "keep":
            return None
        target = str(context.target)
        hint = "" if target in context.names_seen else nearest(target, [str(name) for name in row.x])
        raise DataError(f"no label in column {target!r}{hint}")
    if not isinstance(y, str):
        return y
    if context.types.get(str(context.target)) == "numeric":
        y = without_unit(y, context.add_unit(str(context.target), [y], "the data"))
    try:
        return label_of(y.encode(), *context.written.separators)
    except UnicodeEncodeError:
        raise DataError(f"the label {y!r} is not valid Unicode") from None


def _weight(context: Context, weight: Any) -> float:
    if is_missing(weight):
        return 1.0
    try:
        number = float(weight)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise DataError(f"the weight {weight!r} in column {context.weight!r} is not a number >= 0")
    return number

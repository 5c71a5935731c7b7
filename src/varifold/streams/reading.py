"""`read`: files, frames and iterables as a stream."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v1 as nw

from varifold._engine.block import Block
from varifold._engine.vocabulary import Labels, Vocabulary
from varifold.errors import DataError, ParameterError
from varifold.streams.clock import in_order
from varifold.streams.readers.context import ABSENT, MAX_LINE, Column, Context
from varifold.streams.readers.csv import read_delimited
from varifold.streams.readers.dates import Dates
from varifold.streams.readers.lines import read_arff, read_jsonl, read_svmlight
from varifold.streams.readers.sources import FORMATS, Source, open_source
from varifold.streams.readers.tables import read_dicts, read_frame, read_matrix, read_stored
from varifold.streams.readers.targets import as_numbers, decide_target_type, warn_single_value
from varifold.streams.stream import Batch, Stream

__all__ = ["ReadStream", "read"]

_READERS: dict[str, Callable[[Context, Source], Iterator[Batch]]] = {
    "csv": read_delimited,
    "jsonl": read_jsonl,
    "svmlight": read_svmlight,
    "arff": read_arff,
    "parquet": read_stored,
    "ipc": read_stored,
}


class ReadStream(Stream):
    """Instances read from files or from data in memory.

    Every call of `blocks` reads from the beginning; what was learned about names, labels and types stays.
    """

    def __init__(self, context: Context, open_batches: Callable[[], Iterator[Batch]], once: bool = False) -> None:
        self._context = context
        self._open_batches = open_batches
        self._started = False
        self._begun: Iterator[Batch] | None = None
        self.once = once

    def blocks(self) -> Iterator[Block]:
        """The blocks, in order, from the beginning."""
        return (batch.block for batch in self.batches())

    def batches(self) -> Iterator[Batch]:
        """The blocks with the ids and times of their rows."""
        if self.once and self._started:
            raise DataError("standard input or an iterator can be read only once; give a file or a list")
        self._started = True
        begun, self._begun = self._begun, None
        return self._batches() if begun is None else begun

    def _batches(self) -> Iterator[Batch]:
        context, rows = self._context, 0
        context.skipped = 0
        context.problems.clear()
        for batch in self._open_batches():
            decide_target_type(context, batch.block)
            before, rows = rows, rows + len(batch.block)
            if context.target_type == "number":
                batch = as_numbers(context, batch, before)
            if context.dates.order is not None and batch.times is not None:
                batch = replace(batch, times=[in_order(time, context.dates.order) for time in batch.times])
            if len(batch.block):
                yield batch
        context.warn_absent_columns()
        context.warn_revised_columns()
        warn_single_value(context, rows)

    @property
    def target_type(self) -> str | None:
        """``class`` or ``number``: as given, or as the first block shows, which is read now; None without labels."""
        if self._context.target_type is None and self._begun is None and not (self.once and self._started):
            batches = self._batches()
            self._begun = itertools.chain(list(itertools.islice(batches, 1)), batches)
        return self._context.target_type

    def take_numbers(self) -> None:
        """Take the target as numbers to predict, whatever its first rows are taken for."""
        if self._context.target_type == "class" and self._begun is not None:
            raise DataError("the first rows were read with their targets as classes; give target_type='number'")
        self._context.target_type = "number"

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of the features seen so far."""
        return self._context.vocabulary

    @property
    def labels(self) -> Labels:
        """Labels seen so far."""
        return self._context.labels

    @property
    def columns(self) -> dict[str | int, Column]:
        """Columns seen so far, with their types."""
        return self._context.columns

    @property
    def skipped(self) -> int:
        """Rows left out since reading began, because they could not be read."""
        return self._context.skipped

    @property
    def problems(self) -> list[str]:
        """What was wrong with the first of the rows left out."""
        return list(self._context.problems)


def read(
    paths: Any,
    *,
    target: Any = None,
    target_type: str | None = None,
    types: Mapping[str, str] | None = None,
    dates: Mapping[str, Sequence[str]] | None = None,
    date_order: str | None = None,
    absent: Sequence[str] = ABSENT,
    on_error: str = "raise",
    omitted: str = "absent",
    id: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    key: str | None = None,
    ignore: Iterable[str] = (),
    block_rows: int = 65_536,
    format: str | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    max_line: int = MAX_LINE,
    unlabelled: str = "raise",
) -> ReadStream:
    """A stream of blocks from files or from data in memory, in bounded memory.

    Parameters
    ----------
    paths
        A path or several (``-`` is standard input): CSV and relatives, JSON lines, svmlight, ARFF, Parquet, Arrow IPC,
        text also packed by gzip, zstandard or as a zip of one file, whatever their names. Files given together make
        one stream; a column that only some of them have is a feature that comes and goes. Or: a pandas, polars or
        pyarrow frame, a SciPy sparse matrix, a 2-D array, an iterable of dicts or of (dict, label) pairs.
    target
        Column of the label; for a matrix the labels themselves; None when there are none. svmlight lines bring theirs.
    target_type
        ``class`` takes every value of the target as a class, ``number`` as a number to predict (``Block.targets``), for
        a regressor. By default the first block decides: more than 50 different numbers, some of them not whole or many
        whole ones left out between them, are numbers to predict, and so are more than 10 that are not all whole and
        mostly occur once.
    types
        Column name -> ``numeric``, ``category`` or ``text``. Other types come from the first rows. A string in a
        numeric column is a category of that column, with a warning unless the type was given. A text becomes word
        counts ``column:word``.
    dates
        Column name -> what of its dates become features: hour, weekday, month, day, year, elapsed (days since 1970),
        age (days up to the row's `time`). ``{"when": ["hour", "weekday"]}`` gives ``when:hour`` and
        ``when:weekday=Mon``. Dates are ISO 8601 text, Python's, NumPy's or pandas' types, or seconds since 1970. A
        column of dates that no option names is refused.
    date_order
        ``dmy`` or ``mdy``: how a date such as 03/04/2026 is meant, also in the column `time`.
    absent
        Cells that mean "not observed".
    on_error
        ``raise`` stops at a row that cannot be read and says where; ``skip`` leaves it out and counts it.
    omitted
        What an index means that an svmlight or a sparse ARFF row leaves out: ``absent``, or ``zero`` (for svmlight: of
        the indices seen so far).
    id, time, weight
        Columns that are not features: kept beside the block, and the sample weight.
    key
        A feature that every row must have, such as that of `PerKey`; a row without it cannot be read.
    ignore
        Columns to leave out.
    block_rows
        Most rows of a block; wide rows make shorter blocks.
    format
        One of csv, jsonl, svmlight, arff, parquet, ipc; from the suffix or the first bytes when not given.
    encoding, delimiter, decimal, header
        Of text files: the last three are of CSV, and found out when not given. Without a header the columns are called
        c1, c2, ...
    max_line
        Most bytes of a line of text (of a record of CSV); a longer one is a row that cannot be read.
    unlabelled
        A row whose target is absent: ``raise`` takes it as one that cannot be read, ``keep`` gives it without a label.

    Examples
    --------
    >>> from varifold import streams
    >>> stream = streams.read([{"t": 21.5, "y": "ok"}, {"t": None, "p": 1.0, "y": "bad"}], target="y")
    >>> [list(block.rows()) for block in stream.blocks()]
    [[{'t': 21.5}, {'p': 1.0}]]

    """
    if format is not None and format not in FORMATS:
        raise ParameterError(f"format must be one of {', '.join(FORMATS)}. Got {format!r} instead.")
    column = target if target is None or isinstance(target, str) else None
    context = Context(
        column, target_type, types or {}, absent, on_error, omitted, id, time, weight, ignore, block_rows, delimiter,
        decimal, header, max_line, unlabelled, Dates(dates or {}, time, date_order), key,
    )  # fmt: skip
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if hasattr(paths, "tocsr") or type(paths).__module__ == "numpy":
        return ReadStream(context, lambda: read_matrix(context, paths, target))
    if column is not target:
        raise ParameterError(f"target must be the name of a column. Got {target!r} instead.")
    # files first: narwhals looks through the metadata of every package installed
    if isinstance(paths, Sequence) and paths and all(isinstance(path, str | os.PathLike) for path in paths):
        return ReadStream(context, lambda: _read_files(context, paths, format, encoding), once="-" in paths)
    if nw.dependencies.is_into_dataframe(paths):
        return ReadStream(context, lambda: read_frame(context, paths))
    if isinstance(paths, Iterable) and not isinstance(paths, Mapping | bytes):
        return ReadStream(context, lambda: read_dicts(context, paths), once=isinstance(paths, Iterator))
    raise DataError(f"cannot read a stream from {type(paths).__name__}; give paths, a frame, a matrix or dicts")


def column_names(path: str | os.PathLike[str]) -> set[str]:
    """The columns of a file, as far as its first rows show them."""
    stream = read([path], block_rows=100)
    stream._context.names_only = True
    next(iter(stream.blocks()), None)
    return {str(name) for name in stream.columns}


def _read_files(context: Context, paths: Sequence[Any], format: str | None, encoding: str) -> Iterator[Batch]:
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise DataError(f"{path} cannot be opened: {os.strerror(errno.ENOENT)}")
    for number, path in enumerate(paths, 1):
        context.more_files = number < len(paths)
        source = open_source(path, format=format, encoding=encoding)
        try:
            yield from _READERS[source.format](context, source)
        finally:
            source.close()

"""`read`: make a stream of files, frames, matrices or iterables."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v1 as nw

from varifold._engine.names.vocabulary import Labels, Vocabulary
from varifold.base.files import is_model_file
from varifold.errors import DataError, ParameterError
from varifold.streams.readers.context import ABSENT, MAX_LINE, Column, Context
from varifold.streams.readers.csv import read_delimited
from varifold.streams.readers.dates import Dates
from varifold.streams.readers.encodings import detect_encodings
from varifold.streams.readers.lines import read_arff, read_jsonl, read_svmlight
from varifold.streams.readers.notation import Notation
from varifold.streams.readers.sources import FORMATS, Source, open_source
from varifold.streams.readers.tables import read_dicts, read_frame, read_matrix, read_stored
from varifold.streams.stream import BLOCK_ROWS, Batch, Stream

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

    Every call of `batches` reads from the beginning; names, labels and types seen before are kept.
    """

    def __init__(self, context: Context, open_batches: Callable[[], Iterator[Batch]], once: bool = False) -> None:
        self._context = context
        self._open_batches = open_batches
        self._started = False
        self._begun: Iterator[Batch] | None = None
        self.once = once
        self.key = context.key

    def batches(self) -> Iterator[Batch]:
        """Yield the batches, with the ids and times of their rows."""
        if self.once and self._started:
            raise DataError("standard input or an iterator can be read only once; pass a file or a list")
        self._started = True
        begun, self._begun = self._begun, None
        return _batches(self._context, self._open_batches) if begun is None else begun

    @property
    def target_type(self) -> str | None:
        """``class`` or ``number``: as given, or as the first batch shows, which is read now; None without labels."""
        if self._context.target_type is None and self._begun is None and not (self.once and self._started):
            batches = _batches(self._context, self._open_batches)
            self._begun = itertools.chain(list(itertools.islice(batches, 1)), batches)
        return self._context.target_type

    def predict_numbers(self) -> None:
        """Read the target as numbers to predict, whatever its first rows look like."""
        if self._context.target_type == "class" and self._begun is not None:
            raise DataError("the targets of the first rows were read as classes; pass target_type='number'")
        self._context.target_type = "number"

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the names of the features seen so far."""
        return self._context.vocabulary

    @property
    def labels(self) -> Labels:
        """Return the labels seen so far."""
        return self._context.labels

    @property
    def columns(self) -> dict[str | int, Column]:
        """Return the columns seen so far, with their types."""
        return self._context.columns

    @property
    def width(self) -> int:
        """Return the number of columns seen so far: those read, and the parts of dates; not indicators or words."""
        return len(self._context.columns) + sum(map(len, self._context.dates.parts.values()))

    @property
    def ignored(self) -> list[str]:
        """Return the columns that are left out: those that `ignore` names, and an index."""
        return sorted(self._context.ignore)

    @property
    def notations(self) -> dict[str, Notation]:
        """Return the separators of decimals and of thousands by column, where they are not a decimal point alone."""
        return self._context.notations

    @property
    def skipped(self) -> int:
        """Return the number of rows left out since reading began, because they could not be read."""
        return self._context.skipped

    @property
    def period(self) -> tuple[str, str] | None:
        """Return the first and the last time in the column `time`, as text; None without one."""
        return self._context.period

    @property
    def problems(self) -> list[str]:
        """Describe what was wrong with the first of the rows left out."""
        return list(self._context.problems)


def _batches(context: Context, open_batches: Callable[[], Iterator[Batch]]) -> Iterator[Batch]:
    """Read from the beginning; no reference to the stream, so that a file is closed as soon as the stream is gone."""
    context.restart()
    for batch in open_batches():
        if len(batch.block):
            context.note_times(batch.times)
            yield batch
    context.warn_absent_columns()
    context.warn_revised_columns()
    context.warn_single_label()


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
    block_rows: int = BLOCK_ROWS,
    format: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    notations: Mapping[str, Sequence[str]] | None = None,
    header: bool = True,
    max_line: int = MAX_LINE,
    unlabelled: str = "raise",
) -> ReadStream:
    """Read files or data in memory as a stream, in bounded memory.

    Parameters
    ----------
    paths
        One or more paths (``-`` is standard input) to CSV and similar text, JSON lines, svmlight, ARFF, Parquet or
        Arrow IPC files. Text may be compressed with gzip or zstandard, or be a zip archive of one file. Several files
        make one stream; a column that only some of them have is a feature that appears and vanishes. Or a pandas,
        polars or pyarrow frame, a SciPy sparse matrix, a 2-D array, an iterable of dicts or of (dict, label) pairs.
    target
        Name of the column of the label; for a matrix, the labels themselves; None if there are none. svmlight files
        contain their labels.
    target_type
        ``class`` reads every value of the target as a class, ``number`` as a number to predict (``Block.targets``). By
        default the first batch decides: more than 50 different numbers are a quantity to predict if some are not whole
        or they are far apart, and so are more than 10 that are not all whole and mostly occur once.
    types
        Column name -> ``numeric``, ``category`` or ``text``. Other types are inferred from the first rows. A string in
        a numeric column becomes a category of that column, with a warning unless the type was given. A column of
        numbers with a unit, such as ``12 kg``, is a category; the type ``numeric`` reads the numbers without the unit.
        A text becomes word counts ``column:word``.
    dates
        Column name -> features of its dates: hour, weekday, month, day, year, elapsed (days since 1970), age (days up
        to the row's `time`). ``{"when": ["hour", "weekday"]}`` adds ``when:hour`` and ``when:weekday=Mon``. Dates are
        ISO 8601 text, Python's, NumPy's or pandas' types, or seconds since 1970. A column of dates that no option names
        is an error.
    date_order
        ``dmy`` or ``mdy``: the order of day and month in dates such as 03/04/2026, also in the column `time`.
    absent
        Cells that mean "not observed".
    on_error
        ``raise`` stops at a row that cannot be read and reports where; ``skip`` leaves it out and counts it.
    omitted
        Meaning of an index that an svmlight or a sparse ARFF row leaves out: ``absent``, or ``zero`` (in svmlight files
        for the indices seen so far).
    id, time, weight
        Columns that are not features: the id and time of each row, which the batch keeps, and its sample weight.
    key
        A feature that every row must have, such as that of `PerKey`; a row without it cannot be read.
    ignore
        Columns to leave out.
    block_rows
        Most rows of a block; wide rows make shorter blocks.
    format
        One of csv, jsonl, svmlight, arff, parquet, ipc; detected from the suffix or the first bytes if not given.
    encoding
        Encoding of all text files. If not given, it is detected for each file: UTF-8, UTF-16, or a Western European one
        if the first 4 MB are not UTF-8, with a warning that names the files before the first row is read.
    delimiter, header
        Of CSV. The delimiter is detected if not given. Without a header the columns are called c1, c2, ... A first
        column without a name that numbers or names the rows, as pandas and R write it, is left out with a warning; it
        is called column1 and kept if another option names it.
    decimal, thousands
        Separators of decimals (``.`` or ``,``) and of thousands (``.``, ``,``, ``'`` or a space) in numbers of text,
        the target included. If not given, they are detected for each column of CSV: ``2,34``, ``9.467,00`` and
        ``9,467.00`` are numbers. A column that can be read in two ways raises an error that names the options to set.
    notations
        Column name -> its separators of decimals and of thousands, and its unit, in an earlier stream
        (``stream.notations``). A column that can be read in two ways is read as it was then.
    max_line
        Most bytes of a line (of CSV: of a record); a longer one is a row that cannot be read.
    unlabelled
        A row whose target is absent: ``raise`` treats it as one that cannot be read, ``keep`` yields it without label.

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
        target=column,
        target_type=target_type,
        types=types or {},
        absent=absent,
        on_error=on_error,
        omitted=omitted,
        id=id,
        time=time,
        weight=weight,
        ignore=ignore,
        block_rows=block_rows,
        delimiter=delimiter,
        decimal=decimal,
        thousands=thousands,
        header=header,
        max_line=max_line,
        unlabelled=unlabelled,
        dates=Dates(dates or {}, time, date_order),
        key=key,
        notations={column: Notation(*separators) for column, separators in (notations or {}).items()},
    )
    if hasattr(paths, "tocsr") or type(paths).__module__ == "numpy":
        return ReadStream(context, lambda: read_matrix(context, paths, target))
    if column is not target:
        raise ParameterError(f"target must be the name of a column. Got {target!r} instead.")
    return _stream_of(paths, context, format, encoding)


def _stream_of(paths: Any, context: Context, format: str | None, encoding: str | None) -> ReadStream:
    """Make a stream of files, a frame or an iterable of dicts."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    # files first: narwhals searches the metadata of all installed packages
    if isinstance(paths, Sequence) and paths and all(isinstance(path, str | os.PathLike) for path in paths):
        return ReadStream(context, lambda: _read_files(context, paths, format, encoding), once="-" in paths)
    if nw.dependencies.is_into_dataframe(paths):
        return ReadStream(context, lambda: read_frame(context, paths))
    if isinstance(paths, Iterable) and not isinstance(paths, Mapping | bytes):
        return ReadStream(context, lambda: read_dicts(context, paths), once=isinstance(paths, Iterator))
    raise DataError(
        f"cannot read a stream from {type(paths).__name__}; pass paths, a frame (collect a lazy one), a matrix or dicts"
    )


def column_names(path: str | os.PathLike[str]) -> set[str]:
    """Return the columns of a file, as far as its first rows show them, also of rows that cannot be read."""
    stream = read([path], block_rows=100, on_error="skip")
    stream._context.names_only = True
    next(iter(stream.blocks()), None)
    return {str(name) for name in stream.columns} | set(stream.ignored)


def _read_files(context: Context, paths: Sequence[Any], format: str | None, encoding: str | None) -> Iterator[Batch]:
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise DataError(f"{path} cannot be opened: {os.strerror(errno.ENOENT)}")
        if os.path.isfile(path) and is_model_file(path):
            raise DataError(f"{path} is a model file, not data; commands that continue a model take it with --load")
    if encoding is not None:
        context.encodings = [encoding] * len(paths)
    elif not context.encodings:
        context.encodings = detect_encodings(paths, format, context.names_only)
    _check_headers(context, paths, format)
    for number, path in enumerate(paths, 1):
        context.more_files = number < len(paths)
        source = open_source(path, format=format, encoding=context.encodings[number - 1])
        try:
            yield from _READERS[source.format](context, source)
        finally:
            source.close()


def _check_headers(context: Context, paths: Sequence[Any], format: str | None) -> None:
    """Check, before any row is read, that each of several files has the columns that it needs, and one has each other.

    Target, id, time, weight and key are needed in each file.
    """
    if len(paths) < 2:
        return  # the reader checks it
    check = replace(context, columns={}, problems=[], names_seen=set(), names_only=True, more_files=True)
    piped = False
    for number, (path, encoding) in enumerate(zip(paths, context.encodings, strict=True), 1):
        piped |= not os.path.isfile(path)  # can be read only once
        check.more_files = piped or number < len(paths)
        if os.path.isfile(path):
            source = open_source(path, format=format, encoding=encoding)
            try:
                _READERS[source.format](check, source)  # readers check the header when they are made
            finally:
                source.close()

"""Read data in memory and columnar files: Parquet, Arrow IPC, data frames, matrices, iterables of dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import narwhals.stable.v1 as nw

from varifold._engine.names.vocabulary import is_missing
from varifold.base.blocks import to_block
from varifold.base.frames import check_times, open_frame
from varifold.base.sparse import checked_csr
from varifold.errors import DataError, LabelError, VarifoldError, missing_extra
from varifold.streams.readers._numbers import label_of
from varifold.streams.readers.context import MAX_LINE, SAMPLE, Context
from varifold.streams.readers.dates import date_error
from varifold.streams.readers.records import Record, batches_of_rows, rows_of
from varifold.streams.readers.sources import Source
from varifold.streams.readers.targets import make_batch
from varifold.streams.stream import Batch

__all__ = ["read_dicts", "read_frame", "read_matrix", "read_stored"]

_STRINGS = (nw.String, nw.Categorical, nw.Enum)
_INDEXES = ("Unnamed: 0", "__index_level_0__")
"""Names that pandas gives to an index: that of a CSV file, and in Parquet files."""
_DATES = (nw.Date, nw.Datetime)


def read_stored(context: Context, source: Source) -> Iterator[Batch]:
    """Read a Parquet or Arrow IPC file batch by batch."""
    try:
        import pyarrow as arrow
    except ImportError as error:
        raise missing_extra(f"{source.name} needs pyarrow", "data") from error
    if source.path is None:
        raise DataError(f"{source.name}: {source.format} is read from a file, not from a pipe")
    source.close()
    try:
        context.require(_stored_names(source), source.name)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(source, error) from error
    return _stored_batches(context, source)


def _stored_batches(context: Context, source: Source) -> Iterator[Batch]:
    import pyarrow as arrow

    try:
        batches = _parquet(context, source) if source.format == "parquet" else _ipc(source)
        start = 0
        for batch in batches:
            batch.validate(full=True)  # offsets of a damaged file may lie outside its memory
            for part in _bounded_parts(arrow.Table.from_batches([batch])):
                yield from _frame_batches(context, source.name, part, start)
                start += part.num_rows
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Source, error: Exception) -> DataError:
    return DataError(f"{source.name} cannot be read as {source.format}: {error}")


def _stored_names(source: Source) -> list[str]:
    """Return the names of the columns, without reading rows."""
    from pyarrow import memory_map, parquet

    if source.format == "parquet":
        return list(parquet.read_schema(source.path).names)
    with memory_map(str(source.path)) as data:
        return list(_opened(data).schema.names)


def _parquet(context: Context, source: Source) -> Iterator[Any]:
    from pyarrow import parquet, types

    texts = [field.name for field in parquet.read_schema(source.path) if types.is_string(field.type)]
    # as dictionaries: a small file may hold one long text in every row
    with parquet.ParquetFile(source.path, memory_map=True, read_dictionary=texts) as file:
        yield from file.iter_batches(batch_size=_rows_of_width(context, file.metadata.num_columns))


def _bounded_parts(table: Any) -> Iterator[Any]:
    """Cut a table so that the texts that are stored once take at most MAX_LINE bytes when each row has its own."""
    from pyarrow import compute, types

    width = 0
    for column in table.columns:
        if types.is_dictionary(column.type) and types.is_string(column.type.value_type):
            for chunk in column.chunks:
                width += compute.max(compute.binary_length(chunk.dictionary)).as_py() or 0
    step = max(1, MAX_LINE // max(1, width))
    for low in range(0, table.num_rows, step):
        yield table.slice(low, step)


def _rows_of_width(context: Context, columns: int) -> int:
    """Return the number of rows of this width that make a batch."""
    return max(1, min(context.block_rows, context.block_cells // max(1, columns)))


def _ipc(source: Source) -> Iterator[Any]:
    from pyarrow import ipc, memory_map

    with memory_map(str(source.path)) as data:
        opened = _opened(data)
        if isinstance(opened, ipc.RecordBatchFileReader):
            yield from (opened.get_batch(i) for i in range(opened.num_record_batches))
        else:
            yield from opened


def _opened(data: Any) -> Any:
    """Open an Arrow IPC file, or a stream that was saved as a file."""
    from pyarrow import ipc

    if data.read(6) == b"ARROW1":
        return ipc.open_file(data)
    data.seek(0)
    return ipc.open_stream(data)


def read_frame(context: Context, frame: Any) -> Iterator[Batch]:
    """Read a pandas, polars or pyarrow frame."""
    return _frame_batches(context, "the data frame", frame, 0)


def _frame_batches(context: Context, file: str, frame: Any, start: int) -> Iterator[Batch]:
    table = open_frame(frame)
    context.require(table.columns, file)
    for name in _INDEXES:
        if name in table.columns:
            context.leave_out_index(name, table[name].head(SAMPLE).to_list(), file)
    table = table.select([name for name in table.columns if name not in context.ignore] or table.columns)
    check_times(table)
    step = _rows_of_width(context, len(table.columns))
    for low in range(0, len(table), step):
        yield from _part(context, file, table[low : low + step], start + low)


def _part(context: Context, file: str, table: nw.DataFrame[Any], start: int) -> Iterator[Batch]:
    """Read one slice by columns if they are numbers and categories only, else (or after an error) row by row."""
    if _plain(context, table):
        try:
            batch = _by_columns(context, table)
        except VarifoldError:
            pass  # reading again row by row reports the row
        else:
            yield batch
            return
    records = enumerate(table.iter_rows(named=True), start + 1)
    yield from batches_of_rows(context, file, rows_of(context, file, records))


def _plain(context: Context, table: nw.DataFrame[Any]) -> bool:
    special = context.special()
    plain = context.types.get(str(context.target)) != "numeric"  # the target may have a unit
    plain &= not any(name in context.dates for name in table.columns)
    for name in table.columns:
        if name in special or name in context.ignore or name in context.dates:
            continue
        strings = table[name].dtype in _STRINGS
        if table[name].dtype in _DATES and name not in context.types and table[name].count():
            raise date_error(name, table[name].drop_nulls().head(SAMPLE).to_list())
        cells: Iterable[str] = ()
        if strings:
            cells = [c for c in table[name].head(SAMPLE).to_list() if isinstance(c, str) and c not in context.absent]
        known = name in context.columns
        column = context.column(name, cells, typed=True)
        if strings and not column.given and column.type == "numeric":
            column.type = "category"
        if not known and not column.given and table[name].dtype.is_integer():
            context.warn_of_counter(name, table[name].drop_nulls().head(SAMPLE).to_list())
        plain &= column.type == ("category" if strings else "numeric")
    context.report_units()
    return plain


def _by_columns(context: Context, table: nw.DataFrame[Any]) -> Batch:
    special = context.special()
    wanted = [name for name in table.columns if name not in special and name not in context.ignore]
    features = table.select(wanted)
    for name in wanted:
        if features[name].dtype in _STRINGS:
            text = nw.col(name).cast(nw.String)
            features = features.with_columns(nw.when(~text.is_in(list(context.absent))).then(text).alias(name))
    if context.key is not None and features[context.key].null_count():
        raise DataError(context.no_key(table.columns))
    labels, weights = _column(table, context.target), _column(table, context.weight)
    if labels is not None and (context.decimal is not None or context.thousands is not None):
        labels = [label_of(y.encode(), *context.written.separators) if isinstance(y, str) else y for y in labels]
    if context.unlabelled == "raise" and any(map(is_missing, labels or ())):
        raise DataError(f"no label in column {context.target!r}")
    if any(map(is_missing, weights or ())):
        raise DataError(f"no weight in column {context.weight!r}")
    block = to_block(features.to_native(), labels, weights, vocabulary=context.vocabulary, labels=context.labels)
    return make_batch(context, block, _column(table, context.id), _column(table, context.time))


def _column(table: nw.DataFrame[Any], name: str | None) -> list[Any] | None:
    """Return the cells of a column; None without a name."""
    return None if name is None else table[name].to_list()


def read_matrix(context: Context, matrix: Any, target: Any) -> Iterator[Batch]:
    """Read a SciPy sparse matrix or a 2-D array and its labels; the features are the column numbers."""
    table = checked_csr(matrix) if hasattr(matrix, "tocsr") else matrix
    if target is not None and (isinstance(target, str | bytes) or not isinstance(target, Iterable)):
        raise DataError(f"the target of a matrix is a sequence of labels, one per row, not {target!r}")
    if len(table.shape) != 2:
        raise DataError(f"an array of instances has two dimensions, this one has {len(table.shape)}")
    labels = None if target is None else list(target)
    if labels is not None and len(labels) != table.shape[0]:
        raise DataError(f"{len(labels)} labels for {table.shape[0]} rows")
    missing = None if labels is None else next((i for i, y in enumerate(labels) if is_missing(y)), None)
    if missing is not None:
        raise LabelError(f"the label of row {missing + 1:,} is missing; leave such rows out")
    for low in range(0, table.shape[0], context.block_rows):
        high = low + context.block_rows
        y = None if labels is None else labels[low:high]
        block = to_block(table[low:high], y, vocabulary=context.vocabulary, labels=context.labels)
        yield make_batch(context, block)


def read_dicts(context: Context, records: Iterable[Any]) -> Iterator[Batch]:
    """Read an iterable of dicts, or of (dict, label) pairs."""
    context.undeclared = True
    return batches_of_rows(context, "the iterable", rows_of(context, "the iterable", _records(context, records)))


def _records(context: Context, records: Iterable[Any]) -> Iterator[Record]:
    for line, record in enumerate(records, 1):
        if isinstance(record, dict):
            yield line, record
        elif isinstance(record, tuple) and len(record) == 2 and isinstance(record[0], dict):
            context.target = context.target or "label"
            yield line, {**record[0], context.target: record[1]}
        else:
            context.failed(
                "the iterable", line, None, f"a {type(record).__name__} where a dict or (dict, label) was expected"
            )

"""Return predictions in the form of the input: pandas, polars or pyarrow in, the same library out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.data.block import Block
from varifold.base.coverages import Interval
from varifold.errors import DataError, FeatureNameError

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw

__all__ = [
    "check_columns",
    "check_labels",
    "check_times",
    "checked_column",
    "interval_table",
    "is_frame",
    "is_series",
    "label_column",
    "like_index",
    "open_frame",
    "probability_table",
    "set_table",
]

COLUMN = "prediction"
_ONE_TYPE = ({str}, {bool}, {bytes}, {int}, {float}, {int, float})
"""Sets of label types that fit into one typed column."""
_DAYS = (-719_162, 2_932_896)
"""First and last day of the years 1 to 9999, from 1970 on."""
_LONGEST = 999_999_999
"""Most days of a time span in Python."""
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_BEYOND = "holds what Python cannot: dates are of the years 1 to 9999 in a known time zone; leave it out or convert it"
_INSTEAD = "pass the instances as dicts or as a Block"


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame of pandas, polars, pyarrow or another library that narwhals supports."""
    if isinstance(X, Block | np.ndarray | list | tuple | dict) or hasattr(X, "tocsr"):
        return False
    import narwhals.stable.v1 as nw  # slow import: takes as long as the rest of the library

    return bool(nw.dependencies.is_into_dataframe(X))


def is_series(X: Any) -> bool:
    """Return whether X is a single column of such a library."""
    if isinstance(X, list | tuple):
        return False
    import narwhals.stable.v1 as nw

    return bool(nw.dependencies.is_into_series(X))


def open_frame(X: Any) -> nw.DataFrame[Any]:
    """Return a frame of any library by narwhals; reject two columns of one name."""
    import narwhals.stable.v1 as nw
    from narwhals.exceptions import DuplicateError

    _check_arrow(X)
    try:
        table: nw.DataFrame[Any] = nw.from_native(X, eager_only=True)
        table.schema  # noqa: B018 - narwhals may not know the type of a column
    except DuplicateError as error:
        names = list(X.column_names if hasattr(X, "column_names") else X.columns)  # columns are arrays in pyarrow
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise FeatureNameError(f"the frame has more than one column {twice[0]!r}; names are unique") from error
    except ValueError as error:
        raise DataError(f"the frame has a column of a type that cannot be read: {error}") from error
    return table


def _is_arrow(given: Any) -> bool:
    return type(given).__module__.startswith("pyarrow")


def _check_arrow(given: Any) -> None:
    """Reject a table or column of pyarrow whose buffers do not fit together, such as one of a damaged file.

    pyarrow does not check offsets when it reads them: they may lie outside the memory of the process.
    """
    if not _is_arrow(given):
        return
    try:
        given.validate(full=True)
    except (ValueError, IndexError) as error:  # ArrowInvalid, ArrowIndexError
        raise DataError(f"the {type(given).__name__} of pyarrow cannot be read: {error}") from error


def checked_column(given: Any) -> Any:
    """Check the times of labels, targets or weights in a column; one of pyarrow, with objects of its own, is a list."""
    arrow = _as_arrow(given)
    if arrow is None:
        _check_times(given, "the column")
        return given
    from pyarrow import Array, ChunkedArray

    _check_arrow(arrow)
    if not isinstance(arrow, Array | ChunkedArray):
        return given
    _check_times(arrow, "the column")
    return given if arrow is not given else given.to_pylist()


def check_times(table: nw.DataFrame[Any]) -> None:
    """Reject what Python cannot hold in a frame: dates beyond the years 1 to 9999."""
    implementation, native = table.implementation, table.to_native()
    if implementation.is_pandas_like():
        for i, (name, dtype) in enumerate(zip(table.columns, native.dtypes, strict=True)):
            if hasattr(dtype, "pyarrow_dtype"):
                _check_times(native.iloc[:, i], f"column {name!r}")
    elif implementation.is_pyarrow() or implementation.is_polars():
        for name in table.columns:
            _check_times(native[name], f"column {name!r}")


def _as_arrow(column: Any) -> Any:
    """Return a column of pyarrow, or of pandas with a type of pyarrow, as pyarrow has it; None for another."""
    if _is_arrow(column):
        return column
    return column.array.__arrow_array__() if hasattr(getattr(column, "dtype", None), "pyarrow_dtype") else None


def _check_times(column: Any, what: str) -> None:
    """Raise DataError if cells of a column are times that Python does not have."""
    if type(column).__module__.startswith("polars") and hasattr(column, "dtype"):  # a frame has none
        if not _is_within(column):
            raise DataError(f"{what} {_BEYOND}")
        return
    arrow = _as_arrow(column)
    if arrow is None:
        return
    from pyarrow import types

    kind = arrow.type.value_type if types.is_dictionary(arrow.type) else arrow.type
    if types.is_temporal(kind) or types.is_nested(kind):
        try:
            arrow.to_pylist()
        except (ValueError, OverflowError, KeyError) as error:  # also ArrowInvalid; KeyError: an unknown time zone
            raise DataError(f"{what} {_BEYOND} ({error})") from error


def _is_within(series: Any) -> bool:
    """Return whether the times in a series of polars, which ends in a panic otherwise, are times of Python."""
    import polars as pl

    dtype = series.dtype
    if isinstance(dtype, pl.List | pl.Array):
        return _is_within(series.explode())
    if isinstance(dtype, pl.Struct):
        return all(_is_within(series.struct.field(field.name)) for field in dtype.fields)
    if not isinstance(dtype, pl.Date | pl.Datetime | pl.Duration):
        return True
    per_day = 1 if isinstance(dtype, pl.Date) else 86_400 * _PER_SECOND[dtype.time_unit]
    low, high = (-_LONGEST, _LONGEST) if isinstance(dtype, pl.Duration) else _DAYS
    if getattr(dtype, "time_zone", None) is not None:
        low, high = low + 1, high - 1  # the time of a zone may be of the day before or after
    numbers = series.to_physical().drop_nulls()
    return not len(numbers) or (low <= numbers.min() // per_day and numbers.max() // per_day <= high)


def check_labels(labels: Iterable[Any], X: Any) -> None:
    """Reject labels that do not fit into one column of X's library, before anything is learned or computed."""
    if not is_frame(X) or _has_index(X):
        return
    labels = list(labels)
    types = {type(label) for label in labels}
    if types and types not in _ONE_TYPE:
        names = " and ".join(sorted(kind.__name__ for kind in types))
        raise DataError(
            f"labels of type {names} do not fit into a column of {_library(X).__name__}; {_INSTEAD} to get a list"
        )
    for label in labels:
        if isinstance(label, int) and not -(2**63) <= label < 2**63:
            raise DataError(f"the label {label} exceeds 64 bits, and with them a column; {_INSTEAD} to get a list")


def check_columns(labels: Iterable[Any], X: Any) -> None:
    """Reject labels that would give two columns of a frame the same name, before anything is computed."""
    if not is_frame(X):
        return
    taken: dict[str, Any] = {}
    for label in labels:
        other = taken.setdefault(str(label), label)
        if other is not label:
            raise DataError(
                f"the labels {other!r} and {label!r} would both name the column {str(label)!r}; {_INSTEAD} to get "
                "dicts keyed by the labels themselves"
            )


def label_column(labels: list[Any], X: Any) -> Any:
    """Return one label per instance: a Series or Array if X is a frame, else the list itself. None is a null."""
    if not is_frame(X):
        return labels
    library = _library(X)
    if _has_index(X):
        missing = any(label is None for label in labels)
        # use dtype object if there are nulls, so that ints do not become floats
        return library.Series(labels, index=X.index, dtype=object if missing else None, name=COLUMN)
    if {type(label) for label in labels} >= {int, float}:
        labels = [None if label is None else float(label) for label in labels]
    import narwhals.stable.v1 as nw

    column = nw.new_series(COLUMN, labels, backend=library).to_native()
    return column.combine_chunks() if library.__name__ == "pyarrow" else column


def probability_table(labels: Sequence[Any], probabilities: NDArray[np.float64], X: Any) -> Any:
    """Return probabilities per instance: a frame with one column per label if X is a frame, else a list of dicts."""
    if not is_frame(X):
        return [dict(zip(labels, row, strict=True)) for row in probabilities.tolist()]
    return _table({str(label): probabilities[:, j] for j, label in enumerate(labels)}, X)


def interval_table(bounds: NDArray[np.float64], X: Any) -> Any:
    """Return low and high per instance: a frame with these columns if X is a frame, else a list of intervals."""
    if not is_frame(X):
        return [Interval(*pair) for pair in bounds.tolist()]
    return _table({"low": bounds[:, 0], "high": bounds[:, 1]}, X)


def set_table(labels: Sequence[Any], held: NDArray[np.bool_], X: Any) -> Any:
    """Return labels per instance: a frame of bools with one column per label if X is a frame, else a list of sets."""
    if not is_frame(X):
        return [{labels[j] for j in np.flatnonzero(row).tolist()} for row in held]
    return _table({str(label): held[:, j] for j, label in enumerate(labels)}, X)


def _table(columns: dict[str, NDArray[Any]], X: Any) -> Any:
    """Build a frame of X's library, with X's index."""
    columns = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    library = _library(X)
    if _has_index(X):
        return library.DataFrame(columns, index=X.index)
    import narwhals.stable.v1 as nw

    return nw.from_dict(columns, backend=library).to_native()


def like_index(table: Any, X: Any) -> Any:
    """Set the index of a new table to that of the frame X, if its library has indexes."""
    if _has_index(X):
        table.index = X.index
    return table


def _has_index(X: Any) -> bool:
    """Return whether X is a frame of pandas or of a similar library."""
    return hasattr(X, "index")


def _library(X: Any) -> Any:
    import narwhals.stable.v1 as nw

    return nw.get_native_namespace(nw.from_native(X, eager_only=True))

"""Convert dicts, data frames, SciPy sparse matrices and NumPy arrays to blocks."""

from __future__ import annotations

import decimal
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from varifold._engine.data.assemble import assemble
from varifold._engine.data.block import Block, checked_targets, checked_weights
from varifold._engine.names.vocabulary import Labels, Vocabulary, encode_labels
from varifold.base.frames import check_times, checked_column, is_frame, is_series, open_frame
from varifold.base.sparse import checked_csr
from varifold.base.text_columns import warn_new_texts
from varifold.errors import DataError, FeatureValueError

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw

_NUMBERS = "biuf"
"""NumPy dtype kinds of numbers; arrays of other kinds are read cell by cell."""

T = TypeVar("T")
_NO_SEQUENCE = (str, bytes, Mapping, set, frozenset)
"""Types that are iterable, but not as one entry per instance or column."""

_READABLE = "pass a Block, an iterable of dicts, a data frame (not a lazy one), a SciPy sparse matrix or a 2-D array"

__all__ = ["Block", "Labels", "Vocabulary", "check_block", "learned_block", "to_block", "with_numbers"]


class _Cells(NamedTuple):
    """Cells of instances: where each row begins, and by cell the id of its name and its value."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]


def to_block(
    X: Any,
    y: Iterable[Any] | None = None,
    w: Iterable[float] | None = None,
    *,
    names: Iterable[str | int] | None = None,
    vocabulary: Vocabulary | None = None,
    labels: Labels | None = None,
    numeric: bool = False,
) -> Block:
    """Convert X to a block.

    Parameters
    ----------
    X
        A Block (returned as it is), an iterable of dicts, a pandas / polars / pyarrow frame, a SciPy sparse matrix
        (stored zeros are values, cells not stored are absent) or a 2-D NumPy array (NaN and masked cells are absent).
    y, w
        Labels and sample weights, one per instance; not for a Block, which holds its own. None and NaN among the
        labels are labels that are not known.
    names
        Feature names of the columns of an array or sparse matrix; ``0, 1, 2, ...`` when not given.
    vocabulary, labels
        Tables of names and labels to share with other blocks of the same stream; new ones when not given.
    numeric
        Whether y are numbers to predict, for a regressor, and not labels.

    """
    if isinstance(X, Block):
        if y is not None or w is not None:
            raise DataError("a Block holds its own labels and weights; leave y and w out")
        return X
    y, w = checked_column(y), checked_column(w)
    if y is not None and (isinstance(y, _NO_SEQUENCE) or _is_table(y) or not _is_iterable(y)):
        raise DataError(f"y is a {type(y).__name__}; pass a sequence of labels, one per instance")
    w = _weights(w)
    vocabulary = _table(vocabulary, Vocabulary)
    labels = _table(labels, Labels)
    if numeric and y is not None:
        targets = list(y) if not hasattr(y, "__len__") else y
        return to_block(X, None, w, names=names, vocabulary=vocabulary, labels=labels).with_targets(targets)
    cells = _read(X, names, vocabulary)
    if not isinstance(cells, _Cells):
        return Block.from_dicts(cells, y, w, vocabulary, labels)
    n = len(cells.indptr) - 1
    weights = None if w is None else checked_weights(w, n)
    return Block(vocabulary, *cells, encode_labels(y, labels, n, weights), labels, weights)


def learned_block(
    X: Any, y: Iterable[Any] | None, w: Iterable[float] | None, known: Callable[[Any], bool], *, numeric: bool = False
) -> Block:
    """Convert X to a block to learn from: only a Block may come without y.

    Columns of texts that are not `known` to the learner are reported if they are probably no categories.
    """
    if y is None and not isinstance(X, Block):
        what = "target" if numeric else "label"
        raise DataError(f"y is missing; pass a {what} per instance, None where it is not known, or call predict_many")
    block = to_block(X, y, w, numeric=numeric)
    if block is not X:
        warn_new_texts(block, X, known)
    return block


def with_numbers(block: Block) -> Block:
    """Return the same instances with their labels as regression targets; every label must be a number."""
    if block.targets is not None or not len(block.labels):
        return block
    numbers_of = np.append(checked_targets(block.labels.values, len(block.labels)), np.nan)
    return block.with_targets(numbers_of[block.codes])


def _is_table(given: Any) -> bool:
    """Return whether this is a data frame or a SciPy matrix, which has no single sequence of values."""
    return hasattr(given, "columns") or hasattr(given, "tocoo")


def _is_iterable(given: Any) -> bool:
    """Return whether this can be iterated over; an array without dimensions cannot."""
    return isinstance(given, Iterable) and getattr(given, "ndim", 1) != 0


def _weights(w: Any) -> NDArray[np.float64] | None:
    """Convert sample weights to a float array; their count and signs are checked with the instances."""
    if w is None:
        return None
    if isinstance(w, _NO_SEQUENCE) or _is_table(w) or not _is_iterable(w):
        raise DataError(f"w is a {type(w).__name__}; pass a sequence of weights, one per instance")
    if isinstance(w, np.ndarray) and w.dtype.kind in _NUMBERS and w.ndim == 1:
        return np.asarray(np.ma.filled(w.astype(np.float64), np.nan))  # NaN where masked, which is rejected
    weights = list(w)
    for i, weight in enumerate(weights):
        if not isinstance(weight, numbers.Real | np.bool_ | decimal.Decimal) or isinstance(weight, np.timedelta64):
            raise DataError(f"the weight of instance {i} is {weight!r}; weights are finite numbers >= 0")
    try:
        return np.array([float(weight) for weight in weights])
    except OverflowError as error:
        raise DataError(f"a weight is too large for a float: {error}; weights are finite numbers >= 0") from error


def _table(given: Any, kind: type[T]) -> T:
    if given is None:
        return kind()
    if not isinstance(given, kind):
        name = kind.__name__
        raise DataError(f"{name.lower()} must be a {name} or None. Got a {type(given).__name__} instead.")
    return given


def _read(X: Any, names: Iterable[str | int] | None, vocabulary: Vocabulary) -> _Cells | Iterable[Any]:
    """Return the cells of a matrix or a frame; of anything else the dicts, which a block reads one by one."""
    if isinstance(X, np.ndarray):
        return _read_array(X, names, vocabulary)
    if hasattr(X, "tocsr"):
        return _read_sparse(X, names, vocabulary)
    if names is not None:
        raise DataError(f"names are for arrays and sparse matrices; a {type(X).__name__} has its own")
    if is_frame(X):
        return _read_frame(open_frame(X), vocabulary)
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable) or is_series(X):
        raise DataError(f"cannot read instances from {type(X).__name__}; {_READABLE}")
    if isinstance(X, Sequence) and X and not isinstance(X[0], Mapping):
        raise DataError(f"cannot read an instance from {X[0]!r}; {_READABLE}")
    return X


def _column_names(names: Iterable[str | int] | None, width: int) -> Sequence[str | int]:
    if names is None:
        return range(width)
    if isinstance(names, _NO_SEQUENCE) or not isinstance(names, Iterable):
        raise DataError(f"names is a {type(names).__name__}; pass a sequence of feature names, one per column")
    names = list(names)
    if len(names) != width:
        raise DataError(f"{len(names)} names for {width} columns")
    return names


def _read_array(
    X: np.ndarray[Any, Any], names: Iterable[str | int] | None, vocabulary: Vocabulary
) -> _Cells | Iterable[Any]:
    if X.ndim != 2:
        raise DataError(f"an array of instances has two dimensions, this one has {X.ndim}")
    column_names = _column_names(names, X.shape[1])
    if isinstance(X, np.ma.MaskedArray):
        values = X.data.astype(np.float64 if X.dtype.kind in _NUMBERS else object)
        X = np.where(np.ma.getmaskarray(X), np.nan, values)
    X = np.asarray(X)  # columns of an np.matrix are matrices
    if X.dtype.kind not in _NUMBERS:
        return (dict(zip(column_names, row, strict=True)) for row in X.tolist())
    columns = [(vocabulary.add(name), X[:, j]) for j, name in enumerate(column_names)]
    return _Cells(*assemble(len(X), columns, vocabulary))


def _read_sparse(X: Any, names: Iterable[str | int] | None, vocabulary: Vocabulary) -> _Cells:
    X = checked_csr(X)
    if X.dtype.kind not in _NUMBERS:
        raise FeatureValueError(f"the sparse matrix holds {X.dtype}; pass one of numbers")
    ids = np.array([vocabulary.add(name) for name in _column_names(names, X.shape[1])], dtype=np.int32)
    values = np.asarray(X.data, dtype=np.float64)
    present = ~np.isnan(values)
    kept = np.concatenate([[0], np.cumsum(present)])
    return _Cells(kept[X.indptr], ids[X.indices[present]], values[present])


def _read_frame(X: nw.DataFrame[Any], vocabulary: Vocabulary) -> _Cells:
    import narwhals.stable.v1 as nw

    check_times(X)
    columns: list[tuple[Any, Any]] = []
    for name in X.columns:
        series = X.get_column(name)
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            columns.append((vocabulary.add(name), _as_floats(series)))
        elif series.dtype in (nw.String, nw.Categorical, nw.Enum):
            columns.append(_as_levels(series, name, vocabulary))
        else:
            columns.extend(_mixed(series, name, vocabulary))
    return _Cells(*assemble(len(X), columns, vocabulary))


def _as_floats(series: nw.Series[Any]) -> Any:
    """Convert a column to floats, with NaN for null."""
    import narwhals.stable.v1 as nw

    if series.dtype in (nw.Boolean, nw.Int128, nw.UInt128):  # NumPy has no null of the first, and not the others
        series = series.cast(nw.Float64)
    return series.to_numpy().astype(np.float64)


def _as_levels(series: nw.Series[Any], name: str, vocabulary: Vocabulary) -> tuple[Any, Any]:
    """Return one indicator id per row, 0 where absent, and None for the values, which are all 1."""
    ids: dict[str | None, int] = {}
    out = np.zeros(len(series), dtype=np.int32)
    absent = series.is_null().to_list()
    for i, level in enumerate(series.to_list()):
        if absent[i] or level is None or level != level:
            continue
        level_id = ids.get(level)
        if level_id is None:
            level_id = ids[level] = vocabulary.add_level(name, level)
        out[i] = level_id
    return out, None


def _mixed(series: nw.Series[Any], name: str, vocabulary: Vocabulary) -> list[tuple[Any, Any]]:
    """Convert a column of objects, reading each cell like a value of a dict."""
    cells = Block.from_dicts(({name: value} for value in series.to_list()), vocabulary=vocabulary)
    ids = np.zeros(len(series), dtype=np.int32)
    values = np.ones(len(series))
    filled = np.flatnonzero(np.diff(cells.indptr))
    ids[filled] = cells.indices
    values[filled] = cells.values
    return [(ids, values)]


def check_block(block: Any) -> None:
    """Raise DataError unless the argument is a Block."""
    if not isinstance(block, Block):
        raise DataError(f"run_block takes a Block. Got a {type(block).__name__} instead; to_block() makes one")

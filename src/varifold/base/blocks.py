"""Anything tabular becomes a block: dicts, data frames, SciPy sparse, NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from varifold._engine.assemble import assemble
from varifold._engine.block import Block, checked_weights
from varifold._engine.vocabulary import Labels, Vocabulary, encode_labels
from varifold.errors import DataError, FeatureNameError, FeatureValueError

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw

_NUMBERS = "biuf"
"""Kinds of NumPy arrays that are numbers; the cells of others are read one by one."""

_READABLE = "pass a Block, an iterable of dicts, a data frame, a SciPy sparse matrix or a 2-D array"

__all__ = ["Block", "Labels", "Vocabulary", "to_block"]


def to_block(
    X: Any,
    y: Iterable[Any] | None = None,
    w: Iterable[float] | None = None,
    *,
    names: Sequence[str | int] | None = None,
    vocabulary: Vocabulary | None = None,
    labels: Labels | None = None,
) -> Block:
    """Turn X into a block.

    Parameters
    ----------
    X
        A Block (returned as it is), an iterable of dicts, a pandas / polars / pyarrow frame, a SciPy sparse matrix
        (stored zeros are values, cells not stored are absent) or a 2-D NumPy array (NaN is absent).
    y, w
        Labels and sample weights, one an instance; not for a Block, which carries its own.
    names
        Feature names of an array's or a sparse matrix' columns; ``0, 1, 2, ...`` when not given.
    vocabulary, labels
        Tables of the stream that the block belongs to; new ones when not given.

    """
    if isinstance(X, Block):
        if y is not None or w is not None:
            raise DataError("a Block carries its labels and weights; leave y and w out")
        return X
    if isinstance(y, str | bytes | Mapping) or hasattr(y, "columns"):
        raise DataError(f"y is a {type(y).__name__}; pass a sequence of labels, one an instance")
    vocabulary = Vocabulary() if vocabulary is None else vocabulary
    labels = Labels() if labels is None else labels
    if isinstance(X, np.ndarray):
        return _from_array(X, y, w, names, vocabulary, labels)
    if hasattr(X, "tocsr"):
        return _from_sparse(X, y, w, names, vocabulary, labels)
    if not isinstance(X, list | tuple | dict):
        import narwhals.stable.v1 as nw  # costs as much as all the rest of the library

        if nw.dependencies.is_into_series(X):
            raise DataError(f"cannot read instances from {type(X).__name__}; {_READABLE}")
        if nw.dependencies.is_into_dataframe(X):
            return _from_frame(_frame(X), y, w, vocabulary, labels)
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise DataError(f"cannot read instances from {type(X).__name__}; {_READABLE}")
    if isinstance(X, Sequence) and X and not isinstance(X[0], Mapping):
        raise DataError(f"cannot read an instance from {X[0]!r}; {_READABLE}")
    return Block.from_dicts(X, y, w, vocabulary, labels)


def _finish(
    n: int,
    cells: tuple[Any, Any, Any],
    y: Iterable[Any] | None,
    w: Iterable[float] | None,
    vocabulary: Vocabulary,
    labels: Labels,
) -> Block:
    weights = None if w is None else checked_weights(list(w), n)
    return Block(vocabulary, *cells, encode_labels(y, labels, n, weights), labels, weights)


def _column_names(names: Sequence[str | int] | None, width: int) -> Sequence[str | int]:
    if names is None:
        return range(width)
    if len(names) != width:
        raise DataError(f"{len(names)} names for {width} columns")
    return names


def _from_array(
    X: np.ndarray[Any, Any],
    y: Iterable[Any] | None,
    w: Iterable[float] | None,
    names: Sequence[str | int] | None,
    vocabulary: Vocabulary,
    labels: Labels,
) -> Block:
    if X.ndim != 2:
        raise DataError(f"an array of instances has two dimensions, this one has {X.ndim}")
    names = _column_names(names, X.shape[1])
    if X.dtype.kind not in _NUMBERS:
        rows = (dict(zip(names, row, strict=True)) for row in X.tolist())
        return Block.from_dicts(rows, y, w, vocabulary, labels)
    columns = [(vocabulary.add(name), X[:, j]) for j, name in enumerate(names)]
    return _finish(len(X), assemble(len(X), columns, vocabulary), y, w, vocabulary, labels)


def _from_sparse(
    X: Any,
    y: Iterable[Any] | None,
    w: Iterable[float] | None,
    names: Sequence[str | int] | None,
    vocabulary: Vocabulary,
    labels: Labels,
) -> Block:
    X = X.tocsr()
    if X.dtype.kind not in _NUMBERS:
        raise FeatureValueError(f"the sparse matrix holds {X.dtype}; pass one of numbers")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    ids = np.array([vocabulary.add(name) for name in _column_names(names, X.shape[1])], dtype=np.int32)
    values = np.asarray(X.data, dtype=np.float64)
    present = ~np.isnan(values)
    kept = np.concatenate([[0], np.cumsum(present)])
    cells = (kept[X.indptr], ids[X.indices[present]] if len(ids) else X.indices, values[present])
    return _finish(X.shape[0], cells, y, w, vocabulary, labels)


def _frame(X: Any) -> nw.DataFrame[Any]:
    import narwhals.stable.v1 as nw
    from narwhals.exceptions import DuplicateError

    try:
        return nw.from_native(X, eager_only=True)
    except DuplicateError as error:
        twice = sorted({str(name) for name in X.columns if list(X.columns).count(name) > 1})
        raise FeatureNameError(f"the frame has more than one column {twice[0]!r}; names are unique") from error


def _from_frame(
    X: nw.DataFrame[Any],
    y: Iterable[Any] | None,
    w: Iterable[float] | None,
    vocabulary: Vocabulary,
    labels: Labels,
) -> Block:
    import narwhals.stable.v1 as nw

    columns: list[tuple[Any, Any]] = []
    for name in X.columns:
        series = X.get_column(name)
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            columns.append((vocabulary.add(name), _as_floats(series)))
        elif series.dtype in (nw.String, nw.Categorical, nw.Enum):
            columns.append(_as_levels(series, name, vocabulary))
        else:
            columns.extend(_mixed(series, name, vocabulary))
    return _finish(len(X), assemble(len(X), columns, vocabulary), y, w, vocabulary, labels)


def _as_floats(series: nw.Series[Any]) -> Any:
    """Numbers with NaN where the frame has a null."""
    import narwhals.stable.v1 as nw

    if series.null_count():
        return series.cast(nw.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
    return series.to_numpy().astype(np.float64)


def _as_levels(series: nw.Series[Any], name: str, vocabulary: Vocabulary) -> tuple[Any, Any]:
    """Indicator ids a row, 0 where absent; the values are all 1."""
    ids: dict[str | None, int] = {}
    out = np.zeros(len(series), dtype=np.int32)
    for i, level in enumerate(series.to_list()):
        if level is None or level != level:
            continue
        found = ids.get(level)
        if found is None:
            found = ids[level] = vocabulary.add_level(name, level)
        out[i] = found
    return out, None


def _mixed(series: nw.Series[Any], name: str, vocabulary: Vocabulary) -> list[tuple[Any, Any]]:
    """An object column: each cell is read as a dict's value would be."""
    cells = Block.from_dicts(({name: value} for value in series.to_list()), vocabulary=vocabulary)
    ids = np.zeros(len(series), dtype=np.int32)
    values = np.ones(len(series))
    filled = np.flatnonzero(np.diff(cells.indptr))
    ids[filled] = cells.indices
    values[filled] = cells.values
    return [(ids, values)]

"""Data X of scikit-learn's users, keyed by column name: frames, arrays, sparse matrices, lists."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from varifold.base.frames import is_frame, open_frame
from varifold.base.sparse import checked_csr
from varifold.errors import DataError
from varifold.sklearn.extra import check_array

Names = list[str | int]

__all__ = ["Names", "named_columns"]


def named_columns(X: Any, estimator: Any, *, omitted: str, known: Names | None) -> tuple[Any, Names | None]:
    """Return X ready for `to_block`, and the names of its columns: None for dicts, which have their own.

    Parameters
    ----------
    X
        A data frame, a list of dicts, or anything that scikit-learn accepts as a 2-D array.
    estimator
        Named in scikit-learn's messages.
    omitted
        ``"absent"`` or ``"zero"``: meaning of the cells that a sparse matrix does not store.
    known
        Names of the columns learned last: the columns of an array get them by position, and must be as many.

    """
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        return X, None
    if is_frame(X):
        return X, _frame_columns(X)
    X = checked_csr(X) if hasattr(X, "tocsr") else X  # before scikit-learn passes it to compiled code
    X = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite="allow-nan", estimator=estimator)
    if hasattr(X, "tocsr") and omitted == "zero":
        X = X.toarray()
    if known is None:
        return X, list(range(X.shape[1]))
    _check_width(X.shape[1], known, estimator)
    return X, known


def _frame_columns(X: Any) -> Names:
    import narwhals.stable.v1 as nw

    if nw.dependencies.is_pandas_dataframe(X):
        return list(X.columns)
    return list(open_frame(X).columns)


def _check_width(width: int, known: Names, estimator: Any) -> None:
    """Raise an error for an array of another width: without names, it is unknown which columns appeared or vanished."""
    name = type(estimator).__name__
    if width != len(known):
        raise DataError(
            f"X has {width} features, but {name} is expecting {len(known)} features as input: the columns of an array "
            "have no names. Pass a data frame, whose columns may appear and vanish"
        )
    if any(isinstance(column, str) for column in known):
        warnings.warn(
            f"X does not have valid feature names, but {name} was fitted with feature names; its columns are "
            "read in the order of the last data frame",
            UserWarning,
            stacklevel=5,
        )

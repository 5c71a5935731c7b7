"""Sparse matrices of SciPy, whose constructors accept index arrays that its compiled code reads outside of."""

from __future__ import annotations

from typing import Any

import numpy as np

from varifold.errors import DataError

__all__ = ["checked_csr"]

_REMEDY = "build the matrix again from its cells"


def checked_csr(X: Any) -> Any:
    """Convert a sparse matrix to CSR with ascending indices; cells of the same row and column are added up.

    DataError names the row or column whose indices do not fit.
    """
    if len(X.shape) != 2:
        raise DataError(f"a sparse matrix of instances has two dimensions, this one has {len(X.shape)}")
    kind = getattr(X, "format", "")
    if kind in ("csr", "csc", "bsr"):
        _check_compressed(X, kind)
    elif kind == "coo":
        _check_coordinates(X)
    try:
        csr = X.tocsr()
    except (ValueError, IndexError, TypeError) as error:  # a format whose cells SciPy checks itself
        raise DataError(f"the sparse matrix cannot be read: {error}; {_REMEDY}") from error
    _check_compressed(csr, "csr")
    cells = csr.indptr[-1]
    if cells < len(csr.indices):  # arrays may be longer than what they hold
        csr = type(csr)((csr.data[:cells], csr.indices[:cells], csr.indptr), shape=csr.shape)
    if not _ascend(csr):
        # a new matrix: the flags of the given one may claim otherwise, and it stays as it is
        csr = type(csr)((csr.data.copy(), csr.indices.copy(), csr.indptr.copy()), shape=csr.shape)
        csr.sum_duplicates()
    return csr


def _ascend(csr: Any) -> bool:
    """Return whether the indices of each row ascend."""
    indices = csr.indices
    ascends = np.append(indices[1:] > indices[:-1], True)
    ascends[csr.indptr[1:][csr.indptr[1:] > 0] - 1] = True  # the last cell of a row
    return bool(ascends[: len(indices)].all())


def _check_compressed(X: Any, kind: str) -> None:
    """Check that the row (or column) pointers ascend and that every index lies within the matrix."""
    rows, columns = X.shape if kind != "bsr" else (X.shape[0] // X.blocksize[0], X.shape[1] // X.blocksize[1])
    major, minor, name = (columns, rows, "column") if kind == "csc" else (rows, columns, "row")
    indptr, indices = np.asarray(X.indptr), np.asarray(X.indices)
    for array, what in ((indptr, "indptr"), (indices, "indices")):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise DataError(f"{what} of the sparse matrix is not a row of whole numbers; {_REMEDY}")
    if len(indptr) != major + 1 or indptr[0] != 0 or len(indices) != len(X.data):
        raise DataError(
            f"the sparse matrix has {len(indptr):,} row pointers from {indptr[:1].tolist()} on, {len(indices):,} "
            f"indices and {len(X.data):,} values for {major:,} {name}s; {_REMEDY}"
        )
    lengths = np.diff(indptr.astype(np.int64))
    wrong = np.flatnonzero((lengths < 0) | (indptr[1:] > len(indices)))
    if len(wrong):
        at = int(wrong[0])
        raise DataError(
            f"{name} {at:,} of the sparse matrix has the cells from {indptr[at]} to {indptr[at + 1]} of "
            f"{len(indices):,}; {_REMEDY}"
        )
    _check_range(indices[: indptr[-1]], minor, lambda k: int(np.searchsorted(indptr, k, side="right")) - 1, name)


def _check_coordinates(X: Any) -> None:
    """Check that every cell lies within the matrix."""
    row, column = np.asarray(X.row), np.asarray(X.col)
    if not len(row) == len(column) == len(X.data):
        raise DataError(
            f"the sparse matrix has {len(row):,} rows, {len(column):,} columns and {len(X.data):,} values; {_REMEDY}"
        )
    _check_range(row, X.shape[0], lambda k: int(row[k]), "row")
    _check_range(column, X.shape[1], lambda k: int(row[k]), "row")


def _check_range(indices: Any, size: int, place: Any, name: str) -> None:
    """Raise DataError for the first index that is not one of 0 ... size - 1, with the row of its cell."""
    wrong = np.flatnonzero((indices < 0) | (indices >= size))
    if len(wrong):
        k = int(wrong[0])
        raise DataError(
            f"{name} {place(k):,} of the sparse matrix has the index {indices[k]}, which is not from 0 to "
            f"{size - 1:,}; {_REMEDY}"
        )

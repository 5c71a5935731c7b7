"""Sparse matrices whose index arrays do not fit: rejected, with the row, before compiled code reads them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from varifold import AROW, streams, to_block
from varifold.errors import DataError
from varifold.sklearn import VarifoldClassifier

DATA, INDICES, INDPTR = np.ones(4), np.array([0, 2, 1, 3]), np.array([0, 2, 4])


def compressed(make: Any, **other: Any) -> Any:
    """A matrix of 2 x 4 (or 4 x 2) whose arrays are replaced after it was made, as SciPy allows."""
    matrix = make((DATA.copy(), INDICES.copy(), INDPTR.copy()), shape=(2, 4) if make is sparse.csr_matrix else (4, 2))
    for name, array in other.items():
        setattr(matrix, name, np.asarray(array))
    return matrix


def coordinates(**other: Any) -> Any:
    matrix = sparse.coo_matrix((DATA.copy(), ([0, 0, 1, 1], [0, 2, 1, 3])), shape=(2, 4))
    for name, array in other.items():
        setattr(matrix, name, np.asarray(array))
    return matrix


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "indptr jumps": (lambda: compressed(sparse.csr_matrix, indptr=[0, 9, 4]), "row 0 .* from 0 to 9 of 4"),
    "indptr falls": (lambda: compressed(sparse.csr_matrix, indptr=[0, 4, 2]), "row 1 .* from 4 to 2 of 4"),
    "indptr begins late": (lambda: compressed(sparse.csr_matrix, indptr=[1, 2, 4]), "row pointers"),
    "indptr too short": (lambda: compressed(sparse.csr_matrix, indptr=[0, 4]), "2 row pointers"),
    "huge index": (lambda: compressed(sparse.csr_matrix, indices=[0, 2, 1, 2**30]), "row 1 .* the index 1073741824"),
    "negative index": (lambda: compressed(sparse.csr_matrix, indices=[0, -1, 1, 3]), "row 0 .* the index -1"),
    "too few values": (lambda: compressed(sparse.csr_matrix, data=[1.0]), "1 values"),
    "csc indptr": (lambda: compressed(sparse.csc_matrix, indptr=[0, 9, 4]), "column 0 .* from 0 to 9"),
    "csc index": (lambda: compressed(sparse.csc_matrix, indices=[0, 2, 1, 4]), "column 1 .* the index 4"),
    "coo row": (lambda: coordinates(row=[0, 0, 1, 7]), "row 7 .* the index 7"),
    "coo column": (lambda: coordinates(col=[0, -1, 1, 3]), "row 0 .* the index -1"),
    "coo lengths": (lambda: coordinates(row=[0, 0, 1]), "3 rows, 4 columns"),
    "bsr index": (
        lambda: sparse.bsr_matrix((np.ones((1, 2, 2)), np.array([5]), np.array([0, 1])), shape=(2, 4)),
        "row 0 .* the index 5",
    ),
}


def readers() -> dict[str, Callable[[Any], Any]]:
    labels = ["a", "b", "a", "b"]
    return {
        "to_block": to_block,
        "learn_many": lambda X: AROW().learn_many(X, labels[: X.shape[0]]),
        "read": lambda X: list(streams.read(X, target=labels[: X.shape[0]]).blocks()),
        "fit": lambda X: VarifoldClassifier("arow").fit(X, labels[: X.shape[0]]),
        "fit zero": lambda X: VarifoldClassifier("arow", omitted="zero").fit(X, labels[: X.shape[0]]),
    }


@pytest.mark.parametrize("reader", readers())
@pytest.mark.parametrize("kind", WRONG)
def test_index_arrays_that_do_not_fit_are_rejected(kind: str, reader: str) -> None:
    make, message = WRONG[kind]
    with pytest.raises(DataError, match=message):
        readers()[reader](make())


def test_no_process_ends() -> None:
    """What used to crash in SciPy's sorting, in a process of its own."""
    code = """
import numpy as np
from scipy import sparse
from varifold import to_block
from varifold.errors import DataError
for seed in range(200):
    draw = np.random.default_rng(seed)
    indptr = np.concatenate([[0], draw.integers(-5, 10**draw.integers(1, 9), 20)])
    indices = draw.integers(-3, 10**draw.integers(1, 9), 40)
    matrix = sparse.csr_matrix((20, 50))
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, np.ones(40)
    try:
        to_block(matrix)
    except DataError:
        continue
    raise SystemExit("accepted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:] + str(done.returncode)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_matrices_of_every_format_are_read(kind: str) -> None:
    dense = np.random.default_rng(0).integers(0, 3, (6, 4)).astype(float)
    rows = list(to_block(sparse.csr_matrix(dense).asformat(kind)).rows())
    assert [{j: v for j, v in x.items() if v} for x in rows] == [
        {j: v for j, v in enumerate(row) if v} for row in dense.tolist()
    ]


def test_cells_given_twice_are_added_whatever_the_matrix_claims() -> None:
    matrix = sparse.csr_matrix((np.ones(3), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    matrix.has_canonical_format = True
    before = matrix.indices.copy()
    assert list(to_block(matrix).rows()) == [{0: 1.0, 1: 2.0}]
    assert matrix.indices.tolist() == before.tolist()


@pytest.mark.parametrize("reader", readers())
@pytest.mark.parametrize("indices", [[0, 2, -5, 99], [0, 2, 1, 1]])
def test_places_after_the_last_cell_are_not_read(indices: list[int], reader: str) -> None:
    matrix = compressed(sparse.csr_matrix, indptr=[0, 2, 2], indices=indices, data=[1.0, 1.0, np.nan, np.inf])
    readers()[reader](matrix)
    assert list(to_block(matrix).rows()) == [{0: 1.0, 2: 1.0}, {}]
    assert matrix.indices.tolist() == indices


def test_an_empty_matrix_is_read() -> None:
    assert list(to_block(sparse.csr_matrix((3, 4))).rows()) == [{}, {}, {}]
    assert len(to_block(sparse.csr_matrix((0, 4)))) == 0
    assert list(to_block(sparse.csr_matrix((2, 0))).rows()) == [{}, {}]


def test_cells_outside_of_a_dictionary_of_keys_are_rejected() -> None:
    matrix = sparse.dok_matrix((2, 3))
    matrix[0, 1] = 1.0
    matrix._dict[0, -1] = 5.0
    with pytest.raises(DataError, match="negative"):
        to_block(matrix)

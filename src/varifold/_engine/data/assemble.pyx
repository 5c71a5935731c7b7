"""Columns to rows: the cells of a table in row order, absent ones left out."""

import numpy as np

from libc.math cimport isinf, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from varifold._engine.names.reading cimport value_error
from varifold._engine.names.vocabulary cimport Vocabulary

cdef struct Column:
    int32_t id                 # of the feature, unless it differs by row
    const int32_t* ids         # [row] 0 where absent; NULL: `id` in every row
    const double* numbers      # [row] NaN where absent; NULL: 1 in every row


cdef inline int32_t id_at(Column* c, Py_ssize_t row) noexcept nogil:
    return c.id if c.ids == NULL else c.ids[row]


cdef inline double number_at(Column* c, Py_ssize_t row) noexcept nogil:
    return 1.0 if c.numbers == NULL else c.numbers[row]


cdef inline bint is_present(Column* c, Py_ssize_t row) noexcept nogil:
    return id_at(c, row) != 0 and not isnan(number_at(c, row))


cdef object column_array(object given, object dtype, Py_ssize_t n):
    """Return a column as a contiguous array of n entries."""
    array = np.ascontiguousarray(given, dtype=dtype)
    if len(array) != n:
        raise ValueError("columns differ in length")
    return array


cdef list read_columns(Py_ssize_t n, columns, Column* column):
    """Describe the columns in C; return the arrays that the description points into."""
    cdef const int32_t[::1] ids
    cdef const double[::1] numbers
    cdef Py_ssize_t j
    cdef list arrays = []
    for j, (first, second) in enumerate(columns):
        column[j].id = first if isinstance(first, int) else 0
        column[j].ids = NULL
        column[j].numbers = NULL
        if not isinstance(first, int):
            arrays.append(column_array(first, np.int32, n))
            ids = arrays[len(arrays) - 1]
            column[j].ids = &ids[0]
        if second is not None:
            arrays.append(column_array(second, np.float64, n))
            numbers = arrays[len(arrays) - 1]
            column[j].numbers = &numbers[0]
    return arrays


cdef int write_cells(Column* column, Py_ssize_t m, Vocabulary vocabulary, int64_t[::1] ptr, int32_t[::1] indices,
                     double[::1] values) except -1:
    """Write the cells present, row by row; raise for the first infinite one."""
    cdef Py_ssize_t i, j, p = 0, n = ptr.shape[0] - 1, bad_row = -1, bad_column = -1
    with nogil:
        for i in range(n):
            for j in range(m):
                if not is_present(&column[j], i):
                    continue
                indices[p] = id_at(&column[j], i)
                values[p] = number_at(&column[j], i)
                if isinf(values[p]) and bad_row < 0:
                    bad_row, bad_column = i, j
                p += 1
            ptr[i + 1] = p
    if bad_row >= 0:
        raise value_error(vocabulary.name_of(id_at(&column[bad_column], bad_row)),
                          number_at(&column[bad_column], bad_row), bad_row + 1)
    return 0


def assemble(Py_ssize_t n, columns, Vocabulary vocabulary):
    """Return (indptr, indices, values) of n rows.

    A column is ``(id, numbers)`` with NaN where absent, ``(ids, None)`` with one indicator id a row (0: absent), or
    ``(ids, numbers)`` with an id and a number a row. Infinite numbers raise, naming feature and row.
    """
    cdef Py_ssize_t i, j, m = len(columns), cells = 0
    cdef Column* column = <Column*> malloc((m + 1) * sizeof(Column))
    if column == NULL:
        raise MemoryError
    try:
        indptr = np.zeros(n + 1, dtype=np.int64)
        arrays = read_columns(n, columns, column) if n else []    # they stay alive to the end of the call
        with nogil:
            for j in range(m if n else 0):
                for i in range(n):
                    cells += is_present(&column[j], i)
        indices = np.empty(cells, dtype=np.int32)
        values = np.empty(cells)
        if n:
            write_cells(column, m, vocabulary, indptr, indices, values)
        return indptr, indices, values
    finally:
        free(column)

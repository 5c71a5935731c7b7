"""Columns to rows: the cells of a table in row order, absent ones left out."""

import numpy as np

from libc.math cimport isinf, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from varifold._engine.vocabulary cimport Vocabulary
from varifold._engine.reading cimport value_error


def assemble(Py_ssize_t n, columns, Vocabulary vocabulary):
    """(indptr, indices, values) of n rows.

    A column is ``(id, numbers)`` with NaN where absent, ``(ids, None)`` with one indicator id a row (0: absent), or
    ``(ids, numbers)`` with an id and a number a row. Infinite numbers raise, naming feature and row.
    """
    cdef Py_ssize_t m = len(columns), j, i
    cdef const int32_t** ids = <const int32_t**> malloc((m + 1) * sizeof(void*))
    cdef const double** nums = <const double**> malloc((m + 1) * sizeof(void*))
    cdef int32_t* fixed = <int32_t*> malloc((m + 1) * sizeof(int32_t))
    cdef const int32_t[::1] id_view
    cdef const double[::1] num_view
    cdef list held = []
    indptr = np.zeros(n + 1, dtype=np.int64)
    cdef int64_t[::1] ptr = indptr
    cdef int64_t p
    cdef int32_t[::1] out_idx
    cdef double[::1] out_val
    cdef Py_ssize_t bad_row = -1, bad_column = -1
    cdef double x
    cdef int32_t k
    if ids == NULL or nums == NULL or fixed == NULL:
        free(ids); free(nums); free(fixed)
        raise MemoryError
    try:
        for j in range(m):
            first, second = columns[j]
            ids[j] = NULL
            nums[j] = NULL
            fixed[j] = 0
            if isinstance(first, int):
                fixed[j] = first
            else:
                first = np.ascontiguousarray(first, dtype=np.int32)
                if len(first) != n:
                    raise ValueError("columns differ in length")
                held.append(first)
                id_view = first
                if n:
                    ids[j] = &id_view[0]
            if second is not None:
                second = np.ascontiguousarray(second, dtype=np.float64)
                if len(second) != n:
                    raise ValueError("columns differ in length")
                held.append(second)
                num_view = second
                if n:
                    nums[j] = &num_view[0]
        with nogil:
            for j in range(m):
                for i in range(n):
                    if (ids[j] == NULL or ids[j][i] != 0) and (nums[j] == NULL or not isnan(nums[j][i])):
                        ptr[i + 1] += 1
            for i in range(n):
                ptr[i + 1] += ptr[i]
        indices = np.empty(indptr[n], dtype=np.int32)
        values = np.empty(indptr[n])
        out_idx = indices
        out_val = values
        with nogil:
            for i in range(n):
                p = ptr[i]
                for j in range(m):
                    k = fixed[j] if ids[j] == NULL else ids[j][i]
                    if k == 0:
                        continue
                    x = 1.0 if nums[j] == NULL else nums[j][i]
                    if isnan(x):
                        continue
                    if isinf(x) and bad_row < 0:
                        bad_row = i
                        bad_column = j
                    out_idx[p] = k
                    out_val[p] = x
                    p += 1
        if bad_row >= 0:
            k = fixed[bad_column] if ids[bad_column] == NULL else ids[bad_column][bad_row]
            raise value_error(vocabulary.name_of(k), float(nums[bad_column][bad_row]), bad_row + 1)
        return indptr, indices, values
    finally:
        free(ids); free(nums); free(fixed)

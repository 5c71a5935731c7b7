from libc.stdint cimport int32_t, int64_t, uint64_t

cdef class Mask:
    """Mask of the columns that each row shows. A column is its index among the stream's columns; rows come in order."""
    cdef Py_ssize_t least       # minimum number of columns to show, if the row has as many
    cdef bint alike             # whether decisions are independent of the column
    cdef uint64_t seed

    # Decide row i of the block, which is row `row` of the stream: set one bit for each shown column below 64 * count.
    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil
    # List in `kept` which of the cells 0 .. n - 1 are shown and return their number; for rows that have few of many
    # columns. The position of the column of cell k is `id[k] - shift`. `kept` has capacity for all n.
    cdef Py_ssize_t cells(
        self, Py_ssize_t i, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef class Mask:
    """Which columns each row shows. A column is its place 0, 1, ... among those of the stream; rows come in order."""
    cdef Py_ssize_t least       # columns that are shown at least, as far as the row has them
    cdef bint alike             # whether the decision about a cell does not depend on its column
    cdef uint64_t seed

    # Row i of the block, number `row` of the stream: one bit for each column below 64 * count.
    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil
    # Lists in `kept` which of the cells 0 .. n - 1 are shown, and returns how many; for rows that have few of many
    # columns. The place of cell k is `id[k] - shift`. There is room for all n.
    cdef Py_ssize_t cells(
        self, Py_ssize_t i, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil

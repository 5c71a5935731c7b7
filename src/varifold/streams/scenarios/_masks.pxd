from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef class Mask:
    """Which columns a row shows. Columns are places 0, 1, ... among those of the stream; rows are asked in order."""
    cdef Py_ssize_t least       # columns that stay in every row that has them
    cdef bint alike             # whether all cells of a row are alike, whatever their columns
    cdef uint64_t seed

    # bits of the columns below 64 * count
    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil
    # one byte for each of these columns, for rows with few of many
    cdef void cells(self, Py_ssize_t i, int64_t row, const int32_t* place, Py_ssize_t n, uint8_t* out) noexcept nogil

from libc.stdint cimport int64_t


cdef class WeightHistory:
    cdef int width             # weights per row
    cdef double* weights       # [ROWS][width]
    cdef int64_t* step         # [ROWS]
    cdef int64_t count         # rows in use
    cdef int64_t every         # steps between two rows

    cdef double* next_row(self, int64_t step) noexcept nogil

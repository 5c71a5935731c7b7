from libc.stdint cimport int32_t


cdef inline void clear_slot(int32_t* columns, Py_ssize_t n, int32_t slot) noexcept nogil:
    """Set the slot of an evicted feature to -1 in a list of columns."""
    cdef Py_ssize_t j
    for j in range(n):
        if columns[j] == slot:
            columns[j] = -1


cdef class Overlap:
    """Rows in which old and new features were present together, as a triangular factor of bounded size."""
    cdef readonly Py_ssize_t inputs, outputs    # number of columns
    cdef readonly Py_ssize_t rank               # number of rows of the factor, at most one per input
    cdef readonly Py_ssize_t rows               # number of rows added
    cdef Py_ssize_t capacity_in, capacity_out   # allocated columns
    cdef readonly Py_ssize_t most               # maximum number of columns on a side
    cdef readonly bint full                     # the maximum was exceeded: no map
    cdef int32_t* input                         # slot of an input column; slot 0 is the constant, -1 evicted
    cdef int32_t* output
    cdef int32_t* lead                          # input column -> row that starts with it, -1 none
    cdef double* a                              # [rank][capacity_in]
    cdef double* y                              # [rank][capacity_out]
    cdef double* row_a                          # the row being added
    cdef double* row_y

    cdef void clear(self) noexcept nogil
    cdef int reserve(self, Py_ssize_t inputs, Py_ssize_t outputs) except -1 nogil
    cdef int widen(self, Py_ssize_t capacity_in, Py_ssize_t capacity_out) except -1 nogil
    cdef bint fits(self, Py_ssize_t inputs, Py_ssize_t outputs) noexcept nogil
    cdef int32_t add_input(self, int32_t slot, double first) noexcept nogil
    cdef int32_t add_output(self, int32_t slot) noexcept nogil
    cdef void blank(self) noexcept nogil
    cdef void add_row(self, double w) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil

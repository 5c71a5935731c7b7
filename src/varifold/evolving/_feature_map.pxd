from libc.stdint cimport int32_t


cdef class Overlap:
    """Rows in which old and new features were seen together, as a triangular factor of bounded size."""
    cdef readonly Py_ssize_t inputs, outputs    # columns held
    cdef readonly Py_ssize_t rank               # rows held, at most one an input
    cdef readonly Py_ssize_t rows               # rows taken in
    cdef Py_ssize_t room_in, room_out
    cdef readonly Py_ssize_t most               # columns there may be on a side
    cdef readonly bint full                     # more were asked for, or memory gave out: no map
    cdef int32_t* input                         # slot of an input column; slot 0 is the constant, -1 evicted
    cdef int32_t* output
    cdef int32_t* lead                          # input column -> row that starts with it, -1 none
    cdef double* a                              # [rank][room_in]
    cdef double* y                              # [rank][room_out]
    cdef double* row_a                          # the row being taken in
    cdef double* row_y

    cdef void release(self) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef void mark_evicted(self) noexcept nogil
    cdef bint widen(self, Py_ssize_t room_in, Py_ssize_t room_out) noexcept nogil
    cdef bint reserve(self, Py_ssize_t inputs, Py_ssize_t outputs) noexcept nogil
    cdef int32_t add_input(self, int32_t slot, double first) noexcept nogil
    cdef int32_t add_output(self, int32_t slot) noexcept nogil
    cdef void blank(self) noexcept nogil
    cdef void take(self, double w) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil


cdef class FeatureMap:
    """new -> old: base + sum over inputs of (value - mean) * matrix row."""
    cdef readonly Py_ssize_t inputs, outputs    # 0 outputs: no map
    cdef readonly double ridge
    cdef readonly bint spread                   # inputs measured in units of their spread in the overlap
    cdef int32_t* input
    cdef int32_t* output
    cdef double* mean                           # of an input; 0 without a constant
    cdef double* unit                           # spread of an input; 1 when not measured
    cdef double* base                           # of an output
    cdef double* matrix                         # [input][output]

    cdef void clear(self) noexcept nogil
    cdef bint solve(self, Overlap o) noexcept nogil
    cdef int reserve(self, Py_ssize_t inputs, Py_ssize_t outputs) noexcept nogil
    cdef bint least_squares(self, Overlap o, Py_ssize_t first, Py_ssize_t fixed, Py_ssize_t p) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil

from libc.stdint cimport int32_t, int64_t

cdef struct KeptRow:
    int32_t* slot      # ascending
    double* x
    Py_ssize_t n
    Py_ssize_t capacity    # allocated entries
    int y              # label and weight, for those who learn them
    double w


cdef class Rows:
    cdef readonly Py_ssize_t window    # rows kept
    cdef readonly Py_ssize_t widest    # entries kept of a row
    cdef int64_t taken                 # rows added so far
    cdef KeptRow* row

    cdef int reserve(self, KeptRow* r, Py_ssize_t n) except -1 nogil
    cdef int reserve_next(self, Py_ssize_t n) except -1 nogil
    cdef Py_ssize_t held(self) noexcept nogil
    cdef KeptRow* add(self, const int32_t* slot, const double* x, Py_ssize_t n) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil
    cdef const double* value(self, Py_ssize_t place, int32_t slot) noexcept nogil

from libc.stdint cimport int32_t, uint8_t

from varifold._engine.view cimport View

cdef enum:
    FIRST = 32             # instances kept
    FEWEST = 8             # targets that bounds need
    WIDEST = 4096          # entries of an instance; a wider one ends the warm-up

cdef struct Bounds:
    double centre, unit    # median, and third quartile of the distances from it; 0: no outliers

cdef struct Instance:
    Py_ssize_t capacity
    View view              # points into the three arrays
    int32_t* slots         # [2][capacity]: slots, columns
    double* values         # [2][capacity]: x, raw
    uint8_t* is_new        # [capacity]
    double y, learned, w   # the target, the one that was learned instead, and the sample weight


cdef class WarmUp:
    cdef Instance[FIRST] rows
    cdef Py_ssize_t count          # instances kept
    cdef Py_ssize_t checked        # of which were compared at the last time
    cdef bint over                 # no instance is kept any more

    cdef int reserve(self, Py_ssize_t i, Py_ssize_t capacity) noexcept nogil
    cdef void keep(self, View* v, double y, double learned, double w) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil
    cdef void end(self) noexcept nogil
    cdef Bounds bounds(self) noexcept nogil
    cdef bint differs(self) noexcept nogil


cdef double within_bounds(Bounds b, double y) noexcept nogil

from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold._engine.view cimport View

cdef enum:
    FIRST = 32             # instances kept
    FEWEST = 8             # targets from which bounds can be told
    WIDEST = 4096          # entries of an instance; a wider one ends the warm-up

cdef struct Bounds:
    double centre, unit    # the median, and the third quartile of the distances from it; unit 0: no target is an outlier

cdef struct Instance:
    Py_ssize_t room
    View view              # its pointers lead into the three blocks
    int32_t* slots         # [2][room]: slots, columns
    double* numbers        # [2][room]: x, raw
    uint8_t* is_new        # [room]
    double y, learned, w   # the target, what was learned for it, and its weight


cdef class FirstInstances:
    cdef Instance[FIRST] rows
    cdef Py_ssize_t count          # instances kept
    cdef Py_ssize_t checked        # of them, at the last comparison
    cdef bint over                 # nothing is kept any more

    cdef int reserve(self, Py_ssize_t i, Py_ssize_t room) noexcept nogil
    cdef void keep(self, View* v, double y, double learned, double w) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil
    cdef void end(self) noexcept nogil
    cdef Bounds bounds(self) noexcept nogil
    cdef bint differs(self) noexcept nogil


cdef double moved(Bounds b, double y) noexcept nogil

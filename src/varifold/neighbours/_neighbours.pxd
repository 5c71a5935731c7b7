from libc.stdint cimport int32_t, int64_t

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

cdef struct Row:
    int32_t* slot
    double* x
    Py_ssize_t n
    Py_ssize_t room
    int y
    double w

cdef class NeighboursModel(Model):
    cdef readonly int k
    cdef readonly Py_ssize_t window
    cdef readonly Py_ssize_t widest    # entries of an instance that are kept and compared
    cdef Row* row                      # ring of the last instances
    cdef int64_t taken                 # instances put in so far
    cdef double* counts                # weight by class
    cdef Py_ssize_t room               # classes there is room for
    cdef double* dense                 # scratch [capacity]: the instance by slot, NaN elsewhere

    cdef int make_row(self, Row* r, Py_ssize_t n) noexcept nogil
    cdef double far(self, Row* r) noexcept nogil

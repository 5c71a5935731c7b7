from libc.stdint cimport int32_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View


cdef class LeaveOutModel(Model):
    cdef int32_t* picked         # scratch [slot]: entries to explain
    cdef int32_t* part_slot      # scratch [slot]: an instance without one feature
    cdef double* part_x
    cdef double* part_raw

    cdef Py_ssize_t pick(self, View* v) noexcept nogil
    cdef double without(self, View* v, Py_ssize_t i) noexcept nogil

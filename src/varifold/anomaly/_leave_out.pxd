from libc.stdint cimport int32_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View


cdef class LeaveOutModel(Model):
    cdef int32_t* part_slot      # scratch [slot]: an instance without one feature
    cdef double* part_x
    cdef double* part_raw

    cdef double without(self, View* v, Py_ssize_t i) noexcept nogil

from libc.stdint cimport int32_t

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

cdef class PresenceModel(Model):
    cdef readonly Py_ssize_t max_columns   # with more known it answers by the class frequencies
    cdef double* met                       # [slot][class]: weight of the class's instances that held the column
    cdef double* since                     # [slot][class]: weight of the class when the column was first met
    cdef double* counts                    # weight by class
    cdef Py_ssize_t room                   # classes there is room for

    cdef int fit(self, Py_ssize_t capacity, Py_ssize_t room) except -1

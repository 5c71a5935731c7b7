from libc.stdint cimport int32_t

from varifold._engine.intake cimport Intake


cdef class Admission(Intake):
    cdef int check_pending(self, list pending) except -1
    cdef int make_ready(self, list pending, int y) except -1
    cdef int admit(self, list pending) except -1
    cdef int admit_row(self, const int32_t* idx, const double* val, Py_ssize_t m, int y) except -1 with gil
    cdef int make_room(self, Py_ssize_t needed) except -1
    cdef int drop(self, int32_t slot) except -1
    cdef int apply_evictions(self) except -1 with gil

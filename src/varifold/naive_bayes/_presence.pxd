from libc.stdint cimport int32_t

from varifold._engine.model cimport Model

cdef class PresenceModel(Model):
    cdef readonly Py_ssize_t max_columns   # with more of them it answers by the class frequencies
    cdef double* present                   # [slot][class]: weight of the class's instances that had the column
    cdef double* before                    # [slot][class]: weight of the class before the column was first seen
    cdef double* counts                    # [class]: weight learned
    cdef double* logs                      # scratch [slot][class][absent, present]: logarithms of rates
    cdef Py_ssize_t stride                 # room for classes
    cdef int32_t* columns                  # slots of the columns seen, ascending
    cdef Py_ssize_t n_columns

    cdef void forget_logs(self, int32_t slot) noexcept nogil
    cdef Py_ssize_t place_of(self, int32_t slot) noexcept nogil
    cdef void add_column(self, int32_t slot) noexcept nogil

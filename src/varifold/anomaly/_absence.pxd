from libc.stdint cimport int32_t, int64_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View


cdef class AbsenceModel(Model):
    cdef double* share       # [slot] of instances with the column, as of the last one that had it
    cdef int64_t* first      # [slot] number of the first instance with the column, from 1; 0: none
    cdef int64_t* last       # [slot] and of the last one
    cdef int64_t* learned    # instances
    cdef double* rare        # over instances, of the surprise that a column is present: its mean; its variance within one
    cdef int32_t* before     # scratch [slot]: columns of the last instance
    cdef Py_ssize_t n_before

    cdef double rarity(self, View* v) noexcept nogil
    cdef bint has_rare_columns(self) noexcept nogil
    cdef double presence(self, int32_t slot) noexcept nogil
    cdef double surprise(self, int32_t slot, double* absence) noexcept nogil
    cdef void learn_rarity(self, View* v) noexcept nogil
    cdef dict present_parts(self, View* v)

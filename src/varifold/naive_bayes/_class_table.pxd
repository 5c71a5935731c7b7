from libc.stdint cimport int32_t

from varifold._engine.models.model cimport Model

cdef class ClassTable(Model):
    cdef readonly double prior    # pseudo-observations added to every class
    cdef double* table            # [slot][class][width]
    cdef double* counts           # [class]: weight learned
    cdef Py_ssize_t width         # statistics per slot and class
    cdef Py_ssize_t stride        # statistics per slot: reserved classes times width

    cdef int declare_table(self, Py_ssize_t width, double prior) except -1
    cdef double total_weight(self) noexcept nogil
    cdef double log_prior(self, int c, double total) noexcept nogil


cdef class PresenceTable(ClassTable):
    cdef double presence(self, int32_t slot) noexcept nogil
    cdef double chi2(self, int32_t slot) noexcept nogil


cdef inline double* row_of(ClassTable t, int32_t slot) noexcept nogil:
    """Return the statistics of a slot, class after class."""
    return t.table + slot * t.stride

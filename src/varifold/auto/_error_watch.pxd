from libc.stdint cimport int64_t

from varifold._numeric.adwin cimport Adwin

cdef enum:
    MOST_RISES = 32      # records kept

cdef struct Rise:
    int64_t step         # at which it was detected
    int64_t since        # step at which it began, as estimated by the detector
    double before        # error until then
    double error         # error since then


cdef class ErrorWatch:
    cdef Adwin errors
    cdef Rise[MOST_RISES] rise     # a ring
    cdef int64_t count             # rises so far

    cdef void learn(self, int64_t step, bint wrong) noexcept nogil

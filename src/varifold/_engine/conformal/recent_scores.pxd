from libc.stdint cimport int64_t

from varifold._engine.state cimport State


cdef enum:
    MOST_SCORES = 1000


cdef class RecentScores:
    cdef State arrays
    cdef int64_t* place              # scores held, position of the next one
    cdef double* ring                # scores in order of arrival
    cdef double* ascending           # scratch: the same, sorted

    cdef double share_from(self, double score) noexcept nogil
    cdef double share_beyond(self, double score) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef void keep(self, double score) noexcept nogil

from varifold._engine.conformal.recent_scores cimport RecentScores
from varifold._engine.state cimport State


cdef class Alarms:
    cdef RecentScores recent
    cdef State arrays
    cdef double* level       # [rate] conformal p-value up to which there is an alarm

    cdef double p_value(self, double score) noexcept nogil
    cdef void observe(self, double score) noexcept nogil

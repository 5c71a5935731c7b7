from varifold._engine.models.regression cimport RegressionModel
from varifold._engine.view cimport View


cdef class TrackingRegression(RegressionModel):
    cdef double* weight            # [slot]
    cdef double* level             # [1]: current level of the targets
    cdef double level_rate, rate

    cdef double score(self, View* v) noexcept nogil

cimport cython

from varifold._engine.models.regression cimport RegressionModel, TargetStatistics
from varifold._engine.targets.target cimport Target


@cython.final
cdef class RealTarget(Target):
    cdef readonly TargetStatistics statistics    # of the targets learned
    cdef RegressionModel regression              # the model, by its own type
    # the instance at hand
    cdef double truth
    cdef double predicted
    # the block at hand
    cdef const double* truths                    # [row]
    cdef double* out
    cdef double* out_bounds                      # [row][coverage][low, high]

    cdef double mean_or_model(self) noexcept nogil
    cdef void bound(self) noexcept nogil

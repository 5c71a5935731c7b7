from varifold._engine.models.regression cimport RegressionModel, TargetStatistics
from varifold.evolving._evolving cimport EvolvingModel


cdef class EvolvingRegression(EvolvingModel):
    cdef TargetStatistics target
    cdef double wanted      # current target, as a deviation from the mean


cdef class FESLRegression(RegressionModel):
    cdef readonly EvolvingRegression evolving

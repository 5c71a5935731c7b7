from varifold._engine.regression_model cimport RegressionModel, Target
from varifold.evolving._evolving cimport EvolvingModel


cdef class EvolvingNumbers(EvolvingModel):
    cdef Target target
    cdef double wanted      # the target that is learned, as a deviation from the mean


cdef class FESLRegression(RegressionModel):
    cdef readonly EvolvingNumbers evolving

from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.regression_model cimport RegressionModel


cdef class RuleRegression(RegressionModel):
    cdef readonly BinaryRule rule    # its one problem scores the deviation from the target's mean

    cdef int hold(self, BinaryRule rule) except -1

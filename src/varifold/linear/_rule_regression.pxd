from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.models.regression cimport RegressionModel


cdef class RuleRegression(RegressionModel):
    cdef readonly BinaryRule rule    # its one problem scores the deviation from the target's mean

    cdef int hold_rule(self, BinaryRule rule) except -1

from varifold.linear._arow cimport AROWRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class AROWRegression(RuleRegression):
    cdef AROWRule arow    # the same rule, as its own type

from varifold.linear._additive cimport AdditiveRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class AdditiveRegression(RuleRegression):
    cdef AdditiveRule additive    # the same rule, as its own type

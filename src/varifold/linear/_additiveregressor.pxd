from varifold.linear._additive cimport AdditiveRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class AdditiveRegression(RuleRegression):
    cdef AdditiveRule additive    # the rule, of its own type

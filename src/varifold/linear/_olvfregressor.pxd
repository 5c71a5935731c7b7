from varifold.linear._olvf cimport OLVFRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class OLVFRegression(RuleRegression):
    cdef OLVFRule olvf             # the rule, of its own type
    cdef readonly double epsilon   # errors up to so many deviations of the target cost nothing

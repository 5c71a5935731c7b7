from varifold.linear._olvf cimport OLVFRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class OLVFRegression(RuleRegression):
    cdef OLVFRule olvf             # the same rule, as its own type
    cdef readonly double epsilon   # errors up to this many deviations of the target have no loss

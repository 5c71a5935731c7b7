"""Gradient descent on squared errors with the rule of OGD: w += 2 e x / (c sqrt(t)), at most to where e vanishes.

The first steps go all the way, so that it follows a target from the start; an expert of the default regressor.
"""

from varifold._engine.models.one_vs_rest cimport score_one
from varifold._engine.models.regression cimport scaled_error
from varifold._engine.view cimport View
from varifold.linear._ogd cimport OGDRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class OGDRegression(RuleRegression):
    """Rule of OGD, updated by the error itself instead of a logistic loss."""

    cdef OGDRule ogd    # the same rule, as its own type

    def __cinit__(self, OGDRule rule not None):
        self.hold_rule(rule)
        self.ogd = rule

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        cdef double error = scaled_error(self.target, y - self.target.mean - score_one(self.ogd, v, 0))
        self.ogd.descend(v, 0, error * self.target.deviation, w)

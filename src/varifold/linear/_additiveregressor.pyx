"""Additive regression: diagonal AROW for regression over each feature's scaled value and its quantile bin."""

from varifold._engine.models.regression cimport scaled_error
from varifold._engine.view cimport View
from varifold.linear._additive cimport AdditiveRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class AdditiveRegression(RuleRegression):
    """Rule of Additive, updated by the error itself instead of a hinge loss."""

    cdef AdditiveRule additive    # the same rule, as its own type

    def __cinit__(self, AdditiveRule rule not None):
        self.hold_rule(rule)
        self.additive = rule

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        cdef double score, variance, error, r = self.additive.r / w
        self.additive.sample_values(v)
        self.additive.measure(v, 0, &score, &variance)
        error = scaled_error(self.target, y - self.target.mean - score) * self.target.deviation
        self.additive.move(0, error / (variance + r), r)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        self.additive.parts(v, 0, out)

"""OLVF for regression: the steps of OLVF with the epsilon-insensitive loss in place of the hinge loss.

With e = (y - mean - w.x) / deviation the loss is l = max(0, |e| - epsilon), the step of the weights goes in the
direction of e, and its size follows eqs. 12 to 15. A prediction counts as correct for the feature-set model if it is at
least as near as the mean of the targets, so that the confidence in a feature set is that it improves on the mean.
"""

from libc.math cimport fabs

from varifold._engine.models.regression cimport scaled_error
from varifold._engine.view cimport View
from varifold.linear._olvf cimport Norms, OLVFRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class OLVFRegression(RuleRegression):
    """Rule of OLVF with weights in the target's units and losses in deviations of the target."""

    cdef OLVFRule olvf             # the same rule, as its own type
    cdef readonly double epsilon   # errors up to this many deviations of the target have no loss

    def __cinit__(self, OLVFRule rule not None, double epsilon):
        self.hold_rule(rule)
        self.olvf = rule
        self.epsilon = epsilon

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        cdef double score, bar, from_mean = y - self.target.mean, residual, error
        cdef bint right
        cdef Norms norms
        self.olvf.measure(v, 0, &score, &bar, &norms)
        residual = from_mean - score
        right = fabs(residual) <= fabs(from_mean)
        error = scaled_error(self.target, residual)
        self.olvf.move(v, 0, bar, &norms, right, 1.0 if error > 0.0 else -1.0, fabs(error) - self.epsilon,
                       self.target.deviation, w)

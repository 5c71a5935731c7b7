"""AROW for regression (Vaits, Crammer 2011): a Gaussian N(mu, Sigma) over weights, moved by the error of each prediction.

With e = y - mean - mu.x and beta = 1 / (x' Sigma x + r), r being the parameter over the sample weight:
mu += beta e Sigma x and Sigma -= beta Sigma x x' Sigma. The diagonal form adds x_i^2 / r to each precision instead.
"""

from varifold._engine.models.one_vs_rest cimport score_one
from varifold._engine.models.regression cimport scaled_error
from varifold._engine.view cimport View
from varifold.linear._arow cimport AROWRule
from varifold.linear._rule_regression cimport RuleRegression


cdef class AROWRegression(RuleRegression):
    """Rule of AROW, updated by the error itself instead of a hinge loss."""

    cdef AROWRule arow    # the same rule, as its own type

    def __cinit__(self, AROWRule rule not None):
        self.hold_rule(rule)
        self.arow = rule

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        cdef double error
        self.arow.keep_dense(v)
        error = scaled_error(self.target, y - self.target.mean - score_one(self.arow, v, 0))
        self.arow.correct(v, 0, error * self.target.deviation, w)

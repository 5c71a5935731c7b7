"""Passive-aggressive learning (Crammer et al. 2006): w += tau y x, with tau as in PA, PA-I or PA-II."""

import numpy as np

from varifold._engine.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View

from varifold._engine.merging import APPROXIMATE, HINGE, settle_intercept, weighted_mean

MODES = {"pa": PA0, "pa1": PA1, "pa2": PA2}


cdef class PARule(BinaryRule):
    """Per slot and problem: the weight."""

    def __cinit__(self, str mode, double C):
        self.declare_rule(1, 0)
        self.linear = True
        self.mode = MODES[mode]
        self.C = C

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """One step where the margin is below 1; returns the score before it."""
        cdef double f = 0.0, norm = 0.0, step
        cdef Py_ssize_t i
        for i in range(v.n):
            f += at(self, v.slot[i], c)[0] * v.x[i]
            norm += v.x[i] * v.x[i]
        if y * f >= 1.0:
            return f
        step = y * step_size(self.mode, self.C, 1.0 - y * f, norm, w)
        for i in range(v.n):
            at(self, v.slot[i], c)[0] += step * v.x[i]
        return f

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """The mean weight of those that saw the feature."""
        states = [part.by_slot_problem("state") for part in parts]
        for part, state in zip(parts, states):
            part.rescaled(state[..., 0])
        merged = weighted_mean(parts, states)
        settle_intercept(parts, merged[..., 0], HINGE)
        return {"state": merged,
                "shared": np.zeros((parts[0].union.problems, 0))}

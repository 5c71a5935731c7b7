"""Passive-aggressive learning (Crammer et al. 2006): w += tau y x, with tau as in PA, PA-I or PA-II."""

import numpy as np

from libc.string cimport memcpy, memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.rows cimport add_rows, add_to_rows
from varifold.linear._problems cimport TOGETHER

from varifold._engine.merging import APPROXIMATE, HINGE, settle_intercept, weighted_mean

MODES = {"pa": PA0, "pa1": PA1, "pa2": PA2}


cdef void learn_problems(PARule rule, View* v, int y, double w, double* scores) noexcept nogil:
    """update() of every problem, with the scores before it, unless NULL; the weights of a slot stand side by side."""
    cdef double f[TOGETHER]
    cdef double step[TOGETHER]
    cdef double norm = 0.0, target
    cdef Py_ssize_t i, c, m, first = 0
    for i in range(v.n):
        norm += v.x[i] * v.x[i]
    while first < rule.problems:
        m = min(<Py_ssize_t> TOGETHER, rule.problems - first)
        memset(f, 0, m * sizeof(double))
        add_rows(f, rule.state + first, rule.stride, m, v.n, v.slot, v.x)
        for c in range(m):
            target = 1.0 if y == first + c else -1.0
            step[c] = 0.0
            if not target * f[c] >= 1.0:
                step[c] = target * step_size(rule.mode, rule.C, 1.0 - target * f[c], norm, w)
        add_to_rows(rule.state + first, rule.stride, m, v.n, v.slot, v.x, step)
        if scores != NULL:
            memcpy(scores + first, f, m * sizeof(double))
        first += m


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

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        learn_problems(self, v, y, w, scores)
        return False

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

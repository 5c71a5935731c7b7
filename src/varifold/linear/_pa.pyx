"""Passive-aggressive learning (Crammer et al. 2006): w += tau y x, with tau as in PA, PA-I or PA-II."""

import numpy as np

from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, BinaryRule
from varifold._engine.view cimport View
from varifold._numeric.rows cimport add_rows, add_to_rows
from varifold._numeric.wide cimport inlined, wide

from varifold._engine.merging import APPROXIMATE, HINGE, average

MODES = {"pa": PA0, "pa1": PA1, "pa2": PA2}


cdef inline inlined learn_problems(PARule rule, View* v, int first, int m, const double* y, double w,
                                   double* f) noexcept nogil:
    """Update m problems: w += tau y x where the margin y w.x is below 1."""
    cdef double step[TOGETHER]
    cdef double norm = 0.0
    cdef double* weight = rule.state + first
    cdef Py_ssize_t i
    cdef int c, wrong = 0
    memset(f, 0, m * sizeof(double))
    add_rows(f, weight, rule.stride, m, v.n, v.slot, v.x)
    for i in range(v.n):
        norm += v.x[i] * v.x[i]
    for c in range(m):
        step[c] = 0.0
        if not y[c] * f[c] >= 1.0:
            step[c] = y[c] * step_size(rule.mode, rule.C, 1.0 - y[c] * f[c], norm, w)
            wrong += 1
    if wrong:
        add_to_rows(weight, rule.stride, m, v.n, v.slot, v.x, step)


cdef wide learn_many(PARule rule, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
    learn_problems(rule, v, first, m, y, w, f)


cdef class PARule(BinaryRule):
    """Per slot and problem: the weight."""

    def __cinit__(self, str mode, double C):
        self.declare_rule(1, 0)
        self.mode = MODES[mode]
        self.C = C

    cdef int batch(self, View* v) noexcept nogil:
        return TOGETHER

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        cdef double score  # a local variable: the compiler knows that no weight is stored there
        if m == 1:
            learn_problems(self, v, first, 1, y, w, &score)
            f[0] = score
        else:
            learn_many(self, v, first, m, y, w, f)

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """Average the weights of the models that saw the feature."""
        return {"state": average(parts, [part.by_slot_problem("state") for part in parts], HINGE),
                "shared": np.zeros((parts[0].union.problems, 0))}

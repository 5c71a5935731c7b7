"""OLSF (Zhang et al. 2016): passive-aggressive steps, projection on an l1 ball, truncation to a share of the features.

A round sets w += tau y x, then w *= min(1, lam / |w|_1), then keeps the share B of largest weights.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, at
from varifold._engine.view cimport View
from varifold._numeric.rows cimport add_rows
from varifold._numeric.wide cimport inlined, wide
from varifold.linear._pa cimport PA0, PA1, PA2, step_size
from varifold.linear._truncated cimport TruncatedRule

from varifold._engine.merging import APPROXIMATE, HINGE, average

MODES = {"pa": PA0, "pa1": PA1, "pa2": PA2}

# state per problem
cdef enum:
    SCALE = 0     # factor on every stored weight: the projection changes this number only
    NORM = 1      # sum of |w|

cdef enum:
    FEW = 8    # if fewer than one in 8 problems has a loss, update those one by one


cdef class OLSFRule(TruncatedRule)    # used by the functions before its definition


cdef inline inlined move_problems(OLSFRule rule, View* v, int first, int m, const double* step,
                                  bint sparse) noexcept nogil:
    """Add step[c] x to the weights of m problems, or of a sparse one, and update NORM."""
    cdef double before[TOGETHER]
    cdef double after[TOGETHER]
    cdef double* g = rule.shared + first * rule.globals
    cdef double* s
    cdef double x
    cdef Py_ssize_t i
    cdef int c
    memset(before, 0, m * sizeof(double))
    memset(after, 0, m * sizeof(double))
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        x = v.x[i]
        for c in range(m):
            before[c] += fabs(s[c])
            s[c] += step[c] * x
            after[c] += fabs(s[c])
        if sparse:
            rule.update_heap(v.slot[i], first)
    for c in range(m):
        g[c * rule.globals + NORM] += (after[c] - before[c]) * g[c * rule.globals + SCALE]


cdef wide move_many(OLSFRule rule, View* v, int first, int m, const double* step) noexcept nogil:
    move_problems(rule, v, first, m, step, False)


cdef inline inlined learn_problems(OLSFRule rule, View* v, int first, int m, const double* y, double w,
                                   double* f) noexcept nogil:
    """Update m problems, or a sparse one: step, projection, truncation. If few have a loss, update one by one."""
    cdef double step[TOGETHER]
    cdef double* g = rule.shared + first * rule.globals
    cdef double norm = 0.0
    cdef Py_ssize_t i
    cdef int c, wrong = 0
    memset(f, 0, m * sizeof(double))
    add_rows(f, rule.state + first, rule.stride, m, v.n, v.slot, v.x)
    for i in range(v.n):
        norm += v.x[i] * v.x[i]
    for c in range(m):
        f[c] *= g[c * rule.globals + SCALE]
        step[c] = 0.0
        if y[c] * f[c] < 1.0:
            step[c] = y[c] * step_size(rule.mode, rule.C, 1.0 - y[c] * f[c], norm, w) / g[c * rule.globals + SCALE]
            wrong += 1
    if m > 1 and FEW * wrong >= m:
        move_many(rule, v, first, m, step)
    elif wrong:
        for c in range(m):
            if step[c] != 0.0:
                move_problems(rule, v, first + c, 1, step + c, rule.sparse)
    for c in range(m):
        rule.project(first + c)
    if rule.sparse:
        rule.keep_largest(<Py_ssize_t> (rule.B * v.known), first)


cdef wide learn_many(OLSFRule rule, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
    learn_problems(rule, v, first, m, y, w, f)


cdef class OLSFRule(TruncatedRule):
    """Per slot and problem: the weight, over SCALE."""

    cdef readonly int mode
    cdef readonly double C, lam, B

    def __cinit__(self, str mode, double C, double lam, double B):
        self.scale = SCALE
        self.declare_rule(1, 2)
        self.mode = MODES[mode]
        self.C = C
        self.lam = lam
        self.B = B
        self.sparse = B < 1.0

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        """Subtract a weight from the norm and set it to zero."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s = at(self, slot, c)
        g[NORM] -= fabs(s[0]) * g[SCALE]
        s[0] = 0.0

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        cdef double score  # a local variable: the compiler knows that no weight is stored there
        if m == 1:
            learn_problems(self, v, first, 1, y, w, &score)
            f[0] = score
        else:
            learn_many(self, v, first, m, y, w, f)

    cdef void project(self, int c) noexcept nogil:
        """Scale the weights into the l1 ball."""
        cdef double* g = self.shared + c * self.globals
        if g[NORM] > self.lam:
            self.scale_weights(c, self.lam / g[NORM])
            g[NORM] = self.lam

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """Average the weights of the models that saw the feature; the next step projects and truncates again."""
        states = [part.by_slot_problem("state") * part.by_problem("shared", [1.0, 0.0])[:, :1] for part in parts]
        merged = average(parts, states, HINGE)
        norm = np.abs(merged[..., 0]).sum(axis=0)
        return {"state": merged, "shared": np.stack([np.ones_like(norm), norm], axis=-1)}

"""FOBOS (Duchi, Singer 2009): a gradient step of rate eta_t = eta / sqrt(t), then every weight shrunk by eta_t lam.

The weights of absent features are not touched: what all rounds since their last one shrink them by is applied when
they are next needed.
"""

import numpy as np

from libc.math cimport copysign, fabs, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoids
from varifold._numeric.wide cimport inlined, wide

from varifold._engine.merging import APPROXIMATE, LOGISTIC, average

# state per problem
cdef enum:
    T = 0        # instances learned
    SHRUNK = 1   # sum of all thresholds so far


cdef inline double shrink(double w, double by) noexcept nogil:
    """Return sign(w) max(0, |w| - by)."""
    cdef double left = fabs(w) - by
    return copysign(left if left > 0.0 else 0.0, w)


cdef class FOBOSRule(BinaryRule)    # used by the functions before its definition


cdef inline inlined weigh_problems(FOBOSRule rule, View* v, int first, int m, double* f) noexcept nogil:
    """Compute the scores of m problems with all shrinkage applied, except to the intercept, which comes first."""
    cdef double total[TOGETHER]
    cdef double* s
    cdef double x
    cdef Py_ssize_t i = 0, plane = rule.plane
    cdef int c
    memset(f, 0, m * sizeof(double))
    for c in range(m):
        total[c] = rule.shared[(first + c) * 2 + SHRUNK]
    if v.n and v.slot[0] == 0:
        for c in range(m):
            f[c] = rule.state[first + c] * v.x[0]
        i = 1
    while i < v.n:
        s = rule.state + (v.slot[i] * rule.stride + first)
        x = v.x[i]
        for c in range(m):
            f[c] += shrink(s[c], total[c] - s[plane + c]) * x
        i += 1


cdef inline inlined learn_problems(FOBOSRule rule, View* v, int first, int m, const double* y, double w,
                                   double* f) noexcept nogil:
    """Update m problems: a gradient step of rate eta_t, then the proximal step (eqs. 2, 3 and 19 of the paper)."""
    cdef double step[TOGETHER]      # multiplied by the value: the gradient step
    cdef double by[TOGETHER]        # shrinkage of this round
    cdef double before[TOGETHER]    # SHRUNK before the round
    cdef double after[TOGETHER]     # SHRUNK after the round
    cdef double eta[TOGETHER]
    cdef double margin[TOGETHER]
    cdef double* g = rule.shared + first * 2
    cdef double* s
    cdef double x
    cdef Py_ssize_t i = 0, plane = rule.plane
    cdef int c
    weigh_problems(rule, v, first, m, f)
    for c in range(m):
        g[2 * c + T] += 1.0
        eta[c] = rule.eta / sqrt(g[2 * c + T])
        by[c] = eta[c] * rule.lam
        before[c] = g[2 * c + SHRUNK]
        after[c] = before[c] + by[c]
        g[2 * c + SHRUNK] = after[c]
        margin[c] = -y[c] * f[c]
    if rule.hinge:
        for c in range(m):
            step[c] = eta[c] * w * y[c] if -margin[c] < 1.0 else 0.0
    else:
        sigmoids(m, margin, step)
        for c in range(m):
            step[c] = eta[c] * w * y[c] * step[c]
    if v.n and v.slot[0] == 0:
        for c in range(m):
            rule.state[first + c] += step[c] * v.x[0]
        i = 1
    while i < v.n:
        s = rule.state + (v.slot[i] * rule.stride + first)
        x = v.x[i]
        for c in range(m):
            s[c] = shrink(shrink(s[c], before[c] - s[plane + c]) + step[c] * x, by[c])
            s[plane + c] = after[c]
        i += 1


cdef wide weigh_many(FOBOSRule rule, View* v, int first, int m, double* f) noexcept nogil:
    weigh_problems(rule, v, first, m, f)


cdef wide learn_many(FOBOSRule rule, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
    learn_problems(rule, v, first, m, y, w, f)


cdef class FOBOSRule(BinaryRule):
    """Per slot and problem: the weight when last updated, and SHRUNK then. The intercept is not shrunk."""

    cdef readonly double eta, lam
    cdef readonly bint hinge

    def __cinit__(self, double eta, double lam, bint hinge):
        self.declare_rule(2, 2)
        self.eta = eta
        self.lam = lam
        self.hinge = hinge

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        cdef double* s = at(self, slot, c)
        return shrink(s[0], self.shared[c * 2 + SHRUNK] - s[self.plane]) if slot != 0 else s[0]

    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil:
        cdef double score
        if m == 1:
            weigh_problems(self, v, first, 1, &score)
            f[0] = score
        else:
            weigh_many(self, v, first, m, f)

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
        """Average the current weights, with all shrinkage applied; sum T."""
        shared = np.stack([part.by_problem("shared", [0.0, 0.0]) for part in parts])
        states = []
        for part, g in zip(parts, shared):
            state = part.by_slot_problem("state")
            due = g[:, SHRUNK] - state[..., 1]
            due[0] = 0.0
            state[..., 0] = np.copysign(np.maximum(np.abs(state[..., 0]) - due, 0.0), state[..., 0])
            states.append(state)
        merged = average(parts, states, LOGISTIC)
        shrunk = shared[..., SHRUNK].max(axis=0)
        merged[..., 1] = shrunk
        return {"state": merged, "shared": np.stack([shared[..., T].sum(axis=0), shrunk], axis=-1)}

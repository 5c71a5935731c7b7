"""FTRL-Proximal (McMahan et al. 2013) on the logistic loss, with a learning rate per coordinate."""

import numpy as np

from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, BinaryRule, at, dot
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoids
from varifold._numeric.rows cimport add_rows
from varifold._numeric.wide cimport inlined, wide

from varifold._engine.merging import APPROXIMATE, LOGISTIC, settle_intercept


cdef inline inlined slopes_of(FTRLProximalRule rule, View* v, int first, int m, const double* y, double w, double* f,
                              double* slope) noexcept nogil:
    """Compute the scores of m problems and the derivatives -y sigmoid(-y f) of their losses, times the weight."""
    cdef double margin[TOGETHER]
    cdef int c
    memset(f, 0, m * sizeof(double))
    add_rows(f, rule.state + 2 * rule.plane + first, rule.stride, m, v.n, v.slot, v.x)
    for c in range(m):
        margin[c] = -y[c] * f[c]
    sigmoids(m, margin, slope)
    for c in range(m):
        slope[c] = -w * y[c] * slope[c]


cdef wide weigh_many(FTRLProximalRule rule, View* v, int first, int m, double* f) noexcept nogil:
    memset(f, 0, m * sizeof(double))
    add_rows(f, rule.state + 2 * rule.plane + first, rule.stride, m, v.n, v.slot, v.x)


cdef wide learn_many(FTRLProximalRule rule, View* v, int first, int m, const double* y, double w,
                     double* f) noexcept nogil:
    """Update m problems whose coordinates are contiguous."""
    cdef double slope[TOGETHER]
    cdef double gradient[TOGETHER]
    cdef double* s
    cdef Py_ssize_t i, plane = rule.plane
    cdef int c
    slopes_of(rule, v, first, m, y, w, f, slope)
    for i in range(v.n):
        if v.slot[i] != 0 and v.x[i] == 0.0:
            continue  # a value of 0 has no gradient
        for c in range(m):
            gradient[c] = slope[c] * v.x[i]
        s = rule.state + (v.slot[i] * rule.stride + first)
        proximal_step(m, s, s + plane, s + 2 * plane, gradient, &rule.penalty, rule.penalty.l1 if v.slot[i] else 0.0)


cdef inline void learn_one(FTRLProximalRule rule, View* v, int c, const double* y, double w, double* f) noexcept nogil:
    """Update one problem whose coordinates are not contiguous: gather them in strips."""
    cdef double* state = rule.state + c
    cdef Py_ssize_t i = 0, m, stride = rule.stride, plane = rule.plane
    cdef Penalty* p = &rule.penalty
    cdef double* moved[STRIP]
    cdef double gradient[STRIP]
    cdef double slope
    slopes_of(rule, v, c, 1, y, w, f, &slope)
    if v.n > 0 and v.slot[0] == 0:
        gradient[0] = slope * v.x[0]
        proximal_step(1, state, state + plane, state + 2 * plane, gradient, p, 0.0)
        i = 1
    while i < v.n:
        m = 0
        while i < v.n and m < STRIP:
            moved[m] = state + v.slot[i] * stride
            gradient[m] = slope * v.x[i]
            m += v.x[i] != 0.0  # a value of 0 has no gradient
            i += 1
        step_scattered(m, moved, plane, gradient, p, p.l1)


cdef class FTRLProximalRule(BinaryRule):
    """Per slot and problem: z, root and weight. The intercept has no L1 penalty."""

    def __cinit__(self, double alpha, double beta, double L1, double L2):
        self.declare_rule(3, 0)
        self.penalty.slowness = 1.0 / alpha
        self.penalty.beta = beta
        self.penalty.l1 = L1
        self.penalty.l2 = L2

    cdef void negate(self, int c) noexcept nogil:
        cdef Py_ssize_t slot
        cdef double* s
        for slot in range(self.capacity):
            s = at(self, <int32_t> slot, c)
            s[0] = 0.0 - s[0]
            s[2 * self.plane] = 0.0 - s[2 * self.plane]

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return at(self, slot, c)[2 * self.plane]

    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil:
        if m == 1:
            f[0] = dot(v, self.state + 2 * self.plane + first, self.stride)
        else:
            weigh_many(self, v, first, m, f)

    cdef int batch(self, View* v) noexcept nogil:
        return TOGETHER

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        if m == 1:
            learn_one(self, v, first, y, w, f)
        else:
            learn_many(self, v, first, m, y, w, f)

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """Sum the squared gradients; average the weights by curvature, and set z to match the weight.

        The curvature that a learner gained is root / alpha. Where the merged weight is 0, z is the mean.
        """
        states = np.stack([part.by_slot_problem("state", (0, 2)) for part in parts])
        z, root, w = np.moveaxis(states, -1, 0)
        for part, weights in zip(parts, w):
            part.rescaled(weights)
        gained = root.sum(axis=0)
        share = np.divide(root, gained, out=np.zeros_like(root), where=gained > 0.0)
        merged = np.zeros(states.shape[1:])
        merged[..., 2] = (share * w).sum(axis=0)
        settle_intercept(parts, merged[..., 2], LOGISTIC)
        merged[..., 1] = np.sqrt((root * root).sum(axis=0))
        l1 = np.full(merged.shape[:2], self.penalty.l1)
        l1[0] = 0.0
        curvature = (self.penalty.beta + merged[..., 1]) * self.penalty.slowness + self.penalty.l2
        led_to = -merged[..., 2] * curvature - np.sign(merged[..., 2]) * l1
        merged[..., 0] = np.where(merged[..., 2] != 0.0, led_to, (share * z).sum(axis=0))
        return {"state": merged, "shared": np.zeros((states.shape[2], 0))}

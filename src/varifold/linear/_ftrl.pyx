"""FTRL-Proximal (McMahan et al. 2013) on the logistic loss, with a learning rate per coordinate."""

import numpy as np

from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at, dot
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid
from varifold._numeric.rows cimport add_rows
from varifold.linear._problems cimport TOGETHER, set_targets, slopes_of, step_proximal

from varifold._engine.merging import APPROXIMATE, LOGISTIC, settle_intercept


cdef void learn_problems(FTRLProximalRule rule, View* v, int y, double w, double* scores,
                         double* chances) noexcept nogil:
    """update() of every problem, with the scores before it and their sigmoids, unless NULL."""
    cdef double f[TOGETHER]
    cdef double slope[TOGETHER]
    cdef double target[TOGETHER]
    cdef Penalty* p = &rule.penalty
    cdef Py_ssize_t i, c, m, first = 0
    while first < rule.problems:
        m = min(<Py_ssize_t> TOGETHER, rule.problems - first)
        memset(f, 0, m * sizeof(double))
        add_rows(f, rule.state + 2 * rule.plane + first, rule.stride, m, v.n, v.slot, v.x)
        set_targets(target, m, y - first)
        slopes_of(m, f, target, y - first, slope, chances + first if chances != NULL else NULL)
        for c in range(m):
            slope[c] = -w * target[c] * slope[c]
        for i in range(v.n):
            if v.slot[i] == 0 or v.x[i] != 0.0:  # a value of 0 moves nothing
                step_proximal(rule.state + v.slot[i] * rule.stride + first, rule.plane, m, v.x[i], slope,
                              p.slowness, p.beta, p.l1 if v.slot[i] else 0.0, p.l2)
        if scores != NULL:
            memcpy(scores + first, f, m * sizeof(double))
        first += m


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

    cdef double score(self, View* v, int c) noexcept nogil:
        return dot(v, self.state + 2 * self.plane + c, self.stride)

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """The paper's algorithm 1 for the features present; returns the score before it."""
        cdef double f = self.score(v, c), slope = -w * y * sigmoid(-y * f)
        cdef double* first = self.state + c
        cdef Py_ssize_t i = 0, m, stride = self.stride
        cdef Penalty* p = &self.penalty
        cdef double* moved[STRIP]
        cdef double gradient[STRIP]
        if v.n > 0 and v.slot[0] == 0:
            proximal_step(first, self.plane, p, 0.0, slope * v.x[0])
            i = 1
        while i < v.n:
            m = 0
            while i < v.n and m < STRIP:
                moved[m] = first + v.slot[i] * stride
                gradient[m] = slope * v.x[i]
                m += v.x[i] != 0.0  # a value of 0 moves nothing
                i += 1
            step_together(m, moved, self.plane, gradient, p, p.l1)
        return f

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        learn_problems(self, v, y, w, scores, chances)
        return True

    cdef void scores(self, View* v, double* out) noexcept nogil:
        if self.problems == 1:
            BinaryRule.scores(self, v, out)
            return
        memset(out, 0, self.problems * sizeof(double))
        add_rows(out, self.state + 2 * self.plane, self.stride, self.problems, v.n, v.slot, v.x)

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """Squared gradients add up; the weight is the mean by curvature, and z is what leads to that weight.

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

"""OLIDS (You et al. 2023): a margin learner for incomplete and imbalanced streams.

Features of the round before and all others form two blocks. The confidence of a block is its share of the running
variance h of the features present, p and 1 - p, and its part of the score and of the step is multiplied by it:
f = p w_c.x_c + (1 - p) w_n.x_n. The cap of the step is C theta n_-y / (n_+ + n_-), larger for the rarer class.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.model cimport Model
from varifold._engine.one_vs_rest cimport at
from varifold._engine.space cimport seen_last
from varifold._engine.view cimport View
from varifold.linear._truncated cimport TruncatedRule

# numbers of a slot
cdef enum:
    W = 0        # weight, over SCALE
    COUNT = 1
    MEAN = 2
    M2 = 3

# shared numbers of a problem
cdef enum:
    SCALE = 0    # factor on every stored weight
    PLUS = 1     # weight of the instances of +1, from 1
    MINUS = 2
    MASS = 3     # sum of |w| h over all features
    SPREAD = 4   # sum of h over all features


cdef inline double variance(double* s) noexcept nogil:
    """h: the running variance of a slot's values."""
    return s[M2] / s[COUNT] if s[COUNT] > 0.0 else 0.0


cdef inline void welford(double* s, double x, double w) noexcept nogil:
    """Add a value of weight w to the running mean and squared deviations."""
    cdef double d = x - s[MEAN]
    s[COUNT] += w
    s[MEAN] += d * (w / s[COUNT])
    s[M2] += w * d * (x - s[MEAN])
    if s[M2] > 1e300:
        s[M2] = 1e300


cdef class OLIDSRule(TruncatedRule):
    """Per slot and problem: weight, and Welford's count, mean and squared deviations of the values."""

    def __cinit__(self, double C, double theta, double lam, double B):
        self.declare_rule(4, 5)
        self.C = C
        self.theta = theta
        self.lam = lam
        self.B = B
        self.sparse = B < 1.0

    cdef void start(self, int c) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        g[SCALE] = 1.0
        g[PLUS] = 1.0
        g[MINUS] = 1.0

    cdef void negate(self, int c) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        TruncatedRule.negate(self, c)
        g[PLUS], g[MINUS] = g[MINUS], g[PLUS]

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        """Subtract a slot's weight from MASS and set it to zero."""
        cdef double* s = at(self, slot, c)
        self.shared[c * self.globals + MASS] -= fabs(s[W] * self.shared[c * self.globals + SCALE]) * variance(s)
        s[W] = 0.0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int c
        for c in range(self.problems):
            self.shared[c * self.globals + SPREAD] -= variance(at(self, slot, c))
        TruncatedRule.forget(self, slot)

    cdef inline bint stayed(self, View* v, Py_ssize_t i) noexcept nogil:
        """Whether the instance learned before had the feature too; the intercept counts as one that had."""
        return not v.is_new[i] and (v.slot[i] == 0 or seen_last(&self.space.seen[v.slot[i]]) == v.step)

    cdef double confidence(self, View* v, int c, double w) noexcept nogil:
        """p: the share of variance of the features that stayed, this instance's values included."""
        cdef double* s
        cdef double d, share, all = 0.0, old = 0.0
        cdef Py_ssize_t i
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            # Welford's step, for the variance alone
            d = v.x[i] - s[MEAN]
            share = 1.0 / (s[COUNT] + w)
            d = (s[M2] + w * s[COUNT] * share * d * d) * share
            all += d
            if self.stayed(v, i):
                old += d
        return old / all if all > 0.0 else 1.0

    cdef double score(self, View* v, int c) noexcept nogil:
        cdef double trust = self.confidence(v, c, 1.0), f = 0.0
        cdef Py_ssize_t i
        for i in range(v.n):
            f += (trust if self.stayed(v, i) else 1.0 - trust) * at(self, v.slot[i], c)[W] * v.x[i]
        return f * self.shared[c * self.globals + SCALE]

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c = label if self.problems > 1 else 0
        cdef double trust, sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2:
            return
        trust = self.confidence(v, c, 1.0)
        for i in range(v.n):
            out[i] = sign * (trust if self.stayed(v, i) else 1.0 - trust) * self.coefficient(v.slot[i], c) * v.x[i]

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return at(self, slot, c)[W] * self.shared[c * self.globals + SCALE]

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        if w == 1.0:
            TruncatedRule.learn_scored(self, v, y, w, scores, probs)
        else:
            Model.learn_scored(self, v, y, w, scores, probs)  # with another weight the confidence differs

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """One round; returns the score before it, for an instance of this weight."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef double trust = self.confidence(v, c, w), f = 0.0, norm = 0.0, part, step = 0.0, cost, cap
        cdef Py_ssize_t i
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            part = trust if self.stayed(v, i) else 1.0 - trust
            f += part * s[W] * v.x[i]
            part *= v.x[i]
            norm += part * part
            if self.sparse:
                g[MASS] -= fabs(s[W] * g[SCALE]) * variance(s)
                g[SPREAD] -= variance(s)
        f *= g[SCALE]
        cost = self.theta * (g[MINUS] if y > 0.0 else g[PLUS]) / (g[PLUS] + g[MINUS])
        if y * f < 1.0 and norm > 0.0:
            cap = self.C * cost * w
            step = (1.0 - y * f) / norm
            step = y * (cap if step > cap else step) / g[SCALE]
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            s[W] += step * (trust if self.stayed(v, i) else 1.0 - trust) * v.x[i]
            welford(s, v.x[i], w)
            if self.sparse:
                g[MASS] += fabs(s[W] * g[SCALE]) * variance(s)
                g[SPREAD] += variance(s)
                self.update_heap(v.slot[i], c)
        if y > 0.0:
            g[PLUS] += w
        else:
            g[MINUS] += w
        if not self.sparse:
            return f
        if g[SPREAD] > 0.0 and g[MASS] > self.lam * g[SPREAD]:
            g[SCALE] *= self.lam * g[SPREAD] / g[MASS]
            g[MASS] = self.lam * g[SPREAD]
            if g[SCALE] < 1e-100:
                for i in range(self.space.size):
                    at(self, <int32_t> i, c)[W] *= g[SCALE]
                g[SCALE] = 1.0
                self.reorder(c)
        self.keep_largest(<Py_ssize_t> (self.B * v.known), c)
        return f

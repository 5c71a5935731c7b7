"""FOBOS (Duchi, Singer 2009): a gradient step of rate eta_t = eta / sqrt(t), then every weight shrunk by eta_t lam.

The weights of absent features are not touched: what all rounds since their last one shrink them by is applied when
they are next needed.
"""

import numpy as np

from libc.math cimport copysign, fabs, sqrt
from libc.stdint cimport int32_t

from varifold._engine.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid

from varifold._engine.merging import APPROXIMATE, LOGISTIC, settle_intercept, weighted_mean

# shared numbers of a problem
cdef enum:
    T = 0        # instances learned
    SHRUNK = 1   # sum of all thresholds so far


cdef inline double shrink(double w, double by) noexcept nogil:
    """sign(w) max(0, |w| - by)."""
    cdef double left = fabs(w) - by
    return copysign(left if left > 0.0 else 0.0, w)


cdef class FOBOSRule(BinaryRule):
    """Per slot and problem: the weight when last updated, and SHRUNK then. The intercept is not shrunk."""

    def __cinit__(self, double eta, double lam, bint hinge):
        self.declare_rule(2, 2)
        self.eta = eta
        self.lam = lam
        self.hinge = hinge

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        cdef double* s = at(self, slot, c)
        return shrink(s[0], self.shared[c * 2 + SHRUNK] - s[1]) if slot != 0 else s[0]

    cdef double score(self, View* v, int c) noexcept nogil:
        cdef double* first = self.state + c * 2
        cdef double* s
        cdef double f = 0.0, total = self.shared[c * 2 + SHRUNK]
        cdef Py_ssize_t i = 0, stride = self.stride
        if v.n and v.slot[0] == 0:
            f = first[0] * v.x[0]
            i = 1
        while i < v.n:
            s = first + v.slot[i] * stride
            f += shrink(s[0], total - s[1]) * v.x[i]
            i += 1
        return f

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """Gradient step and shrinkage of the features present; returns the score before it."""
        cdef double* g = self.shared + c * 2
        cdef double* first = self.state + c * 2
        cdef double* s
        cdef double f = self.score(v, c), margin = y * f, eta, step, before = g[SHRUNK], after, threshold
        cdef double* x = v.x
        cdef int32_t* slot = v.slot
        cdef Py_ssize_t i = 0, n = v.n, stride = self.stride
        g[T] += 1.0
        eta = self.eta / sqrt(g[T])
        if self.hinge:
            step = eta * w * y if margin < 1.0 else 0.0
        else:
            step = eta * w * y * sigmoid(-margin)
        g[SHRUNK] += eta * self.lam
        threshold = eta * self.lam
        after = g[SHRUNK]
        if n and slot[0] == 0:
            first[0] += step * x[0]
            i = 1
        while i < n:
            s = first + slot[i] * stride
            s[0] = shrink(shrink(s[0], before - s[1]) + step * x[i], threshold)
            s[1] = after
            i += 1
        return f

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """The mean of the weights as they are now, all shrinkage applied; T adds up."""
        shared = np.stack([part.by_problem("shared", [0.0, 0.0]) for part in parts])
        states = []
        for part, g in zip(parts, shared):
            state = part.by_slot_problem("state")
            due = g[:, SHRUNK] - state[..., 1]
            due[0] = 0.0
            state[..., 0] = np.copysign(np.maximum(np.abs(state[..., 0]) - due, 0.0), state[..., 0])
            part.rescaled(state[..., 0])
            states.append(state)
        merged = weighted_mean(parts, states)
        settle_intercept(parts, merged[..., 0], LOGISTIC)
        shrunk = shared[..., SHRUNK].max(axis=0)
        merged[..., 1] = shrunk
        return {"state": merged, "shared": np.stack([shared[..., T].sum(axis=0), shrunk], axis=-1)}

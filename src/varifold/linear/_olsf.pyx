"""OLSF (Zhang et al. 2016): passive-aggressive steps, projection on an l1 ball, truncation to a share of the features.

A round sets w += tau y x, then w *= min(1, lam / |w|_1), then keeps the share B of largest weights.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t

from varifold._engine.one_vs_rest cimport at, dot
from varifold._engine.view cimport View
from varifold.linear._pa cimport PA0, PA1, PA2, step_size
from varifold.linear._truncated cimport TruncatedRule

from varifold._engine.merging import APPROXIMATE, HINGE, settle_intercept, weighted_mean

MODES = {"pa": PA0, "pa1": PA1, "pa2": PA2}

# shared numbers of a problem
cdef enum:
    SCALE = 0     # factor on every stored weight: the projection changes this number only
    NORM = 1      # sum of |w|


cdef class OLSFRule(TruncatedRule):
    """Per slot and problem: the weight, over SCALE."""

    def __cinit__(self, str mode, double C, double lam, double B):
        self.declare_rule(1, 2)
        self.mode = MODES[mode]
        self.C = C
        self.lam = lam
        self.B = B
        self.sparse = B < 1.0

    cdef void start(self, int c) noexcept nogil:
        self.shared[c * self.globals + SCALE] = 1.0

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        """Subtract a weight from the norm and set it to zero."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s = at(self, slot, c)
        g[NORM] -= fabs(s[0]) * g[SCALE]
        s[0] = 0.0

    cdef double score(self, View* v, int c) noexcept nogil:
        return dot(v, self.state + c, self.stride) * self.shared[c * self.globals + SCALE]

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return at(self, slot, c)[0] * self.shared[c * self.globals + SCALE]

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """Step, projection and truncation; returns the score before them."""
        cdef double* g = self.shared + c * self.globals
        cdef double* first = self.state + c
        cdef double* s
        cdef double* x = v.x
        cdef int32_t* slot = v.slot
        cdef double f = 0.0, norm = 0.0, step, before = 0.0, after = 0.0
        cdef Py_ssize_t i, n = v.n, stride = self.stride
        for i in range(n):
            s = first + slot[i] * stride
            f += s[0] * x[i]
            norm += x[i] * x[i]
            before += fabs(s[0])
        f *= g[SCALE]
        if y * f < 1.0:
            step = y * step_size(self.mode, self.C, 1.0 - y * f, norm, w) / g[SCALE]
            for i in range(n):
                s = first + slot[i] * stride
                s[0] += step * x[i]
                after += fabs(s[0])
                if self.sparse:
                    self.update_heap(slot[i], c)
            g[NORM] += (after - before) * g[SCALE]
        if g[NORM] > self.lam:
            g[SCALE] *= self.lam / g[NORM]
            g[NORM] = self.lam
            if g[SCALE] < 1e-100:    # before it underflows
                for i in range(self.space.size):
                    first[i * stride] *= g[SCALE]
                g[SCALE] = 1.0
                self.reorder(c)
        if self.sparse:
            self.keep_largest(<Py_ssize_t> (self.B * v.known), c)
        return f

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """The mean weight of those that saw the feature; the next step projects and truncates again."""
        states = [part.by_slot_problem("state") * part.by_problem("shared", [1.0, 0.0])[:, :1] for part in parts]
        for part, state in zip(parts, states):
            part.rescaled(state[..., 0])
        merged = weighted_mean(parts, states)
        settle_intercept(parts, merged[..., 0], HINGE)
        norm = np.abs(merged[..., 0]).sum(axis=0)
        return {"state": merged, "shared": np.stack([np.ones_like(norm), norm], axis=-1)}

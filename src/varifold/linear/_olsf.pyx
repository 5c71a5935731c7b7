"""OLSF (Zhang et al. 2016): passive-aggressive steps, projection on an l1 ball, truncation to a share of the features.

A round sets w += tau y x, then w *= min(1, lam / |w|_1), then keeps the share B of largest weights.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at, dot
from varifold._engine.view cimport View
from varifold._numeric.rows cimport add_rows, add_to_rows
from varifold.linear._pa cimport PA0, PA1, PA2, step_size
from varifold.linear._problems cimport TOGETHER, add_sizes
from varifold.linear._truncated cimport TruncatedRule

from varifold._engine.merging import APPROXIMATE, HINGE, settle_intercept, weighted_mean

MODES = {"pa": PA0, "pa1": PA1, "pa2": PA2}

# shared numbers of a problem
cdef enum:
    SCALE = 0     # factor on every stored weight: the projection changes this number only
    NORM = 1      # sum of |w|


cdef void learn_problems(OLSFRule rule, View* v, int y, double w, double* scores) noexcept nogil:
    """update() of every problem of the dense form, with the scores before it, unless NULL.

    The weights of a slot stand side by side. Where few problems are wrong, these are moved one by one.
    """
    cdef double f[TOGETHER]
    cdef double step[TOGETHER]
    cdef double before[TOGETHER]
    cdef double after[TOGETHER]
    cdef double norm = 0.0, target
    cdef double* g
    cdef Py_ssize_t i, c, m, wrong, first = 0
    for i in range(v.n):
        norm += v.x[i] * v.x[i]
    while first < rule.problems:
        m = min(<Py_ssize_t> TOGETHER, rule.problems - first)
        memset(f, 0, m * sizeof(double))
        add_rows(f, rule.state + first, rule.stride, m, v.n, v.slot, v.x)
        wrong = 0
        for c in range(m):
            g = rule.shared + (first + c) * rule.globals
            target = 1.0 if y == first + c else -1.0
            f[c] *= g[SCALE]
            step[c] = 0.0
            if target * f[c] < 1.0:
                step[c] = target * step_size(rule.mode, rule.C, 1.0 - target * f[c], norm, w) / g[SCALE]
                wrong += 1
        if 8 * wrong >= m:
            memset(before, 0, m * sizeof(double))
            memset(after, 0, m * sizeof(double))
            add_sizes(before, rule.state + first, rule.stride, m, v.n, v.slot)
            add_to_rows(rule.state + first, rule.stride, m, v.n, v.slot, v.x, step)
            add_sizes(after, rule.state + first, rule.stride, m, v.n, v.slot)
        for c in range(m):
            g = rule.shared + (first + c) * rule.globals
            if 8 * wrong >= m:
                g[NORM] += (after[c] - before[c]) * g[SCALE]
            elif step[c] != 0.0:
                rule.move(v, <int> (first + c), step[c])
            rule.project(<int> (first + c))
        if scores != NULL:
            memcpy(scores + first, f, m * sizeof(double))
        first += m


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
        cdef double* x = v.x
        cdef int32_t* slot = v.slot
        cdef double f = 0.0, norm = 0.0
        cdef Py_ssize_t i, n = v.n, stride = self.stride
        for i in range(n):
            f += first[slot[i] * stride] * x[i]
            norm += x[i] * x[i]
        f *= g[SCALE]
        if y * f < 1.0:
            self.move(v, c, y * step_size(self.mode, self.C, 1.0 - y * f, norm, w) / g[SCALE])
        self.project(c)
        if self.sparse:
            self.keep_largest(<Py_ssize_t> (self.B * v.known), c)
        return f

    cdef void move(self, View* v, int c, double step) noexcept nogil:
        """Add the step times the values to the weights."""
        cdef double* g = self.shared + c * self.globals
        cdef double* first = self.state + c
        cdef double* s
        cdef double before = 0.0, after = 0.0
        cdef Py_ssize_t i
        for i in range(v.n):
            s = first + v.slot[i] * self.stride
            before += fabs(s[0])
            s[0] += step * v.x[i]
            after += fabs(s[0])
            if self.sparse:
                self.update_heap(v.slot[i], c)
        g[NORM] += (after - before) * g[SCALE]

    cdef void project(self, int c) noexcept nogil:
        """Scale the weights into the l1 ball."""
        cdef double* g = self.shared + c * self.globals
        cdef Py_ssize_t i
        if g[NORM] > self.lam:
            g[SCALE] *= self.lam / g[NORM]
            g[NORM] = self.lam
            if g[SCALE] < 1e-100:    # before it underflows
                for i in range(self.space.size):
                    at(self, <int32_t> i, c)[0] *= g[SCALE]
                g[SCALE] = 1.0
                self.reorder(c)

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        if self.sparse:
            BinaryRule.update_all(self, v, y, w, scores, chances)
        else:
            learn_problems(self, v, y, w, scores)
        return False

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        if self.problems == 1:
            BinaryRule.scores(self, v, out)
            return
        memset(out, 0, self.problems * sizeof(double))
        add_rows(out, self.state, self.stride, self.problems, v.n, v.slot, v.x)
        for c in range(self.problems):
            out[c] *= self.shared[c * self.globals + SCALE]

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

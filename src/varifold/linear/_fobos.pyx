"""FOBOS (Duchi, Singer 2009): a gradient step of rate eta_t = eta / sqrt(t), then every weight shrunk by eta_t lam.

The weights of absent features are not touched: what all rounds since their last one shrink them by is applied when
they are next needed.
"""

import numpy as np

from libc.math cimport copysign, fabs, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid
from varifold.linear._problems cimport TOGETHER, add_shrunk, set_targets, slopes_of, step_shrunk

from varifold._engine.merging import APPROXIMATE, LOGISTIC, settle_intercept, weighted_mean

# shared numbers of a problem
cdef enum:
    T = 0        # instances learned
    SHRUNK = 1   # sum of all thresholds so far


cdef inline double shrink(double w, double by) noexcept nogil:
    """sign(w) max(0, |w| - by)."""
    cdef double left = fabs(w) - by
    return copysign(left if left > 0.0 else 0.0, w)


# What an instance changes in one problem.
cdef struct Change:
    double step     # times the value: the gradient step
    double by       # what the round shrinks by
    double before   # SHRUNK before the round
    double after    # and after it


cdef inline Change change_of(FOBOSRule rule, Py_ssize_t c, double f, double y, double w) noexcept nogil:
    """Count an instance of problem c, whose score is f."""
    cdef double* g = rule.shared + c * 2
    cdef double margin = y * f, eta
    cdef Change change
    g[T] += 1.0
    eta = rule.eta / sqrt(g[T])
    if rule.hinge:
        change.step = eta * w * y if margin < 1.0 else 0.0
    else:
        change.step = eta * w * y * sigmoid(-margin)
    change.by = eta * rule.lam
    change.before = g[SHRUNK]
    g[SHRUNK] += change.by
    change.after = g[SHRUNK]
    return change


cdef void changes_of(FOBOSRule rule, Py_ssize_t first, Py_ssize_t m, const double* f, int y, double w, double* step,
                     double* before, double* by, double* after, double* chances) noexcept nogil:
    """change_of() of m problems from `first` on, whose scores are f; several at once. `chances`: see slopes_of()."""
    cdef double* g = rule.shared + first * 2
    cdef double target[TOGETHER]
    cdef double eta[TOGETHER]
    cdef Py_ssize_t c
    set_targets(target, m, y - first)
    for c in range(m):
        g[2 * c + T] += 1.0
        eta[c] = g[2 * c + T]
        before[c] = g[2 * c + SHRUNK]
    for c in range(m):
        eta[c] = rule.eta / sqrt(eta[c])
        by[c] = eta[c] * rule.lam
        after[c] = before[c] + by[c]
    for c in range(m):
        g[2 * c + SHRUNK] = after[c]
    if rule.hinge:
        for c in range(m):
            step[c] = eta[c] * w * target[c] if target[c] * f[c] < 1.0 else 0.0
        return
    slopes_of(m, f, target, y - first, step, chances)
    for c in range(m):
        step[c] = eta[c] * w * target[c] * step[c]


cdef void learn_problems(FOBOSRule rule, View* v, int y, double w, double* scores,
                         double* chances) noexcept nogil:
    """update() of every problem, with the scores before it and their sigmoids, unless NULL."""
    cdef double f[TOGETHER]
    cdef double step[TOGETHER]
    cdef double before[TOGETHER]
    cdef double by[TOGETHER]
    cdef double after[TOGETHER]
    cdef Py_ssize_t m, first = 0
    while first < rule.problems:
        m = min(<Py_ssize_t> TOGETHER, rule.problems - first)
        rule.score_problems(v, first, m, f)
        changes_of(rule, first, m, f, y, w, step, before, by, after, chances + first if chances != NULL else NULL)
        step_shrunk(rule.state + first, rule.stride, rule.plane, m, v.n, v.slot, v.x, step, before, by, after)
        if scores != NULL:
            memcpy(scores + first, f, m * sizeof(double))
        first += m


cdef class FOBOSRule(BinaryRule):
    """Per slot and problem: the weight when last updated, and SHRUNK then. The intercept is not shrunk."""

    def __cinit__(self, double eta, double lam, bint hinge):
        self.declare_rule(2, 2)
        self.eta = eta
        self.lam = lam
        self.hinge = hinge

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        cdef double* s = at(self, slot, c)
        return shrink(s[0], self.shared[c * 2 + SHRUNK] - s[self.plane]) if slot != 0 else s[0]

    cdef double score(self, View* v, int c) noexcept nogil:
        cdef double* first = self.state + c
        cdef double* s
        cdef double f = 0.0, total = self.shared[c * 2 + SHRUNK]
        cdef Py_ssize_t i = 0, stride = self.stride, plane = self.plane
        if v.n and v.slot[0] == 0:
            f = first[0] * v.x[0]
            i = 1
        while i < v.n:
            s = first + v.slot[i] * stride
            f += shrink(s[0], total - s[plane]) * v.x[i]
            i += 1
        return f

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """Gradient step and shrinkage of the features present; returns the score before it."""
        cdef double* first = self.state + c
        cdef double* s
        cdef double f = self.score(v, c)
        cdef Change change = change_of(self, c, f, y, w)
        cdef double* x = v.x
        cdef int32_t* slot = v.slot
        cdef Py_ssize_t i = 0, n = v.n, stride = self.stride, plane = self.plane
        if n and slot[0] == 0:
            first[0] += change.step * x[0]
            i = 1
        while i < n:
            s = first + slot[i] * stride
            s[0] = shrink(shrink(s[0], change.before - s[plane]) + change.step * x[i], change.by)
            s[plane] = change.after
            i += 1
        return f

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        learn_problems(self, v, y, w, scores, chances)
        return not self.hinge

    cdef void score_problems(self, View* v, Py_ssize_t first, Py_ssize_t m, double* out) noexcept nogil:
        """The scores of up to TOGETHER problems from `first` on."""
        cdef double total[TOGETHER]
        cdef Py_ssize_t c
        for c in range(m):
            total[c] = self.shared[(first + c) * 2 + SHRUNK]
        memset(out, 0, m * sizeof(double))
        add_shrunk(out, self.state + first, self.stride, self.plane, m, v.n, v.slot, v.x, total)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t first = 0
        if self.problems == 1:
            BinaryRule.scores(self, v, out)
            return
        while first < self.problems:
            self.score_problems(v, first, min(<Py_ssize_t> TOGETHER, self.problems - first), out + first)
            first += TOGETHER

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

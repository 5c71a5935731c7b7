"""OLVF (Beyazit, Alagurajah, Wu 2019): a margin learner whose steps depend on a learned confidence in the feature set.

Next to the weights w there are space weights w_bar: the sigmoid of their sum over a feature set is the confidence that
an instance with these features is classified correctly. Of the paper's equations the signs of 7 to 10 are corrected and
eq. 16 uses absolute values; `kkt` solves eq. 12 exactly (steps divided by the confidences), otherwise the printed
eqs. 13 to 15 hold (steps multiplied by them).
"""

import numpy as np

from libc.math cimport exp, fabs, log1p
from libc.stdint cimport int32_t
from libc.string cimport memchr, memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid
from varifold._numeric.heap cimport Heap, heap_touch
from varifold._numeric.wide cimport inlined, wide
from varifold.linear._truncated cimport TruncatedRule

from varifold._engine.merging import APPROXIMATE, HINGE, average

# state per problem
cdef enum:
    SUM_BAR = 0   # sum of all w_bar
    SCALE = 1     # factor on every stored weight: the projection of eq. 16 changes this number only
    MASS = 2      # sum of |w| |w_bar|

cdef double LEAST = 2.4   # (1 + s)^2 ln(1 + s) / s^2 is at least 2.45: a cap below 2.4 / n is always the smaller one


cdef inline double floored(double p) noexcept nogil:
    """Bound a confidence from below, so that it is safe to divide by."""
    return p if p > 1e-6 else 1e-6


cdef inline double space_step(double cap, double sign, double bar, Py_ssize_t n) noexcept nogil:
    """Return the change of each present feature's w_bar, eqs. 4 and 7 to 10; `bar` is the sum over them.

    With margin = sign bar and slope = sigmoid(-margin) it is sign slope min(cap, log(1 + e^-margin) / (slope^2 n)).
    """
    cdef double margin = sign * bar, slope, tau = cap
    cdef bint bounded = cap * n > LEAST
    if margin < -36.0:   # e^-36 is less than half the distance from 1 to the next double
        slope = 1.0
        if bounded:
            tau = min(tau, -margin / n)
    else:
        slope = exp(-margin)
        if bounded and margin < 36.0:
            tau = min(tau, log1p(slope) * (1.0 + slope) * (1.0 + slope) / (slope * slope * n))
        slope /= 1.0 + slope
    return tau * sign * slope


# Steps of one instance in one problem.
cdef struct Steps:
    double old     # multiplied by the value: step of the weights of known features
    double new     # the same for new features
    double delta   # step of every space weight


cdef inline Steps steps_of(OLVFRule rule, Py_ssize_t n, double* g, double bar, Norms* norms, bint right, double y,
                           double loss, double unit, double w) noexcept nogil:
    """Compute the steps of both models, eqs. 4 to 15, for n features present whose space weights add up to `bar`.

    g is the state of the problem. Loss, cap C and radius are in units of `unit`, in which the weights are not.
    """
    cdef Steps steps
    cdef double p_x, p_w, tau
    steps.old = 0.0
    steps.new = 0.0
    steps.delta = space_step(rule.C_bar * w, 1.0 if right else -1.0, bar, n)
    if loss > 0.0 and norms.old + norms.new > 0.0:
        p_w = floored(sigmoid(g[SUM_BAR] + norms.n_old * steps.delta))
        p_x = floored(sigmoid(bar + n * steps.delta)) if norms.n_old < n else 1.0  # needed only for new features
        if rule.kkt:
            tau = min(rule.C * w, loss / (norms.old / p_w + norms.new / p_x))
            steps.old = tau / p_w * y * unit / g[SCALE]
            steps.new = tau / p_x * y * unit / g[SCALE]
        else:
            tau = min(rule.C * w, loss / (norms.old + norms.new))
            steps.old = tau * p_w * y * unit / g[SCALE]
            steps.new = tau * p_x * y * unit / g[SCALE]
    g[SUM_BAR] += n * steps.delta
    return steps


cdef inline inlined measure_problems(OLVFRule rule, View* v, int first, int m, Py_ssize_t plane, double* f, double* bar,
                                     Norms* norms) noexcept nogil:
    """Compute scores and sums of the space weights of m problems, and the norms of the instance."""
    cdef double* s
    cdef double x, norm = 0.0
    cdef Py_ssize_t i
    cdef int c
    memset(f, 0, m * sizeof(double))
    memset(bar, 0, m * sizeof(double))
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        x = v.x[i]
        for c in range(m):
            f[c] += s[c] * x
            bar[c] += s[plane + c]
        norm += x * x
    for c in range(m):
        f[c] *= rule.shared[(first + c) * rule.globals + SCALE]
    norms.old = norm
    norms.new = 0.0
    norms.n_old = v.n
    if v.n and memchr(v.is_new, 1, v.n) != NULL:
        norms.old = 0.0
        norms.n_old = 0
        for i in range(v.n):
            if v.is_new[i]:
                norms.new += v.x[i] * v.x[i]
            else:
                norms.old += v.x[i] * v.x[i]
                norms.n_old += 1


cdef inline inlined move_problems(OLVFRule rule, View* v, int first, int m, Py_ssize_t plane, const double* old,
                                  const double* new, const double* delta) noexcept nogil:
    """Move weights and space weights of m dense problems."""
    cdef double* s
    cdef const double* step
    cdef double x
    cdef Py_ssize_t i
    cdef int c
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        step = new if v.is_new[i] else old
        x = v.x[i]
        for c in range(m):
            s[c] += step[c] * x
            s[plane + c] += delta[c]


cdef wide learn_many(OLVFRule rule, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
    """Run one round of the paper's algorithm 1 in m dense problems."""
    cdef double bar[TOGETHER]
    cdef double old[TOGETHER]
    cdef double new[TOGETHER]
    cdef double delta[TOGETHER]
    cdef Norms norms
    cdef Steps steps
    cdef int c
    measure_problems(rule, v, first, m, rule.plane, f, bar, &norms)
    for c in range(m):
        steps = steps_of(rule, v.n, rule.shared + (first + c) * rule.globals, bar[c], &norms,
                         (f[c] > 0.0) == (y[c] > 0.0), y[c], 1.0 - y[c] * f[c], 1.0, w)
        old[c] = steps.old
        new[c] = steps.new
        delta[c] = steps.delta
    move_problems(rule, v, first, m, rule.plane, old, new, delta)


cdef class OLVFRule(TruncatedRule):
    """Per slot and problem: w (over SCALE) and w_bar."""

    def __cinit__(self, double C, double C_bar, double lam, double B, bint kkt):
        self.scale = SCALE
        self.declare_rule(2, 3)
        self.C = C
        self.C_bar = C_bar
        self.lam = lam
        self.B = B
        self.kkt = kkt
        self.sparse = B < 1.0

    def space_score(self, list slots, int c=0):
        """Return the sums of the space weights of these slots and of all slots."""
        cdef int32_t slot
        return sum(at(self, slot, c)[self.plane] for slot in slots), self.shared[c * self.globals + SUM_BAR]

    cdef bint is_kept(self, int32_t slot, int c) noexcept nogil:
        """Keep a slot that has a space weight, even if w is 0."""
        return at(self, slot, c)[0] != 0.0 or at(self, slot, c)[self.plane] != 0.0

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        """Subtract a slot's weights from the running sums and set them to zero."""
        cdef double* s = at(self, slot, c)
        cdef double* g = self.shared + c * self.globals
        g[MASS] -= fabs(s[0] * g[SCALE]) * fabs(s[self.plane])
        g[SUM_BAR] -= s[self.plane]
        s[0] = 0.0
        s[self.plane] = 0.0

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        """Run one round of the paper's algorithm 1."""
        cdef double bar
        cdef Norms norms
        if m > 1:
            learn_many(self, v, first, m, y, w, f)
            return
        self.measure(v, first, f, &bar, &norms)
        self.move(v, first, bar, &norms, (f[0] > 0.0) == (y[0] > 0.0), y[0], 1.0 - y[0] * f[0], 1.0, w)

    cdef void measure(self, View* v, int c, double* f, double* bar, Norms* norms) noexcept nogil:
        """Compute the score of a problem, the sum of its space weights and the norms of the instance."""
        cdef double score, space_score  # local variables: the compiler knows that no weight is stored there
        if self.plane == 1:  # a constant distance is worth a copy of the loop
            measure_problems(self, v, c, 1, 1, &score, &space_score, norms)
        else:
            measure_problems(self, v, c, 1, self.plane, &score, &space_score, norms)
        f[0] = score
        bar[0] = space_score

    cdef void move(self, View* v, int c, double bar, Norms* norms, bint right, double y, double loss, double unit,
                   double w) noexcept nogil:
        """Update both models: `right` if the prediction was correct, y (-1 or 1) is the sign the score should have."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef Steps steps
        cdef double mass = 0.0
        cdef Py_ssize_t i, plane = self.plane
        cdef Heap* h
        if not self.sparse:
            steps = steps_of(self, v.n, g, bar, norms, right, y, loss, unit, w)
            if plane == 1:
                move_problems(self, v, c, 1, 1, &steps.old, &steps.new, &steps.delta)
            else:
                move_problems(self, v, c, 1, plane, &steps.old, &steps.new, &steps.delta)
            return
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            mass += fabs(s[0]) * fabs(s[plane])
        g[MASS] -= mass * g[SCALE]
        steps = steps_of(self, v.n, g, bar, norms, right, y, loss, unit, w)
        mass = 0.0
        h = self.heap_of(c)
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            s[0] += (steps.new if v.is_new[i] else steps.old) * v.x[i]
            s[plane] += steps.delta
            mass += fabs(s[0]) * fabs(s[plane])
            if v.slot[i] != 0:
                heap_touch(h, v.slot[i])  # after each change: heap_touch() assumes that no other key moved
        g[MASS] += mass * g[SCALE]
        self.truncate(v.known, c, self.lam * unit)

    cdef void truncate(self, Py_ssize_t known, int c, double radius) noexcept nogil:
        """Project by eq. 16, with one factor for all weights, then keep the largest, a share B."""
        cdef double* g = self.shared + c * self.globals
        if g[MASS] > radius:
            self.scale_weights(c, radius / g[MASS])
            g[MASS] = radius
        self.keep_largest(<Py_ssize_t> (self.B * known), c)

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """Average weights and space weights of the models that saw the feature; recompute the sums over all slots."""
        states = [part.by_slot_problem("state") for part in parts]
        for part, state in zip(parts, states):
            state[..., 0] *= part.by_problem("shared", [0.0, 1.0, 0.0])[:, SCALE]
        merged = average(parts, states, HINGE)
        shared = np.ones((merged.shape[1], 3))
        shared[:, SUM_BAR] = merged[..., 1].sum(axis=0)
        shared[:, MASS] = np.abs(merged).prod(axis=-1).sum(axis=0)
        return {"state": merged, "shared": shared}

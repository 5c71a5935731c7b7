"""OLVF (Beyazit, Alagurajah, Wu 2019): a margin learner whose steps depend on a learned confidence in the feature set.

Beside the weights w there are space weights w_bar: the sigmoid of their sum over a feature set is the confidence that
an instance with these features is classified rightly. Of the paper's equations the signs of 7 to 10 are corrected and
eq. 16 uses absolute values; `kkt` solves eq. 12 exactly (steps divided by the confidences), otherwise the printed
eqs. 13 to 15 hold (steps multiplied by them).
"""

import numpy as np

from libc.math cimport exp, fabs, log1p
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr, memcpy, memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at, dot
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid
from varifold._numeric.heap cimport Heap, heap_touch
from varifold._numeric.rows cimport add_rows, add_to_rows, raise_rows, sum_rows
from varifold.linear._problems cimport TOGETHER, set_targets
from varifold.linear._truncated cimport TruncatedRule

from varifold._engine.merging import APPROXIMATE, HINGE, settle_intercept, weighted_mean

# shared numbers of a problem
cdef enum:
    SUM_BAR = 0   # sum of all w_bar
    SCALE = 1     # factor on every stored weight: the projection of eq. 16 changes this number only
    MASS = 2      # sum of |w| |w_bar|

cdef double LEAST = 2.4   # (1 + s)^2 ln(1 + s) / s^2 is at least 2.45: a cap below 2.4 / n is always the smaller one


cdef inline double floored(double p) noexcept nogil:
    """A confidence that can be divided by."""
    return p if p > 1e-6 else 1e-6


cdef inline double space_step(double cap, double sign, double bar, Py_ssize_t n) noexcept nogil:
    """What w_bar of each feature present changes by, eqs. 4 and 7 to 10; `bar` is its sum over them.

    With margin = sign bar and slope = sigmoid(-margin) it is sign slope min(cap, log(1 + e^-margin) / (slope^2 n)).
    """
    cdef double margin = sign * bar, slope, tau = cap
    cdef bint bounded = cap * n > LEAST
    if margin < -36.0:
        slope = 1.0
        if bounded:
            tau = min(tau, -margin / n)
    else:
        slope = exp(-margin)
        if bounded and margin < 36.0:
            tau = min(tau, log1p(slope) * (1.0 + slope) * (1.0 + slope) / (slope * slope * n))
        slope /= 1.0 + slope
    return tau * sign * slope


# What an instance changes in one problem.
cdef struct Steps:
    double old     # times the value: weights of known features
    double new     # and of new ones
    double delta   # every space weight


cdef inline Steps steps_of(OLVFRule rule, Py_ssize_t n, double* g, Sums* sums, bint right, double y, double loss,
                           double unit, double w) noexcept nogil:
    """The steps of both models, eqs. 4 to 15, for n features present; g are the shared numbers of the problem.

    `old` and `new` of the sums are the squared norms of known and new features.
    """
    cdef Steps steps
    cdef double p_x, p_w, tau
    steps.old = 0.0
    steps.new = 0.0
    steps.delta = space_step(rule.C_bar * w, 1.0 if right else -1.0, sums.bar, n)
    if loss > 0.0 and sums.old + sums.new > 0.0:
        p_w = floored(sigmoid(g[SUM_BAR] + sums.n_old * steps.delta))
        p_x = floored(sigmoid(sums.bar + n * steps.delta)) if sums.n_old < n else 1.0  # only new features need it
        if rule.kkt:
            tau = min(rule.C * w, loss / (sums.old / p_w + sums.new / p_x))
            steps.old = tau / p_w * y * unit / g[SCALE]
            steps.new = tau / p_x * y * unit / g[SCALE]
        else:
            tau = min(rule.C * w, loss / (sums.old + sums.new))
            steps.old = tau * p_w * y * unit / g[SCALE]
            steps.new = tau * p_x * y * unit / g[SCALE]
    return steps


cdef inline Sums sums_of(OLVFRule rule, View* v, int c, Py_ssize_t plane) noexcept nogil:
    """measure(), for a distance of numbers that the compiler may know."""
    cdef Sums sums
    cdef double f = 0.0, bar = 0.0, old = 0.0, new = 0.0
    cdef double* s
    cdef double* base = rule.state + c
    cdef Py_ssize_t i, n = v.n, n_old = n, stride = rule.stride
    cdef double* x = v.x
    cdef int32_t* slot = v.slot
    for i in range(n):
        s = base + slot[i] * stride
        f += s[0] * x[i]
        bar += s[plane]
        old += x[i] * x[i]
    if n and memchr(v.is_new, 1, n) != NULL:
        old, n_old = 0.0, 0
        for i in range(n):
            if v.is_new[i]:
                new += x[i] * x[i]
            else:
                old += x[i] * x[i]
                n_old += 1
    sums.score = f * rule.shared[c * rule.globals + SCALE]
    sums.bar = bar
    sums.old = old
    sums.new = new
    sums.n_old = n_old
    return sums


cdef inline void take_steps(View* v, double* base, Py_ssize_t stride, Py_ssize_t plane, Steps* steps) noexcept nogil:
    """Move the weights of one problem, dense; for a distance of numbers that the compiler may know."""
    cdef double* s
    cdef double old = steps.old, new = steps.new, delta = steps.delta
    cdef double* x = v.x
    cdef int32_t* slot = v.slot
    cdef uint8_t* is_new = v.is_new
    cdef Py_ssize_t i
    for i in range(v.n):
        s = base + slot[i] * stride
        s[0] += (new if is_new[i] else old) * x[i]
        s[plane] += delta


cdef inline bint is_plain(OLVFRule rule, View* v) noexcept nogil:
    """Whether the problems can be learned together: dense, and nothing new in the instance."""
    return not rule.sparse and v.n > 0 and memchr(v.is_new, 1, v.n) == NULL


cdef void space_steps(double cap, Py_ssize_t n, Py_ssize_t m, const double* sign, const double* bar,
                      double* delta) noexcept nogil:
    """space_step() of m problems, several at once where the cap is always the smaller one."""
    cdef double margin[TOGETHER]
    cdef double slope
    cdef Py_ssize_t c
    if cap * n > LEAST:
        for c in range(m):
            delta[c] = space_step(cap, sign[c], bar[c], n)
        return
    for c in range(m):
        margin[c] = sign[c] * bar[c]
    for c in range(m):
        delta[c] = exp(-margin[c])
    for c in range(m):
        slope = delta[c] / (1.0 + delta[c])
        delta[c] = cap * sign[c] * (1.0 if margin[c] < -36.0 else slope)


cdef void weight_steps(OLVFRule rule, Py_ssize_t m, const double* shares, const double* loss, const double* target,
                       const double* scale, double norm, double w, double* step) noexcept nogil:
    """Steps.old of m problems whose instance has no new features; `shares` are the arguments of p_w."""
    cdef double e[TOGETHER]
    cdef double p, tau, cap = rule.C * w
    cdef int32_t wrong[TOGETHER]
    cdef Py_ssize_t c, k = 0
    memset(step, 0, m * sizeof(double))
    if not norm > 0.0:
        return
    memset(e, 0, m * sizeof(double))
    for c in range(m):  # only where there is a loss, and without a branch that nothing predicts
        wrong[k] = <int32_t> c
        k += loss[c] > 0.0
    for c in range(k):
        e[wrong[c]] = exp(-fabs(shares[wrong[c]]))
    if rule.kkt:
        for c in range(m):
            p = floored((1.0 if shares[c] >= 0.0 else e[c]) / (1.0 + e[c]))
            tau = min(cap, loss[c] / (norm / p))
            step[c] = tau / p * target[c] / scale[c]
    else:
        for c in range(m):
            p = floored((1.0 if shares[c] >= 0.0 else e[c]) / (1.0 + e[c]))
            tau = min(cap, loss[c] / norm)
            step[c] = tau * p * target[c] / scale[c]
    for c in range(m):
        step[c] = step[c] if loss[c] > 0.0 else 0.0


cdef void learn_problems(OLVFRule rule, View* v, int y, double w, double* scores) noexcept nogil:
    """update() of every problem for an instance without new features, with the scores before it, unless NULL.

    For the dense form.
    """
    cdef double f[TOGETHER]        # scores
    cdef double bar[TOGETHER]      # space scores
    cdef double target[TOGETHER]
    cdef double scale[TOGETHER]
    cdef double loss[TOGETHER]
    cdef double right[TOGETHER]    # 1 or -1
    cdef double step[TOGETHER]     # what the weights move by
    cdef double delta[TOGETHER]    # and the space weights
    cdef double* state
    cdef double* g
    cdef double norm = 0.0
    cdef Py_ssize_t i, c, m, first = 0
    for i in range(v.n):
        norm += v.x[i] * v.x[i]
    while first < rule.problems:
        m = min(<Py_ssize_t> TOGETHER, rule.problems - first)
        state = rule.state + first
        g = rule.shared + first * rule.globals
        memset(f, 0, m * sizeof(double))
        memset(bar, 0, m * sizeof(double))
        add_rows(f, state, rule.stride, m, v.n, v.slot, v.x)
        sum_rows(bar, state + rule.plane, rule.stride, m, v.n, v.slot)
        set_targets(target, m, y - first)
        for c in range(m):
            scale[c] = g[c * rule.globals + SCALE]
        for c in range(m):
            f[c] *= scale[c]
            loss[c] = 1.0 - target[c] * f[c]
            right[c] = target[c] if f[c] > 0.0 else -target[c]
        space_steps(rule.C_bar * w, v.n, m, right, bar, delta)
        for c in range(m):
            bar[c] = g[c * rule.globals + SUM_BAR] + v.n * delta[c]
        weight_steps(rule, m, bar, loss, target, scale, norm, w, step)
        for c in range(m):
            g[c * rule.globals + SUM_BAR] = bar[c]
        add_to_rows(state, rule.stride, m, v.n, v.slot, v.x, step)
        raise_rows(state + rule.plane, rule.stride, m, v.n, v.slot, delta)
        if scores != NULL:
            memcpy(scores + first, f, m * sizeof(double))
        first += m


cdef class OLVFRule(TruncatedRule):
    """Per slot and problem: w (over SCALE) and w_bar."""

    def __cinit__(self, double C, double C_bar, double lam, double B, bint kkt):
        self.declare_rule(2, 3)
        self.C = C
        self.C_bar = C_bar
        self.lam = lam
        self.B = B
        self.kkt = kkt
        self.sparse = B < 1.0

    def space_score(self, list slots, int c=0):
        """Sum of the space weights of these slots, and of all slots: what the space classifier says of both."""
        cdef int32_t slot
        return sum(at(self, slot, c)[self.plane] for slot in slots), self.shared[c * self.globals + SUM_BAR]

    cdef void start(self, int c) noexcept nogil:
        self.shared[c * self.globals + SCALE] = 1.0

    cdef bint is_kept(self, int32_t slot, int c) noexcept nogil:
        """A space weight counts as well, even where w is 0."""
        return at(self, slot, c)[0] != 0.0 or at(self, slot, c)[self.plane] != 0.0

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        """Subtract a slot's weights from the running sums and set them to zero."""
        cdef double* s = at(self, slot, c)
        cdef double* g = self.shared + c * self.globals
        g[MASS] -= fabs(s[0] * g[SCALE]) * fabs(s[self.plane])
        g[SUM_BAR] -= s[self.plane]
        s[0] = 0.0
        s[self.plane] = 0.0

    cdef double score(self, View* v, int c) noexcept nogil:
        return dot(v, self.state + c, self.stride) * self.shared[c * self.globals + SCALE]

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        if self.problems == 1:
            BinaryRule.scores(self, v, out)
            return
        memset(out, 0, self.problems * sizeof(double))
        add_rows(out, self.state, self.stride, self.problems, v.n, v.slot, v.x)
        for c in range(self.problems):
            out[c] *= self.shared[c * self.globals + SCALE]

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return at(self, slot, c)[0] * self.shared[c * self.globals + SCALE]

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """One round of the paper's algorithm 1; returns the score before it."""
        cdef Sums sums = self.measure(v, c)
        cdef double f = sums.score
        self.move(v, c, &sums, (f > 0.0) == (y > 0.0), y, 1.0 - y * f, 1.0, w)
        return f

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        if is_plain(self, v):
            learn_problems(self, v, y, w, scores)
        else:
            BinaryRule.update_all(self, v, y, w, scores, chances)
        return False

    cdef Sums measure(self, View* v, int c) noexcept nogil:
        """Score, space score and squared norms of an instance."""
        if self.plane == 1:
            return sums_of(self, v, c, 1)
        return sums_of(self, v, c, self.plane)

    cdef void move(self, View* v, int c, Sums* sums, bint right, double y, double loss, double unit,
                   double w) noexcept nogil:
        """The steps of both models: `right` says whether the answer was, y (-1 or 1) where the score has to go.

        The loss, the cap C and the radius are in units of `unit`, in which the weights are not.
        """
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef Steps steps
        cdef double mass = 0.0, delta, step_old, step_new
        cdef Py_ssize_t i, n = v.n, stride = self.stride, plane = self.plane
        cdef double* base = self.state + c
        cdef double* x = v.x
        cdef int32_t* slot = v.slot
        cdef uint8_t* is_new = v.is_new
        cdef bint sparse = self.sparse
        cdef Heap* h = self.heap_of(c) if sparse else NULL
        if sparse:
            for i in range(n):
                s = base + slot[i] * stride
                mass += fabs(s[0]) * fabs(s[plane])
        g[MASS] -= mass * g[SCALE]
        steps = steps_of(self, n, g, sums, right, y, loss, unit, w)
        step_old, step_new, delta = steps.old, steps.new, steps.delta
        g[SUM_BAR] += n * delta
        if not sparse and plane == 1:
            take_steps(v, base, stride, 1, &steps)
            return
        if not sparse:
            take_steps(v, base, stride, plane, &steps)
            return
        mass = 0.0
        for i in range(n):
            s = base + slot[i] * stride
            s[0] += (step_new if is_new[i] else step_old) * x[i]
            s[plane] += delta
            mass += fabs(s[0]) * fabs(s[plane])
            if slot[i] != 0:
                heap_touch(h, slot[i])  # after each change: heap_touch() assumes that no other key moved
        g[MASS] += mass * g[SCALE]
        self.truncate(v.known, c, self.lam * unit)

    cdef void truncate(self, Py_ssize_t known, int c, double radius) noexcept nogil:
        """Project by eq. 16, with one factor for all weights, then keep the share B of largest ones."""
        cdef double* g = self.shared + c * self.globals
        cdef Py_ssize_t i
        if g[MASS] > radius:
            g[SCALE] *= radius / g[MASS]
            g[MASS] = radius
            if g[SCALE] < 1e-100:
                for i in range(self.capacity):
                    at(self, <int32_t> i, c)[0] *= g[SCALE]
                g[SCALE] = 1.0
                self.reorder(c)  # weights that became 0 are equal now
        self.keep_largest(<Py_ssize_t> (self.B * known), c)

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """The mean weights and space weights of those that saw the feature; the sums over all slots follow."""
        states = [part.by_slot_problem("state") for part in parts]
        for part, state in zip(parts, states):
            state[..., 0] *= part.by_problem("shared", [0.0, 1.0, 0.0])[:, SCALE]
            part.rescaled(state[..., 0])
        merged = weighted_mean(parts, states)
        settle_intercept(parts, merged[..., 0], HINGE)
        shared = np.ones((merged.shape[1], 3))
        shared[:, SUM_BAR] = merged[..., 1].sum(axis=0)
        shared[:, MASS] = np.abs(merged).prod(axis=-1).sum(axis=0)
        return {"state": merged, "shared": shared}

"""FTRL-ADP: logistic follow-the-regularised-leader with a decaying proximal centre and a drift test.

With v the summed gradients, h = keep h + w and r = 1 + keep r the weights are those that minimise
v.w + LP/2 (r w.w - 2 h.w) + L1 |w|_1 + L2/2 w.w: w = -(z - sign(z) L1) / (L2 + LP r), z = v - LP h, 0 where |z| <= L1.

Without L1 and L2 the weights of all coordinates have a closed form. With g = h / r a round takes v / (LP r r') from
g, so that u = g + v A / LP, A being the sum of 1 / (r r') over the rounds, does not change while a feature is absent:
w = u - v (A + 1 / r) / LP, and a gradient d adds d to v and d A' / LP to u.
"""

import numpy as np

from libc.math cimport fabs, log, pow, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid, sigmoids
from varifold.linear._problems cimport TOGETHER, add_centred, set_targets, step_centred

from varifold._engine.merging import APPROXIMATE, weighted_mean

# shared numbers of a problem; r starts at 1, and r - 1 is stored, here and per slot
cdef enum:
    R = 0       # r - 1: decayed count of rounds in the centre
    A = 1       # sum of 1 / (r r')
    T = 2       # rounds since the last drift
    F = 3       # of these, answered wrongly
    T_WARN = 4  # T and F since the error rate was last within the warning level
    F_WARN = 5
    P_MIN = 6   # lowest error rate, and its standard deviation
    S_MIN = 7
    GLOBALS = 8

cdef double FEWEST = 30.0  # rounds before the test for drift
cdef double FAR = 1e4       # above it A is added into u, before digits cancel


cdef void decay_centres(FTRLADPRule rule, double* shared, Py_ssize_t m, const double* wrong,
                        double* factor) noexcept nogil:
    """count_round() and decay_centre() of m problems; what the latter returns into `factor`."""
    cdef double keep[TOGETHER]
    cdef double t[TOGETHER]
    cdef double rate[TOGETHER]
    cdef double spread[TOGETHER]
    cdef double r[TOGETHER]
    cdef double a[TOGETHER]
    cdef double old
    cdef double* g
    cdef Py_ssize_t c
    for c in range(m):
        g = shared + c * GLOBALS
        keep[c] = rule.count(g, wrong[c] > 0.5)
        t[c] = g[T]
        rate[c] = g[F]
        r[c] = g[R]
        a[c] = g[A]
    for c in range(m):
        rate[c] = (rate[c] + 1.0) / (t[c] + 2.0)
        spread[c] = sqrt(rate[c] * (1.0 - rate[c]) / t[c])
    for c in range(m):
        if t[c] > FEWEST:
            rule.test_drift(shared + c * GLOBALS, rate[c], spread[c], wrong[c] > 0.5)
            keep[c] = (1.0 - rule.kappa) * keep[c] + rule.kappa * rate[c]
    for c in range(m):
        old = 1.0 + r[c]
        r[c] = keep[c] * old
        a[c] += 1.0 / (old * (1.0 + r[c]))
        factor[c] = a[c] / rule.LP
    for c in range(m):
        shared[c * GLOBALS + R] = r[c]
        shared[c * GLOBALS + A] = a[c]


cdef void learn_problems(FTRLADPRule rule, View* v, int y, double w, double* scores,
                         double* chances) noexcept nogil:
    """update() of every problem in closed form, with the scores before it and their sigmoids, unless NULL."""
    cdef double f[TOGETHER]
    cdef double slope[TOGETHER]
    cdef double factor[TOGETHER]
    cdef double wrong[TOGETHER]
    cdef double target[TOGETHER]
    cdef Py_ssize_t c, m, first = 0
    while first < rule.problems:
        m = min(<Py_ssize_t> TOGETHER, rule.problems - first)
        rule.score_problems(v, first, m, f)
        set_targets(target, m, y - first)
        sigmoids(m, f, slope)
        if chances != NULL:
            memcpy(chances + first, slope, m * sizeof(double))
        for c in range(m):
            target[c] = max(target[c], 0.0)
            wrong[c] = fabs(target[c] - slope[c])
            slope[c] = w * (slope[c] - target[c])
        decay_centres(rule, rule.shared + first * GLOBALS, m, wrong, factor)
        step_centred(rule.state + first, rule.stride, rule.plane, m, v.n, v.slot, v.x, slope, factor)
        for c in range(first, first + m):
            if rule.shared[c * rule.globals + A] > FAR:
                rule.rebase(<int> c)
        if scores != NULL:
            memcpy(scores + first, f, m * sizeof(double))
        first += m


cdef class FTRLADPRule(BinaryRule):
    """Per slot and problem: v and u (closed form), v and h (with L1 or L2), or v, h and r - 1 (per coordinate)."""

    def __cinit__(self, double L1, double L2, double LP, int decay, double kappa, bint per_coordinate):
        self.declare_rule(3 if per_coordinate else 2, GLOBALS)
        self.L1 = L1
        self.L2 = L2
        self.LP = LP
        self.decay = decay
        self.kappa = kappa
        self.per_coordinate = per_coordinate
        self.closed = L1 == 0.0 and L2 == 0.0 and not per_coordinate

    cdef void start(self, int c) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        g[P_MIN] = 1.0
        g[S_MIN] = 10.0

    cdef void negate(self, int c) noexcept nogil:
        cdef Py_ssize_t slot
        cdef double* s
        for slot in range(self.capacity):
            s = at(self, <int32_t> slot, c)
            s[0] = 0.0 - s[0]
            s[self.plane] = 0.0 - s[self.plane]

    cdef double weight(self, double* s, double* g) noexcept nogil:
        """The weight of a slot with numbers s in a problem with shared numbers g."""
        cdef double z, r
        if self.closed:
            return s[self.plane] - s[0] * ((g[A] + 1.0 / (1.0 + g[R])) / self.LP)
        z = s[0] - self.LP * s[self.plane]
        if fabs(z) <= self.L1:
            return 0.0
        r = 1.0 + (s[2 * self.plane] if self.per_coordinate else g[R])
        return -(z - self.L1 if z > 0.0 else z + self.L1) / (self.L2 + self.LP * r)

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return self.weight(at(self, slot, c), self.shared + c * self.globals)

    cdef double score(self, View* v, int c) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef double f = 0.0, factor
        cdef Py_ssize_t i, plane = self.plane
        if self.closed:
            factor = (g[A] + 1.0 / (1.0 + g[R])) / self.LP
            for i in range(v.n):
                s = at(self, v.slot[i], c)
                f += (s[plane] - s[0] * factor) * v.x[i]
        else:
            for i in range(v.n):
                f += self.weight(at(self, v.slot[i], c), g) * v.x[i]
        return f

    cdef double decay_at(self, double t) noexcept nogil:
        """The decay of the centre in round t without errors."""
        if self.decay == 0:
            return 1.0 - pow(t, -1.0 / 3.0)
        if self.decay == 1:
            return 1.0 - 1.0 / sqrt(t)
        if self.decay == 2:
            return 1.0 - 1.0 / t
        if self.decay == 3:
            return t / (t + 1.0)
        return 1.0 - log(t) / (2.0 * t)

    cdef double count(self, double* g, bint wrong) noexcept nogil:
        """Count the round; returns the decay of the centre without errors."""
        g[T] += 1.0
        g[F] += wrong
        if g[T] != self.last_t:  # the problems of most labels have learned as many rounds
            self.last_t = g[T]
            self.last_keep = self.decay_at(g[T])
        return self.last_keep

    cdef double count_round(self, double* g, bint wrong) noexcept nogil:
        """Count the round and test for drift; returns the decay of the centre."""
        cdef double keep = self.count(g, wrong), t = g[T], rate
        if t <= FEWEST:
            return keep
        rate = (g[F] + 1.0) / (t + 2.0)
        self.test_drift(g, rate, sqrt(rate * (1.0 - rate) / t), wrong)
        return (1.0 - self.kappa) * keep + self.kappa * rate

    cdef void test_drift(self, double* g, double rate, double spread, bint wrong) noexcept nogil:
        """Gama's warning and drift levels, of an error rate and its standard deviation."""
        if rate + spread < g[P_MIN] + g[S_MIN]:
            g[P_MIN] = rate
            g[S_MIN] = spread
        if rate + spread < g[P_MIN] + 2.0 * g[S_MIN]:
            g[T_WARN] = 0.0
            g[F_WARN] = 0.0
        else:
            g[T_WARN] += 1.0
            g[F_WARN] += wrong
            if rate + spread > g[P_MIN] + 3.0 * g[S_MIN]:
                g[T] = g[T_WARN]
                g[F] = g[F_WARN]
                g[P_MIN] = 1.0
                g[S_MIN] = 10.0

    cdef double decay_centre(self, double* g, double keep) noexcept nogil:
        """R and A after a round of the closed form; returns A / LP."""
        cdef double old = 1.0 + g[R]
        g[R] = keep * old
        g[A] += 1.0 / (old * (1.0 + g[R]))
        return g[A] / self.LP

    cdef void rebase(self, int c) noexcept nogil:
        """Add A into u and set it to zero; no weight changes."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef Py_ssize_t slot
        for slot in range(self.space.size):
            s = at(self, <int32_t> slot, c)
            s[self.plane] -= s[0] * (g[A] / self.LP)
        g[A] = 0.0

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """One round; returns the score before it. Only with L1 or L2 does it visit absent features."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef double f = self.score(v, c), p = sigmoid(f), target = 1.0 if y > 0.0 else 0.0
        cdef double slope = w * (p - target), keep, old, d
        cdef Py_ssize_t i, plane = self.plane
        keep = self.count_round(g, fabs(target - p) > 0.5)
        if self.closed:
            old = self.decay_centre(g, keep)
            for i in range(v.n):
                s = at(self, v.slot[i], c)
                d = slope * v.x[i]
                s[0] += d
                s[plane] += d * old
            if g[A] > FAR:
                self.rebase(c)
        elif self.per_coordinate:
            for i in range(v.n):
                s = at(self, v.slot[i], c)
                s[plane] = keep * s[plane] + self.weight(s, g)
                s[2 * plane] = keep * (1.0 + s[2 * plane])
                s[0] += slope * v.x[i]
        else:
            for i in range(self.space.size):
                s = at(self, <int32_t> i, c)
                s[plane] = keep * s[plane] + self.weight(s, g)
            g[R] = keep * (1.0 + g[R])
            for i in range(v.n):
                at(self, v.slot[i], c)[0] += slope * v.x[i]
        return f

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        if self.closed:
            learn_problems(self, v, y, w, scores, chances)
        else:
            BinaryRule.update_all(self, v, y, w, scores, chances)
        return self.closed

    cdef void score_problems(self, View* v, Py_ssize_t first, Py_ssize_t m, double* out) noexcept nogil:
        """The scores in closed form of up to TOGETHER problems from `first` on."""
        cdef double factor[TOGETHER]
        cdef double r[TOGETHER]
        cdef double* g = self.shared + first * GLOBALS
        cdef Py_ssize_t c
        for c in range(m):
            factor[c] = g[c * GLOBALS + A]
            r[c] = g[c * GLOBALS + R]
        for c in range(m):
            factor[c] = (factor[c] + 1.0 / (1.0 + r[c])) / self.LP
        memset(out, 0, m * sizeof(double))
        add_centred(out, self.state + first, self.stride, self.plane, m, v.n, v.slot, v.x, factor)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t first = 0
        if self.problems == 1 or not self.closed:
            BinaryRule.scores(self, v, out)
            return
        while first < self.problems:
            self.score_problems(v, first, min(<Py_ssize_t> TOGETHER, self.problems - first), out + first)
            first += TOGETHER

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """The mean of gradients, centres and counts. In the closed form A is added into u first, as rebase() does.

        The drift test starts again: error rates of learners side by side do not follow each other.
        """
        first = [0.0] * self.globals
        first[P_MIN] = 1.0
        first[S_MIN] = 10.0
        shared = np.stack([part.by_problem("shared", first) for part in parts])
        states = [part.by_slot_problem("state", (0, 1)) for part in parts]
        if self.closed:
            for state, g in zip(states, shared):
                state[..., 1] -= state[..., 0] * (g[:, A] / self.LP)
        for part, state in zip(parts, states):
            part.rescaled(state[..., 0])
            part.rescaled(state[..., 1])
        steps = np.stack([part.learned * g[:, T] for part, g in zip(parts, shared)])
        merged = np.tile(np.asarray(first), (shared.shape[1], 1))
        merged[:, R] = (steps * shared[..., R]).sum(axis=0) / np.maximum(steps.sum(axis=0), 1.0)
        merged[:, T] = shared[..., T].sum(axis=0)
        merged[:, F] = shared[..., F].sum(axis=0)
        return {"state": weighted_mean(parts, states), "shared": merged}

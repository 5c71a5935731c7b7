"""FTRL-ADP: logistic follow-the-regularised-leader with a decaying proximal centre and a drift test.

With v the summed gradients, h = keep h + w and r = 1 + keep r the weights are those that minimise
v.w + LP/2 (r w.w - 2 h.w) + L1 |w|_1 + L2/2 w.w: w = -(z - sign(z) L1) / (L2 + LP r), z = v - LP h, 0 where |z| <= L1.

Without L1 and L2 the weights of all coordinates have a closed form. With g = h / r a round subtracts v / (LP r r')
from g, so that u = g + v A / LP, A being the sum of 1 / (r r') over the rounds, is constant while a feature is absent:
w = u - v (A + 1 / r) / LP, and a gradient d adds d to v and d A' / LP to u.
"""

import numpy as np

from libc.math cimport fabs, log, pow, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoids
from varifold._numeric.wide cimport inlined, wide

from varifold._engine.merging import APPROXIMATE, weighted_mean

# state per problem; r starts at 1, and r - 1 is stored, here and per slot
cdef enum:
    R = 0       # r - 1: decayed count of rounds in the centre
    A = 1       # sum of 1 / (r r')
    T = 2       # rounds since the last drift
    F = 3       # wrong predictions among them
    T_WARN = 4  # T and F since the error rate was last within the warning level
    F_WARN = 5
    P_MIN = 6   # lowest error rate, and its standard deviation
    S_MIN = 7
    GLOBALS = 8

cdef double FEWEST = 30.0  # rounds before the test for drift
cdef double FAR = 1e4       # above it A is folded into u, before digits cancel


cdef class FTRLADPRule(BinaryRule)    # used by the functions before its definition


cdef inline inlined weigh_problems(FTRLADPRule rule, View* v, int first, int m, double* f) noexcept nogil:
    """Compute the scores of m problems in closed form: w = u - v (A + 1 / r) / LP."""
    cdef double factor[TOGETHER]
    cdef double* g = rule.shared + first * GLOBALS
    cdef double* s
    cdef double x
    cdef Py_ssize_t i, plane = rule.plane
    cdef int c
    memset(f, 0, m * sizeof(double))
    for c in range(m):
        factor[c] = (g[c * GLOBALS + A] + 1.0 / (1.0 + g[c * GLOBALS + R])) / rule.LP
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        x = v.x[i]
        for c in range(m):
            f[c] += (s[plane + c] - s[c] * factor[c]) * x


cdef inline inlined begin_round(FTRLADPRule rule, int first, int m, const double* y, double w, const double* f,
                                double* slope, double* keep) noexcept nogil:
    """Count a round of m problems and test them for drift.

    `slope` becomes the derivative of the loss by the score, times the weight; `keep` the decay of the centre.
    """
    cdef double* g
    cdef double p, target
    cdef bint wrong
    cdef int c
    sigmoids(m, f, slope)
    for c in range(m):
        g = rule.shared + (first + c) * GLOBALS
        target = max(y[c], 0.0)
        p = slope[c]
        wrong = fabs(target - p) > 0.5
        slope[c] = w * (p - target)
        keep[c] = rule.count_round(g, wrong)


cdef inline inlined learn_problems(FTRLADPRule rule, View* v, int first, int m, const double* y, double w,
                                   double* f) noexcept nogil:
    """Update m problems in closed form: a gradient d adds d to v and d A' / LP to u."""
    cdef double slope[TOGETHER]
    cdef double factor[TOGETHER]    # keep, then A' / LP
    cdef double* g = rule.shared + first * GLOBALS
    cdef double* s
    cdef double x, old
    cdef Py_ssize_t i, plane = rule.plane
    cdef int c
    weigh_problems(rule, v, first, m, f)
    begin_round(rule, first, m, y, w, f, slope, factor)
    for c in range(m):
        old = 1.0 + g[c * GLOBALS + R]
        g[c * GLOBALS + R] = factor[c] * old
        g[c * GLOBALS + A] += 1.0 / (old * (1.0 + g[c * GLOBALS + R]))
        factor[c] = g[c * GLOBALS + A] / rule.LP
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        x = v.x[i]
        for c in range(m):
            s[c] += slope[c] * x
            s[plane + c] += slope[c] * x * factor[c]
    for c in range(m):
        if g[c * GLOBALS + A] > FAR:
            rule.rebase(first + c)


cdef wide weigh_many(FTRLADPRule rule, View* v, int first, int m, double* f) noexcept nogil:
    weigh_problems(rule, v, first, m, f)


cdef wide learn_many(FTRLADPRule rule, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
    learn_problems(rule, v, first, m, y, w, f)


cdef class FTRLADPRule(BinaryRule):
    """Per slot and problem: v and u (closed form), v and h (with L1 or L2), or v, h and r - 1 (per coordinate)."""

    cdef readonly double L1, L2, LP, kappa
    cdef readonly int decay
    cdef readonly bint per_coordinate, closed
    cdef double last_t, last_keep   # latest decay of the centre, and the round it was computed for

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
        """Return the weight of a slot with state s in a problem with state g."""
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

    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil:
        cdef double* g
        cdef double score
        cdef Py_ssize_t i
        cdef int c
        if self.closed and m == 1:
            weigh_problems(self, v, first, 1, &score)
            f[0] = score
        elif self.closed:
            weigh_many(self, v, first, m, f)
        else:
            for c in range(m):
                f[c] = 0.0
                g = self.shared + (first + c) * GLOBALS
                for i in range(v.n):
                    f[c] += self.weight(at(self, v.slot[i], first + c), g) * v.x[i]

    cdef double decay_at(self, double t) noexcept nogil:
        """Return the decay of the centre in round t, without the error term."""
        if self.decay == 0:
            return 1.0 - pow(t, -1.0 / 3.0)
        if self.decay == 1:
            return 1.0 - 1.0 / sqrt(t)
        if self.decay == 2:
            return 1.0 - 1.0 / t
        if self.decay == 3:
            return t / (t + 1.0)
        return 1.0 - log(t) / (2.0 * t)

    cdef double count_round(self, double* g, bint wrong) noexcept nogil:
        """Count the round and test for drift; return the decay of the centre."""
        cdef double t, rate
        g[T] += 1.0
        g[F] += wrong
        t = g[T]
        if t != self.last_t:  # most problems share the same round
            self.last_t = t
            self.last_keep = self.decay_at(t)
        if t <= FEWEST:
            return self.last_keep
        rate = (g[F] + 1.0) / (t + 2.0)
        self.test_drift(g, rate, sqrt(rate * (1.0 - rate) / t), wrong)
        return (1.0 - self.kappa) * self.last_keep + self.kappa * rate

    cdef void test_drift(self, double* g, double rate, double spread, bint wrong) noexcept nogil:
        """Compare an error rate with Gama's warning and drift levels, 2 and 3 deviations above the lowest rate."""
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

    cdef void rebase(self, int c) noexcept nogil:
        """Fold v A / LP into u and set A to zero; weights do not change."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef Py_ssize_t slot
        for slot in range(self.space.size):
            s = at(self, <int32_t> slot, c)
            s[self.plane] -= s[0] * (g[A] / self.LP)
        g[A] = 0.0

    cdef int batch(self, View* v) noexcept nogil:
        return TOGETHER if self.closed else 1

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        cdef double score  # a local variable: the compiler knows that no weight is stored there
        if not self.closed:
            self.learn_open(v, first, y, w, f)
        elif m == 1:
            learn_problems(self, v, first, 1, y, w, &score)
            f[0] = score
        else:
            learn_many(self, v, first, m, y, w, f)

    cdef void learn_open(self, View* v, int c, const double* y, double w, double* f) noexcept nogil:
        """Update a problem with L1 or L2, whose centre moves for absent features too, or a centre per coordinate."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef double slope, keep
        cdef Py_ssize_t i, plane = self.plane
        self.score_problems(v, c, 1, f)
        begin_round(self, c, 1, y, w, f, &slope, &keep)
        if self.per_coordinate:
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

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """Average gradients, centres and counts. In the closed form add A into u first, as rebase() does.

        The drift test starts again: error rates of parallel learners do not follow each other.
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

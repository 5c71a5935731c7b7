"""Online gradient descent on the logistic loss in bits, log2(1 + e^-yf), with a rate of 1 / (c sqrt(t)); or on (y - f)^2."""

from libc.math cimport sqrt
from libc.string cimport memcpy, memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid
from varifold._numeric.rows cimport add_rows, add_to_rows
from varifold.linear._problems cimport TOGETHER, set_targets, slopes_of

from varifold._engine.merging import APPROXIMATE, LOGISTIC, settle_intercept, total, weighted_mean

cdef double PER_BIT = 1.4426950408889634  # 1 / ln 2
cdef double LARGEST = 1e150               # no weight or rate of a square loss is larger


cdef inline double step_of(OGDRule rule, Py_ssize_t c, double f, double y, double w) noexcept nogil:
    """Count an instance of problem c; what its values are multiplied by, f being its score."""
    rule.shared[c] += 1.0
    return sigmoid(-y * f) * (w * y * PER_BIT / (rule.c * sqrt(rule.shared[c])))


cdef void learn_problems(OGDRule rule, View* v, int y, double w, double* scores,
                         double* chances) noexcept nogil:
    """update() of every problem, with the scores before it and their sigmoids, unless NULL."""
    cdef double f[TOGETHER]
    cdef double step[TOGETHER]
    cdef double target[TOGETHER]
    cdef double* t
    cdef Py_ssize_t c, m, first = 0
    while first < rule.problems:
        m = min(<Py_ssize_t> TOGETHER, rule.problems - first)
        memset(f, 0, m * sizeof(double))
        add_rows(f, rule.state + first, rule.stride, m, v.n, v.slot, v.x)
        t = rule.shared + first
        set_targets(target, m, y - first)
        slopes_of(m, f, target, y - first, step, chances + first if chances != NULL else NULL)
        for c in range(m):
            t[c] += 1.0
            step[c] *= w * target[c] * PER_BIT / (rule.c * sqrt(t[c]))
        add_to_rows(rule.state + first, rule.stride, m, v.n, v.slot, v.x, step)
        if scores != NULL:
            memcpy(scores + first, f, m * sizeof(double))
        first += m


cdef class OGDRule(BinaryRule):
    """Per slot and problem: the weight. Per problem: t, the instances learned."""

    def __cinit__(self, double c):
        self.declare_rule(1, 1)
        self.linear = True
        self.c = c

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """One gradient step; returns the score before it."""
        cdef double f = self.score(v, c), step = step_of(self, c, f, y, w)
        cdef Py_ssize_t i
        for i in range(v.n):
            at(self, v.slot[i], c)[0] += step * v.x[i]
        return f

    cdef void descend(self, View* v, int c, double error, double w) noexcept nogil:
        """One gradient step on the square loss of this error, no further than to where it vanishes."""
        cdef Py_ssize_t i
        cdef double norm = 0.0, step
        cdef double* weight
        for i in range(v.n):
            norm += v.x[i] * v.x[i]
        self.shared[c] += 1.0
        step = min(2.0 * w / (self.c * sqrt(self.shared[c])), LARGEST)
        if step * norm > 1.0:
            step = 1.0 / norm
        for i in range(v.n):
            weight = at(self, v.slot[i], c)
            weight[0] = min(max(weight[0] + step * error * v.x[i], -LARGEST), LARGEST)

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        learn_problems(self, v, y, w, scores, chances)
        return True

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """The mean weight of those that saw the feature; the rate goes on as after all instances."""
        states = [part.by_slot_problem("state") for part in parts]
        for part, state in zip(parts, states):
            part.rescaled(state[..., 0])
        merged = weighted_mean(parts, states)
        settle_intercept(parts, merged[..., 0], LOGISTIC)
        return {"state": merged,
                "shared": total([part.by_problem("shared", [0.0]) for part in parts])}

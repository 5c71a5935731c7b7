"""Online gradient descent on the logistic loss in bits, log2(1 + e^-yf), with a rate of 1 / (c sqrt(t)); or on (y - f)^2."""

from libc.math cimport sqrt

from varifold._engine.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid

from varifold._engine.merging import APPROXIMATE, total, weighted_mean

cdef double PER_BIT = 1.4426950408889634  # 1 / ln 2
cdef double LARGEST = 1e150               # no weight or rate of a square loss is larger


cdef class OGDRule(BinaryRule):
    """Per slot and problem: the weight. Per problem: t, the instances learned."""

    def __cinit__(self, double c):
        self.declare_rule(1, 1)
        self.linear = True
        self.c = c

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """One gradient step; returns the score before it."""
        cdef double f = self.score(v, c), step = sigmoid(-y * f)
        cdef Py_ssize_t i
        self.shared[c] += 1.0
        step *= w * y * PER_BIT / (self.c * sqrt(self.shared[c]))
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

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """The mean weight of those that saw the feature; the rate goes on as after all instances."""
        states = [part.by_slot_problem("state") for part in parts]
        for part, state in zip(parts, states):
            part.rescaled(state[..., 0])
        return {"state": weighted_mean(parts, states),
                "shared": total([part.by_problem("shared", [0.0]) for part in parts])}

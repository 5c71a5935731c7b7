"""Online gradient descent on the logistic loss in bits, log2(1 + e^-yf), of rate 1 / (c sqrt(t)); or on (y - f)^2."""

from libc.math cimport sqrt
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoids
from varifold._numeric.rows cimport add_rows, add_to_rows
from varifold._numeric.wide cimport inlined, wide

from varifold._engine.merging import APPROXIMATE, LOGISTIC, average, total

cdef double PER_BIT = 1.4426950408889634  # 1 / ln 2
cdef double LARGEST = 1e150               # bound of weights and rates under the square loss


cdef inline inlined learn_problems(OGDRule rule, View* v, int first, int m, const double* y, double w,
                                   double* f) noexcept nogil:
    """Update m problems: w += sigmoid(-y f) y x / (ln 2 c sqrt(t))."""
    cdef double margin[TOGETHER]
    cdef double step[TOGETHER]
    cdef double* weight = rule.state + first
    cdef double* t = rule.shared + first
    cdef int c
    memset(f, 0, m * sizeof(double))
    add_rows(f, weight, rule.stride, m, v.n, v.slot, v.x)
    for c in range(m):
        margin[c] = -y[c] * f[c]
    sigmoids(m, margin, step)
    for c in range(m):
        t[c] += 1.0
        step[c] *= w * y[c] * PER_BIT / (rule.c * sqrt(t[c]))
    add_to_rows(weight, rule.stride, m, v.n, v.slot, v.x, step)


cdef wide learn_many(OGDRule rule, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
    learn_problems(rule, v, first, m, y, w, f)


cdef class OGDRule(BinaryRule):
    """Per slot and problem: the weight. Per problem: t, the instances learned."""

    def __cinit__(self, double c):
        self.declare_rule(1, 1)
        self.c = c

    cdef int batch(self, View* v) noexcept nogil:
        return TOGETHER

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        cdef double score  # a local variable: the compiler knows that no weight is stored there
        if m == 1:
            learn_problems(self, v, first, 1, y, w, &score)
            f[0] = score
        else:
            learn_many(self, v, first, m, y, w, f)

    cdef void descend(self, View* v, int c, double error, double w) noexcept nogil:
        """Update by a gradient step on the square loss of this error, at most to where the error vanishes."""
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
        """Average the weights of the models that saw the feature; the rate continues as after all instances."""
        return {"state": average(parts, [part.by_slot_problem("state") for part in parts], LOGISTIC),
                "shared": total([part.by_problem("shared", [0.0]) for part in parts])}

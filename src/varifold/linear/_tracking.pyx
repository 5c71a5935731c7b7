"""Linear regression that tracks the targets: normalised gradient steps of a fixed rate, and a level with its own rate.

With e = y - level - w.x: level += a e, and w += b e x / (1 + x.x). The rates do not decay, so that it follows a
drifting target; an expert of the default regressor.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t

from varifold._engine.models.regression cimport RegressionModel, scaled_error
from varifold._engine.view cimport View

from varifold._engine.state import fixed, per_slot


cdef class TrackingRegression(RegressionModel):
    """Linear tracking model; `level_rate` and `rate` are the a and b above."""

    cdef double* weight            # [slot]
    cdef double* level             # [1]: current level of the targets
    cdef double level_rate, rate

    def __cinit__(self, double level_rate, double rate):
        self.level_rate = level_rate
        self.rate = rate
        self.sees_empty = True
        self.arrays.declare("weight", &self.weight, per_slot())
        self.arrays.declare("level", &self.level, fixed(1))

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.weight[slot] = 0.0

    cdef double score(self, View* v) noexcept nogil:
        cdef Py_ssize_t i
        cdef double z = self.level[0]
        for i in range(v.n):
            if v.slot[i] != 0:
                z += self.weight[v.slot[i]] * v.x[i]
        return z

    cdef double predict(self, View* v) noexcept nogil:
        return self.score(v)

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        cdef Py_ssize_t i
        cdef double error, norm = 1.0, share = min(w, 1.0)
        if self.target.weight == w:  # the first target
            self.level[0] = y
            return
        error = scaled_error(self.target, y - self.score(v)) * self.target.deviation
        for i in range(v.n):
            if v.slot[i] != 0:
                norm += v.x[i] * v.x[i]
        self.level[0] += self.level_rate * share * error
        for i in range(v.n):
            if v.slot[i] != 0:
                self.weight[v.slot[i]] += self.rate * share * error * v.x[i] / norm

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return fabs(self.weight[slot])

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(v.n):
            out[i] = self.weight[v.slot[i]] * v.x[i] if v.slot[i] != 0 else 0.0

    cdef dict absent_contributions(self, View* v, int label):
        return {"(intercept)": self.level[0] - self.target.mean}

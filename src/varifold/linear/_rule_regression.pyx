"""Regression with the weights of a two-class rule: the prediction is the target's mean plus the rule's score."""

import numpy as np

from libc.stdint cimport int32_t

from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.regression_model cimport RegressionModel
from varifold._engine.space cimport Space
from varifold._engine.view cimport View


cdef class RuleRegression(RegressionModel):
    """A rule whose weights are in the target's units; a subclass calls ``hold`` at first and writes ``learn_target``."""

    cdef int hold(self, BinaryRule rule) except -1:
        """Take the rule."""
        self.rule = rule
        self.prepares = rule.prepares
        return 0

    cdef int attach(self, Space space) except -1:
        self.rule.attach(space)
        return RegressionModel.attach(self, space)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if self.rule.capacity < capacity:
            self.rule.grow(capacity)
        return RegressionModel.grow(self, capacity)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        return self.rule.prepare(slots, n, n_new, y)

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.rule.forget(slot)

    cdef double predict(self, View* v) noexcept nogil:
        return self.target.mean + self.rule.score(v, 0)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.rule.magnitude(slot)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(v.n):
            out[i] = self.rule.coefficient(v.slot[i], 0) * v.x[i]

    def dump(self, Py_ssize_t size):
        arrays = self.rule.dump(size)
        del arrays["classes"]
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        if self.alone and len(arrays["state"]) != self.space.size:
            raise ValueError(f"{len(arrays['state'])} rows of weights for {self.space.size} slots")
        self.rule.fill({**arrays, "classes": np.zeros(1, dtype=np.int64)}, capacity)
        self.capacity = capacity

    def notes(self):
        return self.rule.notes()

    def nbytes(self):
        return self.rule.nbytes()

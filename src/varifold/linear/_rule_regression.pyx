"""Regression with the weights of a two-class rule: the prediction is the target's mean plus the rule's score."""

import numpy as np

from varifold._engine.models.one_vs_rest cimport BinaryRule, score_one
from varifold._engine.models.regression cimport RegressionModel
from varifold._engine.view cimport View


cdef class RuleRegression(RegressionModel):
    """Rule with weights in the target's units; a subclass calls ``hold_rule`` and defines ``learn_target``."""

    cdef int hold_rule(self, BinaryRule rule) except -1:
        """Use the weights of this rule for prediction."""
        self.rule = rule
        return self.hold("", rule)

    cdef double predict(self, View* v) noexcept nogil:
        return self.target.mean + score_one(self.rule, v, 0)

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

"""FESL for regression: gradient descent on the square loss through a switch of the feature space.

Both models score the deviation from the mean of the targets, in the target's units. The weights of the mixture are
moved by squared errors over (2 deviations)^2, at most 1.
"""

from varifold._engine.models.regression cimport RegressionModel, TargetStatistics, scaled_error
from varifold._engine.view cimport View
from varifold.evolving._evolving cimport EvolvingModel
from varifold.linear._ogd cimport OGDRule

from varifold._engine.state import checked_array

cdef double WORST = 2.0    # error, in deviations of the targets, at which the loss is capped


cdef class EvolvingRegression(EvolvingModel):
    """Pair of OGD rules and their map, for the single problem of regression."""

    cdef TargetStatistics target
    cdef double wanted      # current target, as a deviation from the mean

    def __cinit__(self):
        if not isinstance(self.first, OGDRule) or not isinstance(self.second, OGDRule):
            raise TypeError(f"FESL for regression needs rules of OGD. Got a {type(self.first).__name__} instead.")
        self.reserve_class()
        self.add_class()
        self.reserve_class()
        self.add_class()    # two classes make one problem

    cdef double rule_loss(self, int e, int y) noexcept nogil:
        cdef double error = scaled_error(self.target, self.wanted - self.rule_score(e, 0)) / WORST
        return min(error * error, 1.0)

    cdef void rule_learn(self, int e, int y, double w) noexcept nogil:
        cdef double error = scaled_error(self.target, self.wanted - self.rule_score(e, 0)) * self.target.deviation
        if e == 0:
            (<OGDRule> self.first).descend(&self.inner, 0, error, w)
        else:
            (<OGDRule> self.second).descend(&self.inner, 0, error, w)

    def fill(self, dict arrays, Py_ssize_t capacity):
        for name in ("classes", "rule0.classes", "rule1.classes"):
            checked_array(arrays, name, "i", (1,), 2, 2)
        EvolvingModel.fill(self, arrays, capacity)


cdef class FESLRegression(RegressionModel):
    """Regression model around the pair of rules."""

    cdef readonly EvolvingRegression evolving

    def __cinit__(self, EvolvingRegression evolving not None):
        self.evolving = evolving
        self.hold("", evolving)
        self.wants_columns = self.evolving.wants_columns

    cdef int attach_target(self, TargetStatistics target) except -1:
        self.evolving.target = target
        return RegressionModel.attach_target(self, target)

    cdef double predict(self, View* v) noexcept nogil:
        cdef double[2] score
        self.evolving.scores(v, score)
        return self.target.mean + score[1]

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        self.evolving.wanted = y - self.target.mean
        self.evolving.learn(v, 1, w)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        self.evolving.contributions(v, 1, out)

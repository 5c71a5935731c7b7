"""Target of regressors: numbers, their running statistics, and intervals."""

import math

cimport cython
import numpy as np

from cpython.object cimport PyObject
from libc.math cimport isnan

from varifold._engine.data.block cimport Block
from varifold._engine.conformal.levels cimport Conformal
from varifold._engine.instance cimport Instance
from varifold._engine.models.model cimport NO_LABEL, Model
from varifold._engine.names.reading cimport ABSENT, NUMBER, quick_read
from varifold._engine.models.regression cimport RegressionModel, TargetStatistics
from varifold._engine.targets.target cimport Target

from varifold._engine.data.block import target_error
from varifold.errors import DataError

INTERCEPT = "(intercept)"
cdef double ROUNDING = 1e-9    # part of the largest number by which contributions may miss the prediction


@cython.final
cdef class RealTarget(Target):
    """Finite numbers. The prediction is 0 before any, and their mean for an instance without a known feature.

    With a `Conformal`, intervals are predicted too. What a model must supply is described in `RegressionModel`.
    """

    cdef readonly TargetStatistics statistics    # of the targets learned
    cdef RegressionModel regression              # the model, by its own type
    # the instance at hand
    cdef double truth
    cdef double predicted
    cdef bint was_known                          # a target had been learned when it was predicted
    # the block at hand
    cdef const double* truths                    # [row]
    cdef double* out
    cdef double* out_bounds                      # [row][coverage][low, high]

    def __cinit__(self, Conformal conformal=None):
        self.conformal = conformal
        self.statistics = TargetStatistics()

    cdef int attach(self, Instance instance, Model model) except -1:
        Target.attach(self, instance, model)
        if not isinstance(model, RegressionModel):
            raise TypeError(f"a regressor needs a RegressionModel. Got a {type(model).__name__} instead.")
        self.regression = <RegressionModel> model
        self.regression.attach_target(self.statistics)
        return 0

    # ---------------------------------------------------------------- one instance

    cdef int read(self, object y) except -1:
        cdef int kind = quick_read(<PyObject*> y, &self.truth)
        if kind != NUMBER and kind != ABSENT:
            raise target_error(y, f"at step {self.instance.space.step + 1:,}")
        self.has_truth = kind == NUMBER
        self.y = 0 if self.has_truth else NO_LABEL
        return 0

    cdef void predict(self) noexcept nogil:
        self.predicted = self.mean_or_model()
        self.was_known = self.statistics.weight > 0.0
        if self.with_bounds:
            self.bound()

    cdef double mean_or_model(self) noexcept nogil:
        """Predict the presented instance: 0 before any target, the mean without a known feature."""
        if self.statistics.weight == 0.0:
            return 0.0
        if not self.sees_instance():
            return self.statistics.mean
        return self.regression.predict(&self.instance.view)

    cdef void learn(self, double w) noexcept nogil:
        if self.conformal is not None and self.was_known:
            self.conformal.observe_number(self.instance.slots + 1, self.instance.n, self.predicted, self.truth)
        self.statistics.absorb(self.truth, w)
        if self.sees_instance():
            self.regression.learn_target(&self.instance.view, self.truth, w)

    cdef Py_ssize_t memo_size(self, int classes) noexcept nogil:
        cdef Py_ssize_t model = self.model.memo_size(0)
        if model == 0 and self.conformal is None:
            return 0
        return 2 + model + (0 if self.conformal is None else self.conformal.memo_size())

    cdef void write_memo(self, double* out) noexcept nogil:
        out[0] = self.statistics.weight > 0.0
        out[1] = self.predicted
        out += 2
        if self.conformal is not None:
            self.conformal.write_memo(out)
            out += self.conformal.memo_size()
        if self.statistics.weight > 0.0:
            self.model.write_memo(out)

    cdef void recall(self, const double* memo) noexcept nogil:
        self.was_known = memo[0] != 0.0
        self.predicted = memo[1]
        memo += 2
        if self.conformal is not None:
            if self.was_known:
                self.conformal.read_memo(memo)
            memo += self.conformal.memo_size()
        self.model.read_memo(memo, 0)

    cdef void bound(self) noexcept nogil:
        """Compute the intervals around the prediction."""
        cdef double deviation = self.statistics.deviation, level = 0.0
        if deviation > 0.0:
            level = min(max((self.predicted - self.statistics.mean) / deviation, -3.0), 3.0)
        self.conformal.expect(self.instance.slots + 1, self.instance.n, level)
        self.conformal.bound_number(self.predicted)

    # ---------------------------------------------------------------- the rows of a block

    cdef object schedule(self, Block block, object steps, bint learn):
        if learn and block.targets is None and block.labelled.any():
            raise DataError("the block holds labels; a regressor learns numbers: pass them as targets")
        return Target.schedule(self, block, steps, learn)

    cdef int begin_block(self, Block block, bint learn, bint predict, bint probabilities, bint bounds) except -1:
        cdef Py_ssize_t n = len(block)
        cdef const double[::1] truths = np.full(max(1, n), np.nan) if n == 0 or block.targets is None else block.targets
        cdef double[::1] out
        cdef double[:, :, ::1] out_bounds
        self.begin(False, self.conformal is not None and (learn or bounds))
        predicted = np.full(max(1, n), np.nan)
        intervals = np.full((max(1, n if bounds else 0), self.conformal.k if bounds else 1, 2), np.nan)
        out, out_bounds = predicted, intervals
        self.truths = &truths[0]
        self.out = &out[0]
        self.out_bounds = &out_bounds[0, 0, 0] if bounds else NULL
        self.outputs = (block, predicted[:n] if predict else None, intervals[:n] if bounds else None)
        return 0

    cdef void read_row(self, Py_ssize_t row) noexcept nogil:
        self.truth = self.truths[row]
        self.has_truth = not isnan(self.truth)
        self.y = 0 if self.has_truth else NO_LABEL

    cdef void hide_truth(self) noexcept nogil:
        self.has_truth = False
        self.y = NO_LABEL

    cdef void write_row(self, Py_ssize_t row) noexcept nogil:
        cdef int j
        cdef double* bounds
        self.out[row] = self.predicted
        if self.out_bounds != NULL:
            bounds = self.out_bounds + row * self.conformal.k * 2
            for j in range(self.conformal.k):
                bounds[2 * j] = self.conformal.low[j]
                bounds[2 * j + 1] = self.conformal.high[j]

    cdef object end_block(self):
        """Return (predictions, NaN for rows not predicted; intervals, rows x coverages x (low, high))."""
        if self.outputs is None:
            return None
        _, predicted, intervals = self.outputs
        self.outputs = None
        return predicted, intervals

    # ---------------------------------------------------------------- what the last prediction was

    cdef object prediction(self):
        return self.predicted

    cdef object bounds(self):
        """Return (low, high) by coverage, ascending; infinite before any error was measured."""
        return self.conformal.bounds()

    cdef object explain(self, int c):
        """Return contributions by feature and by other names, which sum to the prediction."""
        if self.statistics.weight == 0.0:
            return {}, {}
        if not self.sees_instance():
            return {}, {INTERCEPT: self.statistics.mean}
        parts, others, intercept = self.contributions(0)
        others[INTERCEPT] = others.get(INTERCEPT, 0.0) + (self.statistics.mean + intercept)
        shares = [*parts.values(), *others.values()]
        if not math.isfinite(sum(map(abs, shares), abs(self.predicted))):    # numbers of a crafted file; fsum would raise
            return parts, others
        error = math.fsum([self.predicted, *(-share for share in shares)])
        # after targets of 1e16 the mean may be so large that the rounding of its sums exceeds a prediction
        if abs(error) <= ROUNDING * max(abs(self.statistics.mean), abs(self.predicted), *map(abs, shares)):
            others[INTERCEPT] += error
        return parts, others

    # ---------------------------------------------------------------- files

    cdef dict dump(self):
        return {"target": self.statistics.dump()}

    cdef int fill(self, list labels, dict arrays) except -1:
        self.statistics.fill(arrays)
        return 0

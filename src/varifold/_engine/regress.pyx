"""The engine of regressors: one door for dicts and one for blocks, which leave the same state to the last bit.

What a method must supply stands in `regression_model.pxd`.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from varifold._engine.block cimport LARGEST_WEIGHT, Block
from varifold._engine.core cimport Core
from varifold._engine.guard cimport claim, release
from varifold._engine.reading cimport NUMBER, quick_read
from varifold._engine.regression_model cimport RegressionModel, Target

from varifold._engine.block import target_error
from varifold.errors import DataError

cdef enum:
    SIGNALS = 1024   # rows of a block between two looks for Ctrl-C

INTERCEPT = "(intercept)"


def checked_schedule(Block block, schedule, bint learn):
    """The steps to take as an int64 array; refuses rows that are not there and targets that are missing."""
    n = len(block)
    missing = np.ones(n, dtype=bool) if block.targets is None else np.isnan(block.targets)
    if schedule is None:
        if learn and missing.any():
            raise target_error(None if block.targets is None else np.nan, f"of instance {int(np.argmax(missing))}")
        return np.zeros(0, dtype=np.int64)
    schedule = np.ascontiguousarray(schedule, dtype=np.int64)
    if len(schedule) and (schedule.max() > n or schedule.min() < -n or (schedule == 0).any()):
        raise DataError("a schedule names rows that are not in the block")
    if missing[-schedule[schedule < 0] - 1].any():
        raise DataError("a schedule learns an instance that has no target")
    return schedule


cdef class RegressionEngine(Core):
    """One regressor's state. For one thread at a time: a second call is refused while one runs."""

    def __cinit__(self):
        if not isinstance(self.model, RegressionModel):
            raise TypeError(f"a regressor needs a RegressionModel. Got a {type(self.model).__name__} instead.")
        self.rule = <RegressionModel> self.model
        self.target = Target()
        self.rule.attach_target(self.target)

    # ---------------------------------------------------------------- the presented instance

    cdef void learn_view(self, double y, double w) noexcept nogil:
        """Learn the presented instance with target y."""
        if self.conformal is not None and self.target.weight > 0.0:
            self.conformal.observe_number(self.slots + 1, self.n, self.prediction, y)
        self.target.absorb(y, w)
        if self.n > 0 or self.model.sees_empty:
            self.rule.learn_target(&self.view, y, w)
        self.mark_seen()

    cdef double answer(self) noexcept nogil:
        """The prediction of the presented instance: 0 before any target, the mean without a known feature."""
        if self.target.weight == 0.0:
            return 0.0
        if self.n == 0 and not self.model.sees_empty:
            return self.target.mean
        return self.rule.predict(&self.view)

    cdef void foresee(self, double prediction) noexcept nogil:
        """Bounds around the prediction of the presented instance, which holds known features only."""
        cdef double deviation = self.target.deviation, level = 0.0
        if deviation > 0.0:
            level = min(max((prediction - self.target.mean) / deviation, -3.0), 3.0)
        self.prediction = prediction
        self.conformal.foresee(self.slots + 1, self.n, level)
        self.conformal.bound_number(prediction)

    cdef int foresee_gathered(self) except -1 nogil:
        """Predict the gathered pairs and lay bounds around that, before they are learned."""
        self.present(1.0, False, False)
        self.foresee(self.answer())
        if self.calls_python:
            self.raise_pending()
        return 0

    # ---------------------------------------------------------------- one instance

    cdef double number_of(self, object y) except? -1.0:
        """The target as a number; what is none is refused."""
        cdef double number = 0.0
        if quick_read(<PyObject*> y, &number) != NUMBER:
            raise target_error(y, f"at step {self.step + 1:,}")
        return number

    def check_target(self, y):
        """Refuse a target that learning would refuse, with the same error."""
        self.number_of(y)

    cdef int learn(self, object x, object y, double w) except -1:
        """Learn one dict: check all, take the memory, then change the state."""
        cdef double number = self.number_of(y)
        self.check_weight(w)
        return self.learn_gathered(self.gather(x), number, w)

    cdef int learn_gathered(self, list pending, double number, double w) except -1:
        """Learn the gathered pairs and those pending, whose target and weight were checked."""
        if w == 0.0:
            return 0
        if self.conformal is not None:
            self.foresee_gathered()
        if pending is not None or self.model.prepares:
            self.make_ready(pending, 0)
        if pending is not None:
            self.admit(pending)
        w = min(w, LARGEST_WEIGHT)
        self.present(w, True, pending is not None or self.step == 0)
        self.learn_view(number, w)
        if self.model.n_evicted:
            self.apply_evictions()
        if self.calls_python:
            self.raise_pending()
        return 0

    def learn_one(self, x, y, w=1.0):
        """Learn one dict; when anything is wrong with it, or memory runs out, the state stays as it was."""
        cdef double weight = self.weight_of(w)
        claim(self)
        try:
            self.learn(x, y, weight)
        except MemoryError as error:
            raise self.no_memory() from error
        finally:
            release(self)

    cdef double ask(self, object x) except? -1.0:
        """Gather, present and answer one dict."""
        self.gather(x)
        return self.ask_gathered()

    cdef double ask_gathered(self) except? -1.0:
        """Present and answer the gathered pairs."""
        cdef double found
        self.present(1.0, False, False)
        found = self.answer()
        if self.calls_python:
            self.raise_pending()
        return found

    def predict_one(self, x) -> float:
        """The prediction; 0 before any target was learned."""
        claim(self)
        try:
            return self.ask(x)
        finally:
            release(self)

    def intervals_one(self, x):
        """(low, high) by coverage, ascending; infinite before any error was measured."""
        claim(self)
        try:
            self.foresee(self.ask(x))
            return self.conformal.bounds()
        finally:
            release(self)

    def explain_one(self, x):
        """Contributions by name, which sum to the prediction."""
        claim(self)
        try:
            return self.explain(x)
        finally:
            release(self)

    cdef dict explain(self, object x):
        cdef Py_ssize_t i
        cdef double[::1] share
        cdef double rest
        self.ask(x)
        if self.target.weight == 0.0:
            return {}
        parts = {}
        rest = self.target.mean
        if self.n == 0 and not self.model.sees_empty:
            return {INTERCEPT: rest}
        share = np.zeros(max(1, self.view.n))
        self.model.contributions(&self.view, 0, &share[0])
        for i in range(self.view.n):
            if self.view.slot[i] == 0:
                rest += share[i]
            else:
                parts[<object> self.space.key[self.view.slot[i]]] = share[i]
        for key, part in self.model.absent_contributions(&self.view, 0).items():
            parts[key if type(key) is str else self.space.name_of(key)] = part
        if self.calls_python:
            self.raise_pending()
        parts[INTERCEPT] = parts.get(INTERCEPT, 0.0) + rest
        return parts

    # ---------------------------------------------------------------- blocks

    def run(self, Block block not None, schedule=None, bint learn=True, bint predict=True, bint intervals=False):
        """Walk a block without returning to Python between instances.

        Without a schedule every row is predicted (when asked) and then learned (when asked). A schedule is an int64
        array of steps: i + 1 predicts row i, -(i + 1) learns row i. Returns one prediction per row, NaN for rows that
        the schedule does not predict; None when not asked for. With `intervals`, (predictions, bounds): low and high
        by coverage, rows x coverages x 2.
        """
        cdef int64_t before = self.step
        claim(self)
        try:
            return self.walk(block, checked_schedule(block, schedule, learn), schedule is not None, learn, predict,
                             intervals)
        except MemoryError as error:
            raise self.no_memory_after(self.step - before) from error
        finally:
            release(self)

    cdef object walk(self, Block block, schedule, bint planned, bint learn, bint predict, bint intervals):
        cdef Py_ssize_t n = len(block), row, i, total
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices if len(block.indices) else np.zeros(1, dtype=np.int32)
        cdef const double[::1] val = block.values if len(block.values) else np.zeros(1)
        cdef const double[::1] targets = np.zeros(max(1, n)) if block.targets is None else block.targets
        cdef const double[::1] weights = block.weights
        cdef const int64_t[::1] steps = schedule
        cdef bint weighted = block.weights is not None
        cdef int64_t code
        predicted = np.full(max(1, n), np.nan)
        cdef double[::1] out = predicted
        bounds = np.full((n if intervals else 0, self.conformal.k if intervals else 0, 2), np.nan)
        cdef double[:, :, ::1] out_bounds = bounds
        self.bind(block.vocabulary)
        self.reserve(int(np.diff(block.indptr).max()) if n else 0)
        total = steps.shape[0] if planned else n
        with nogil:
            for i in range(total):
                if i % SIGNALS == SIGNALS - 1:
                    with gil:
                        PyErr_CheckSignals()
                code = steps[i] if planned else i + 1
                row = (code if code > 0 else -code) - 1
                self.step_row(code, &idx[0] + ptr[row], &val[0] + ptr[row], ptr[row + 1] - ptr[row], targets[row],
                              weights[row] if weighted else 1.0, learn and (code < 0 or not planned),
                              &out[row] if predict and code > 0 else NULL,
                              &out_bounds[row, 0, 0] if intervals and code > 0 else NULL)
        if intervals:
            return predicted[:n], bounds
        return predicted[:n] if predict else None

    cdef int step_row(self, int64_t code, const int32_t* idx, const double* val, Py_ssize_t m, double y, double w,
                      bint learns, double* out, double* bounds) except -1 nogil:
        """Predict a row into `out` and its interval into `bounds`, unless these are NULL, and learn it if asked.

        One scaling does for both where it can.
        """
        cdef int j
        cdef Py_ssize_t unknown = self.gather_row(idx, val, m)
        cdef bint shared = False
        learns = learns and w > 0.0
        if learns and self.model.prepares and unknown == 0:
            self.model.prepare(self.slots + 1, self.n, 0, 0)
        if out != NULL:
            shared = learns and unknown == 0 and w == 1.0
            self.present(1.0, shared, self.step == 0)
            out[0] = self.answer()
            if self.conformal is not None and (learns or bounds != NULL):
                self.foresee(out[0])
            if bounds != NULL:
                for j in range(self.conformal.k):
                    bounds[2 * j] = self.conformal.low[j]
                    bounds[2 * j + 1] = self.conformal.high[j]
        elif learns and self.conformal is not None:
            self.foresee_gathered()
        if learns:
            if unknown:
                self.admit_row(idx, val, m, 0)
            if not shared:
                self.present(w, True, unknown > 0 or self.step == 0)
            self.learn_view(y, w)
            if self.model.n_evicted:
                self.apply_evictions()
        if self.calls_python:
            self.raise_pending()
        return 0

    # ---------------------------------------------------------------- files

    def dump(self):
        """(names by slot, no labels, arrays): all of the state."""
        claim(self)
        try:
            names, arrays = self.common_parts()
            arrays["target"] = self.target.dump()
            return names, [], arrays
        finally:
            release(self)

    def fill(self, names, labels, dict arrays):
        """Take what dump() gave into an engine that was just made with the same parameters."""
        if len(labels):
            raise ValueError(f"{len(labels)} labels for a regressor")
        claim(self)
        try:
            self.take(names, arrays)
        finally:
            release(self)

    cdef int take(self, names, dict arrays) except -1:
        self.check_common(names, arrays)
        self.target.fill(arrays)
        self.take_common(names, arrays)
        self.take_model(arrays)
        return 0

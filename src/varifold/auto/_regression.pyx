"""The default regressor's mathematics: a mixture of experts that learns targets without their outliers.

What lies more than OUTLIER typical errors from the answer is moved there. After IN_A_ROW of them on the same side either the
level has changed (see `_levels`), or errors are of another size: then the bound is OUTLIER deviations, and after LASTING in a
row there is none. Outliers among the first targets, before errors are known, are found by the targets themselves (see
`_warm_up`); then new experts learn these again.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from varifold._engine.view cimport View
from varifold._numeric.hedge cimport experts_weights
from varifold._numeric.memory cimport out_of_memory
from varifold.auto._warm_up cimport FIRST, WIDEST, Bounds, FirstInstances, moved
from varifold.auto._history cimport history_row
from varifold.auto._levels cimport LEVEL_NUMBERS, Level, level_jumped, level_note, level_return, level_step
from varifold.auto._mixture cimport COUNT, ROW, TYPICAL, RegressionMixture, within
from varifold.auto._views cimport without_new

from varifold._engine.state import fixed

cdef double OUTLIER = 12.0     # typical errors beyond which a target is moved towards the answer
cdef double IN_A_ROW = 5.0     # more outliers on the same side are a new level, or errors of another size
cdef double LASTING = 30.0     # more outliers on the same side are learned as they are
cdef double FIRST_ROUNDS = 30.0  # before so many rounds no error tells an outlier


cdef enum:
    RECENT = 0
    USUAL = 1
    USUAL_SQUARE = 2
    MEASURED = 3


cdef class AutoRegression(RegressionMixture):
    """A mixture of experts (see `experts.Expert`) for targets with outliers."""

    def __cinit__(self, experts, bint absolute=False):
        self.prepares = True
        self.first = FirstInstances()
        self.arrays.declare("error_means", &self.errors, fixed(4))
        self.arrays.declare("level", <double**> &self.level, fixed(LEVEL_NUMBERS))

    # ---------------------------------------------------------------- the first instances

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        if not self.first.over:
            self.prepare_first(slots, n, n_new)
        return RegressionMixture.prepare(self, slots, n, n_new, y)

    cdef int prepare_first(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new) except -1 nogil:
        """Room to keep the instance; the first ones are learned again where an outlier was among them."""
        if self.first.count < FIRST and n + n_new < WIDEST and self.first.reserve(self.first.count, n + n_new + 1) < 0:
            return out_of_memory()
        if self.first.differs():
            with gil:
                self.relearn()
                self.relearned.prepare(slots, n, n_new, 0)
        return 0

    cdef int relearn(self) except -1:
        """Let new experts learn the first instances without their outliers, in a model that nobody sees yet."""
        cdef AutoRegression fresh = AutoRegression(self.experts, self.absolute)
        cdef View* v
        cdef Py_ssize_t i
        cdef Bounds bounds = self.first.bounds()
        self.relearned = None
        fresh.first.end()
        fresh.attach(self.space)
        fresh.attach_target(self.target)
        fresh.grow(self.capacity)
        for i in range(self.first.count):
            v = &self.first.rows[i].view
            fresh.prepare(v.slot, v.n, 0, 0)
            fresh.learn_target(v, moved(bounds, self.first.rows[i].y), self.first.rows[i].w)
        self.relearned = fresh
        return 0

    cdef int take_over(self) except -1:
        """Become the model that learned the first instances again."""
        cdef Py_ssize_t i
        cdef Bounds bounds = self.first.bounds()
        for i in range(self.first.count):
            self.first.rows[i].learned = moved(bounds, self.first.rows[i].y)
        memcpy(self.errors, self.relearned.errors, 4 * sizeof(double))
        memcpy(self.level, self.relearned.level, sizeof(Level))
        self.become(self.relearned)
        self.relearned = None
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.first.forget(slot)
        if self.relearned is not None:
            self.calls.forget(<void*> self.relearned, slot)
        RegressionMixture.forget(self, slot)

    cdef double warm_up(self, View* v, double y, double w) noexcept nogil:
        """Keep one of the first instances; its target, moved if it is an outlier among those before."""
        cdef double kept
        if self.relearned is not None:
            with gil:
                self.take_over()
        self.first.checked = self.first.count
        if self.first.count == FIRST:
            self.first.end()
            return y
        kept = moved(self.first.bounds(), y)
        self.first.keep(v, y, kept, w)
        return kept

    # ---------------------------------------------------------------- predicting and learning

    cdef double predict(self, View* v) noexcept nogil:
        return RegressionMixture.predict(self, v) + self.level.offset

    cdef double without_outlier(self, double y) noexcept nogil:
        """The target less the offset of the level, moved towards the answer where it lies further away than errors do."""
        cdef double residual, most
        cdef double* row = &self.numbers[ROW]
        if self.numbers[COUNT] < FIRST_ROUNDS or self.own.deviation <= 0.0:
            return self.at_level(y)
        most = OUTLIER * self.numbers[TYPICAL] * self.own.deviation
        residual = self.at_level(y) - self.answer()
        if fabs(residual) > most and self.level.has_before and fabs(y - self.level.before - self.answer()) <= most:
            level_return(self.level)
            residual = self.at_level(y) - self.answer()
        if fabs(residual) <= most:
            row[0] = 0.0
            return self.at_level(y)
        row[0] = max(row[0], 0.0) + 1.0 if residual > 0.0 else min(row[0], 0.0) - 1.0
        level_note(self.level, residual)
        if fabs(row[0]) > IN_A_ROW and level_jumped(self.level):
            level_step(self.level)
            row[0] = 0.0
            return self.at_level(y)
        if fabs(row[0]) > LASTING:
            return self.at_level(y)
        if fabs(row[0]) > IN_A_ROW:
            most = max(most, OUTLIER * self.own.deviation)
        return self.answer() + (min(residual, most) if residual > 0.0 else max(residual, -most))

    cdef double at_level(self, double y) noexcept nogil:
        """The target less the offset of the level."""
        return y - self.level.offset

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        cdef double z, kept
        cdef double* row
        cdef View* known
        if not self.first.over:
            y = self.warm_up(v, y, w)
        known = without_new(&self.views, v)
        if self.own.deviation > 0.0:
            self.ask(known)
        kept = self.without_outlier(y)
        if self.own.deviation > 0.0:
            z = within((kept - self.own.mean) / self.own.deviation)
            self.note_error(fabs(z - self.mixed()) * self.own.deviation)
            self.learn_round(z, w)
        self.own.absorb(kept, w)
        self.teach(v, kept, w)
        row = history_row(&self.history, v.step)
        if row != NULL:
            experts_weights(&self.weights, row)

    cdef void note_error(self, double error) noexcept nogil:
        """Count the error of an answer, in the target's units, for the report."""
        cdef double* e = self.errors
        cdef double slow
        e[MEASURED] += 1.0
        slow = 1.0 / min(e[MEASURED], 1000.0)
        e[RECENT] += (error - e[RECENT]) / min(e[MEASURED], 50.0)
        e[USUAL] += (error - e[USUAL]) * slow
        e[USUAL_SQUARE] += (min(error * error, 1e300) - e[USUAL_SQUARE]) * slow

    def error_means(self):
        """Mean error of about 50 and of about 1,000 answers, the deviation of these errors, and how many were measured."""
        cdef double* e = self.errors
        return e[RECENT], e[USUAL], max(e[USUAL_SQUARE] - e[USUAL] * e[USUAL], 0.0) ** 0.5, int(e[MEASURED])

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {**RegressionMixture.dump(self, size), **self.first.dump()}

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.first.fill(arrays, self.space.size)
        RegressionMixture.fill(self, arrays, capacity)

    def nbytes(self):
        return RegressionMixture.nbytes(self) + self.first.nbytes()

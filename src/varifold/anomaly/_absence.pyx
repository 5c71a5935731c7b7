"""Surprise that columns are absent which the instance before had."""

from libc.math cimport log, pow, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import fixed, per_slot

cdef double RATE = 0.01           # at which shares of presence follow
cdef int64_t FIRST = 99           # instances since a column was first seen over which its share is a plain mean
cdef double MOST_SURE = 1e-4      # shares stay this far from 1
MOST = 2**53                      # instances


cdef double faded(double share, int64_t count, int64_t gap) noexcept nogil:
    """Return a share after `gap` more instances without the column, `count` after it was first seen."""
    cdef int64_t first = min(gap, max(FIRST - count, 0))
    share *= (count + 1.0) / (count + first + 1.0)
    return share * pow(1.0 - RATE, gap - first) if gap > first else share


cdef class AbsenceModel(Model):
    """Share of the instances that have a column, forgetting slowly; only columns of the last instance are looked at.

    So the first instance of an outage is unusual, the others are not, and the cost is O(present) for any number of
    known columns. The score is the sum of minus the logarithms of the shares of absence, less its mean, over the root of 1
    plus its variance, as if columns were independent.
    """

    cdef double* share       # [slot] of instances with the column, as of the last one that had it
    cdef int64_t* first      # [slot] number of the first instance with the column, from 1; 0: none
    cdef int64_t* last       # [slot] and of the last one
    cdef int64_t* learned    # instances
    cdef int32_t* before     # scratch [slot]: columns of the last instance
    cdef Py_ssize_t n_before

    def __cinit__(self):
        self.wants_columns = True
        self.arrays.declare("share", &self.share, per_slot(low=0, high=1))
        self.arrays.declare("first", &self.first, per_slot(low=0))
        self.arrays.declare("last", &self.last, per_slot(low=0))
        self.arrays.declare("learned", &self.learned, fixed(1, low=0, high=MOST))
        self.arrays.scratch(&self.before, per_slot())

    cdef double surprise(self, int32_t slot, double* absence) noexcept nogil:
        """Return minus the logarithm of the share of absence, which is written, too; 0 for an evicted column."""
        if self.last[slot] != self.learned[0]:
            absence[0] = 1.0
            return 0.0
        absence[0] = max(1.0 - self.share[slot], MOST_SURE)
        return -log(absence[0])

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i, at = 0
        cdef int32_t slot
        cdef double surprise, absence, variance = 1.0
        out[0] = 0.0
        for i in range(self.n_before):
            slot = self.before[i]
            while at < v.columns and v.column[at] < slot:
                at += 1
            surprise = self.surprise(slot, &absence)
            out[0] -= absence * surprise
            if at == v.columns or v.column[at] != slot:
                out[0] += surprise
            variance += absence * (1.0 - absence) * surprise * surprise
        out[0] /= sqrt(variance)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        memset(out, 0, v.n * sizeof(double))

    cdef dict absent_contributions(self, View* v, int label):
        """Return the surprise of each absent column, not centred and not scaled."""
        cdef Py_ssize_t i
        cdef int32_t slot
        cdef double absence
        present = {v.column[i] for i in range(v.columns)}
        parts = {}
        for i in range(self.n_before):
            slot = self.before[i]
            if slot not in present:
                parts[slot, "absent"] = self.surprise(slot, &absence)
        return parts

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i
        cdef int32_t slot
        cdef int64_t now
        self.learned[0] += 1
        now = self.learned[0]
        for i in range(v.columns):
            slot = v.column[i]
            if self.first[slot] == 0:
                self.first[slot] = now
                self.share[slot] = 0.5
            else:
                self.share[slot] = faded(self.share[slot], self.last[slot] - self.first[slot] + 1,
                                         now - self.last[slot] - 1)
            self.share[slot] += (1.0 - self.share[slot]) * max(1.0 / (now - self.first[slot] + 2.0), RATE)
            self.last[slot] = now
            self.before[i] = slot
        self.n_before = v.columns

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int32_t slot
        Model.fill(self, arrays, capacity)
        first, last = arrays["first"], arrays["last"]
        if ((first > last) | (last > self.learned[0]) | ((first == 0) != (last == 0))).any():
            raise ValueError("a column was seen first after it was seen last, or after all instances")
        self.n_before = 0
        for slot in range(1, len(last)):
            if self.last[slot] and self.last[slot] == self.learned[0]:
                self.before[self.n_before] = slot
                self.n_before += 1

"""Surprise that columns are absent which the instance before had, and that rare columns are present."""

from libc.math cimport log, pow, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import fixed, per_slot

cdef double RATE = 0.01           # at which shares of presence follow
cdef int64_t FIRST = 99           # instances since a column was first seen over which its share is a plain mean
cdef double MOST_SURE = 1e-4      # shares stay this far from 0 and 1
cdef double TYPICAL = 5.0         # columns of the mean surprise that are added to those of an instance
cdef double VARIED = 1.0          # variance within an instance from which on columns differ in how rare they are
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

    `rarity` is the mean of minus the logarithms of the shares of the columns that are present. It is of use where common
    and rare columns occur in one instance, as words do: `has_rare_columns`.
    """

    def __cinit__(self):
        self.wants_columns = True
        self.arrays.declare("share", &self.share, per_slot(low=0, high=1))
        self.arrays.declare("first", &self.first, per_slot(low=0))
        self.arrays.declare("last", &self.last, per_slot(low=0))
        self.arrays.declare("learned", &self.learned, fixed(1, low=0, high=MOST))
        self.arrays.declare("rare", &self.rare, fixed(2, low=0))
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

    cdef double presence(self, int32_t slot) noexcept nogil:
        """Return minus the logarithm of the share of presence of a column that was seen."""
        cdef double share = faded(self.share[slot], self.last[slot] - self.first[slot] + 1,
                                  self.learned[0] - self.last[slot])
        return -log(max(share, MOST_SURE))

    cdef double rarity(self, View* v) noexcept nogil:
        """Return the mean surprise of the columns that are present, new ones left out."""
        cdef Py_ssize_t i
        cdef double total = TYPICAL * self.rare[0], seen = TYPICAL
        for i in range(v.columns):
            if self.first[v.column[i]]:
                total += self.presence(v.column[i])
                seen += 1.0
        return total / seen

    cdef bint has_rare_columns(self) noexcept nogil:
        """Return whether instances have both common and rare columns."""
        return self.rare[1] > VARIED

    cdef dict present_parts(self, View* v):
        """Return the surprise of each column that is present."""
        cdef Py_ssize_t i
        return {(v.column[i], "present"): self.presence(v.column[i]) for i in range(v.columns) if self.first[v.column[i]]}

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
        self.learn_rarity(v)
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

    cdef void learn_rarity(self, View* v) noexcept nogil:
        """Follow mean and variance of the surprise that a column is present."""
        cdef Py_ssize_t i
        cdef double surprise, seen = 0.0, total = 0.0, squares = 0.0
        cdef double rate = max(1.0 / (self.learned[0] + 1.0), RATE)
        for i in range(v.columns):
            if self.first[v.column[i]]:
                surprise = self.presence(v.column[i])
                seen += 1.0
                total += surprise
                squares += surprise * surprise
        if seen > 0.0:
            total /= seen
            self.rare[0] += rate * (total - self.rare[0])
            self.rare[1] += rate * (max(squares / seen - total * total, 0.0) - self.rare[1])

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

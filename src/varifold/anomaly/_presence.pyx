"""Surprise of which columns are present and which are absent."""

from libc.math cimport log, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import per_slot

cdef double MOST_SURE = 1e-4      # rates of presence stay this far from 0 and 1


cdef class PresenceDetectorModel(Model):
    """Rate of presence by column since it was first seen, forgetting slowly."""

    cdef readonly double forget_rate
    cdef double* count       # [slot] instances since the column was first seen, it included
    cdef double* rate        # [slot] share of them that had it

    def __cinit__(self, double forget_rate):
        self.forget_rate = forget_rate
        self.wants_columns = True
        self.sees_empty = True
        self.arrays.declare("count", &self.count, per_slot(low=0))
        self.arrays.declare("rate", &self.rate, per_slot(low=0, high=1))

    cdef double excess(self, Py_ssize_t slot, bint here, double* variance) noexcept nogil:
        """Return the surprise of a column's presence less its mean; add the variance of that."""
        cdef double r = min(max(self.rate[slot], MOST_SURE), 1.0 - MOST_SURE), odds = log(r / (1.0 - r))
        variance[0] += r * (1.0 - r) * odds * odds
        return -log(r if here else 1.0 - r) + r * log(r) + (1.0 - r) * log(1.0 - r)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t slot, at = 0
        cdef double variance = 1.0
        cdef bint here
        out[0] = 0.0
        for slot in range(1, self.space.size):
            while at < v.columns and v.column[at] < slot:
                at += 1
            here = at < v.columns and v.column[at] == slot
            if self.count[slot] > 0.0:
                out[0] += self.excess(slot, here, &variance)
        out[0] /= sqrt(variance)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        memset(out, 0, v.n * sizeof(double))

    cdef dict absent_contributions(self, View* v, int label):
        """Return the parts of all columns, whose names include whether they are present."""
        cdef Py_ssize_t slot, i
        cdef double variance = 1.0
        present = {v.column[i] for i in range(v.columns)}
        parts = {}
        for slot in range(1, self.space.size):
            if self.count[slot] > 0.0:
                here = slot in present
                parts[slot, "present" if here else "absent"] = self.excess(slot, here, &variance)
        return {key: part / sqrt(variance) for key, part in parts.items()}

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t slot, at = 0
        cdef bint here
        for slot in range(1, self.space.size):
            while at < v.columns and v.column[at] < slot:
                at += 1
            here = at < v.columns and v.column[at] == slot
            if self.count[slot] == 0.0:
                if not here:
                    continue
                self.rate[slot] = 0.5
            self.count[slot] += 1.0
            self.rate[slot] += ((1.0 if here else 0.0) - self.rate[slot]) * max(
                1.0 / (self.count[slot] + 1.0), self.forget_rate)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.rate[slot]

"""Explanations of scores that are no sum over features: by how much a score falls without each of them.

That takes a score per feature, whose time grows with the features. Of a wide instance, only the features with the
largest values are explained, so that no instance takes more than about a tenth of a second.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import per_slot

REST = "(no single feature)"

cdef Py_ssize_t WORK = 250_000    # features that are read for all scores together: instances of up to 500 are explained whole


cdef class LeaveOutModel(Model):
    """A detector whose features contribute the difference of the scores with and without them."""

    def __cinit__(self):
        self.arrays.scratch(&self.picked, per_slot())
        self.arrays.scratch(&self.part_slot, per_slot())
        self.arrays.scratch(&self.part_x, per_slot())
        self.arrays.scratch(&self.part_raw, per_slot())

    cdef double without(self, View* v, Py_ssize_t i) noexcept nogil:
        """Return the score of the instance without its entry i."""
        cdef View part = v[0]
        cdef double score = 0.0
        part.n = v.n - 1
        part.slot = self.part_slot
        part.x = self.part_x
        part.raw = self.part_raw
        memcpy(part.slot, v.slot, i * sizeof(int32_t))
        memcpy(part.slot + i, v.slot + i + 1, (v.n - 1 - i) * sizeof(int32_t))
        memcpy(part.x, v.x, i * sizeof(double))
        memcpy(part.x + i, v.x + i + 1, (v.n - 1 - i) * sizeof(double))
        memcpy(part.raw, v.raw, i * sizeof(double))
        memcpy(part.raw + i, v.raw + i + 1, (v.n - 1 - i) * sizeof(double))
        if part.n:
            self.scores(&part, &score)
        return score

    cdef Py_ssize_t pick(self, View* v) noexcept nogil:
        """List the entries to explain in `picked`, those with the largest values first if not all; return their number."""
        cdef Py_ssize_t i, j, best, n = min(v.n, max(WORK // v.n, 1)), last = -1
        for j in range(n):
            best = j
            if n < v.n:
                best = -1
                for i in range(v.n):
                    if last >= 0 and not (fabs(v.x[i]) < fabs(v.x[last]) or (fabs(v.x[i]) == fabs(v.x[last]) and i > last)):
                        continue
                    if best < 0 or fabs(v.x[i]) > fabs(v.x[best]):
                        best = i
                last = best
            self.picked[j] = <int32_t> best
        return n

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t j
        cdef double score
        memset(out, 0, v.n * sizeof(double))
        if v.n == 0:
            return
        self.scores(v, &score)
        for j in range(self.pick(v)):
            out[self.picked[j]] = score - self.without(v, self.picked[j])

    cdef dict absent_contributions(self, View* v, int label):
        """Return what the features together add to the sum of their parts."""
        cdef Py_ssize_t j
        cdef double score, rest
        if v.n == 0:
            return {}
        self.scores(v, &score)
        rest = score
        for j in range(self.pick(v)):
            rest -= score - self.without(v, self.picked[j])
        return {REST: rest}

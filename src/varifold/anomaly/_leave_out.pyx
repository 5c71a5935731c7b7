"""Explanations of scores that are no sum over features: by how much a score falls without each of them.

That takes a score per feature, whose time grows with the features. Of a wide instance, only the features with the
largest values are explained, so that no instance takes more than about a tenth of a second.
"""

from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold._numeric.largest cimport pick_largest

from varifold._engine.state import per_slot

REST = "(no single feature)"

cdef enum:
    WORK = 250_000    # features that are read for all scores together,
    MOST = 500        # so that instances of up to this many are explained in full


cdef inline Py_ssize_t explained(View* v, int32_t* picked) noexcept nogil:
    """Write the entries to explain to `picked`; return their number."""
    cdef Py_ssize_t n = min(v.n, max(WORK // v.n, 1))
    pick_largest(v.x, 0, v.n, n, picked)
    return n


cdef class LeaveOutModel(Model):
    """A detector whose features contribute the difference of the scores with and without them."""

    def __cinit__(self):
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

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef int32_t[MOST] picked
        cdef Py_ssize_t j
        cdef double score
        memset(out, 0, v.n * sizeof(double))
        if v.n == 0:
            return
        self.scores(v, &score)
        for j in range(explained(v, picked)):
            out[picked[j]] = score - self.without(v, picked[j])

    cdef dict absent_contributions(self, View* v, int label):
        """Return what the features together add to the sum of their parts."""
        cdef int32_t[MOST] picked
        cdef Py_ssize_t j
        cdef double score, rest
        if v.n == 0:
            return {}
        self.scores(v, &score)
        rest = score
        for j in range(explained(v, picked)):
            rest -= score - self.without(v, picked[j])
        return {REST: rest}

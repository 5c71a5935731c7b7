"""Distance to the nearest of the last instances, over the features present."""

from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.names.table cimport INDICATOR
from varifold._engine.view cimport View
from varifold._numeric.kernels cimport add_squares
from varifold.neighbours._neighbours cimport MOST, NeighboursModel
from varifold.neighbours._rows cimport KeptRow

from varifold._engine.state import per_slot

cdef double UNLIKE = 2.0       # squared difference of two unrelated standardised values
cdef double RARE = 0.1         # features that fewer of the instances have are not compared
cdef double ABSENT = 1e300     # marks an absent value in `dense`


cdef class NeighboursDetectorModel(NeighboursModel):
    """Mean distance of the k nearest; a feature that only one of two instances has counts as unrelated values."""

    cdef double* holders      # scratch [slot] instances of the window that have the feature
    cdef double* any_level    # scratch [slot of a column] instances of the window that have any of its strings
    cdef Py_ssize_t compared  # features of the instance at hand that are compared

    def __cinit__(self, int k, Py_ssize_t window):
        self.arrays.scratch(&self.holders, per_slot())
        self.arrays.scratch(&self.any_level, per_slot())

    cdef void enter(self, Py_ssize_t place, bint take_out) noexcept nogil:
        cdef KeptRow* r = &self.row[place]
        cdef Py_ssize_t j
        cdef double change = -1.0 if take_out else 1.0
        for j in range(r.n):
            self.holders[r.slot[j]] += change
            if self.space.kind[r.slot[j]] & INDICATOR:
                self.any_level[self.space.column[r.slot[j]]] += change
        NeighboursModel.enter(self, place, take_out)

    cdef void forget(self, int32_t slot) noexcept nogil:
        if self.space.kind[slot] & INDICATOR:
            self.any_level[self.space.column[slot]] -= self.holders[slot]
        self.holders[slot] = 0.0
        NeighboursModel.forget(self, slot)

    cdef inline bint compares(self, View* v, Py_ssize_t i, Py_ssize_t held) noexcept nogil:
        """Return whether enough instances have the feature; of a string, the column."""
        cdef int32_t slot = v.slot[i]
        if v.is_new[i]:
            return False
        if self.space.kind[slot] & INDICATOR:
            return self.any_level[self.space.column[slot]] > RARE * held
        return self.holders[slot] > RARE * held

    cdef void measure(self, View* v, Py_ssize_t held) noexcept nogil:
        """Compute the mean squared differences to the stored instances into `total`."""
        cdef Py_ssize_t i, j
        cdef KeptRow* r
        cdef double d
        self.compared = 0
        memset(self.total, 0, held * sizeof(double))
        memset(self.shared, 0, held * sizeof(double))
        for i in range(v.n):
            if not self.compares(v, i, held):
                continue
            self.compared += 1
            if self.tabled:
                add_squares(held, self.total, self.shared, v.x[i], self.table + v.slot[i] * self.window)
            else:
                self.dense[v.slot[i]] = v.x[i]
        for i in range(held if self.tabled == 0 else 0):
            r = &self.row[i]
            for j in range(r.n):
                d = self.dense[r.slot[j]]
                if d < 1e299:
                    d -= r.x[j]
                    self.total[i] += d * d
                    self.shared[i] += 1.0
        for i in range(v.n if self.tabled == 0 else 0):
            self.dense[v.slot[i]] = ABSENT
        for i in range(held if self.compared else 0):
            self.total[i] = (self.total[i] + (self.compared - self.shared[i]) * UNLIKE) / self.compared

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t[MOST] place
        cdef int j, found = self.neighbours_of(v, place)
        out[0] = 0.0
        for j in range(found if self.compared else 0):
            out[0] += self.total[place[j]] / found

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Split the mean distance by feature."""
        cdef Py_ssize_t[MOST] place
        cdef int j, found = self.neighbours_of(v, place)
        cdef Py_ssize_t i, a, held = self.kept.held()
        cdef KeptRow* r
        cdef double d
        memset(out, 0, v.n * sizeof(double))
        for j in range(found if self.compared else 0):
            r = &self.row[place[j]]
            a = 0
            for i in range(v.n):
                if not self.compares(v, i, held):
                    continue
                while a < r.n and r.slot[a] < v.slot[i]:
                    a += 1
                d = UNLIKE
                if a < r.n and r.slot[a] == v.slot[i]:
                    d = (v.x[i] - r.x[a]) * (v.x[i] - r.x[a])
                out[i] += d / self.compared / found

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.holders[slot]

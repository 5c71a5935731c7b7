"""Surprise of each value under the marginal of its feature, summed over what is present."""

from libc.math cimport fabs, fmin, log, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.view cimport View
from varifold._numeric.ascending cimport first_above, first_not_below
from varifold.copula._marginals cimport Marginals, Window

from varifold._engine.state import checked_array, per_slot

cdef double SLOWEST = 0.001    # rate at which a mean surprise follows, at least
cdef double POWER = 2.0        # of the tail beyond all values of the window: its share falls with distance to the -2
cdef double MOST = 7.0         # surprise added beyond them


cdef inline double further(double x, double edge, double middle) noexcept nogil:
    """Return the surprise that x adds to that of the outermost value, by their distances from the median."""
    if edge == middle:
        return 0.0
    return fmin(POWER * (log(fabs(0.5 * x - 0.5 * middle)) - log(fabs(0.5 * edge - 0.5 * middle))), MOST)


cdef class TailModel(Model):
    """Windows of the last values by feature; counts of string values."""

    cdef readonly Marginals marginals
    cdef double* count       # [slot] values learned: of a feature, of a level, of a column
    cdef double* mean        # [slot] mean surprise, of levels at their column
    cdef double* part        # scratch [slot]

    def __cinit__(self, Py_ssize_t window):
        self.marginals = Marginals(window)
        self.arrays.declare("count", &self.count, per_slot(low=0))
        self.arrays.declare("mean", &self.mean, per_slot(low=0))
        self.arrays.scratch(&self.part, per_slot())

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.marginals.grow(capacity)
        return Model.grow(self, capacity)

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.marginals.clear(slot)
        Model.forget(self, slot)

    cdef inline int32_t owner(self, int32_t slot) noexcept nogil:
        """Return where the mean surprise of a slot is: at the column of an indicator."""
        return self.space.column[slot] if self.space.kind[slot] & INDICATOR else slot

    cdef double surprise(self, int32_t slot, double x) noexcept nogil:
        """Return minus the logarithm of the probability of a value as extreme as x, or of a level; -1 if unknown."""
        cdef Window* w = &self.marginals.window[slot]
        cdef Py_ssize_t smaller, up_to
        cdef double middle, beyond = 0.0
        if self.count[slot] == 0.0:
            return -1.0
        if self.space.kind[slot] & INDICATOR:
            return log((self.count[self.space.column[slot]] + 1.0) / (self.count[slot] + 1.0))
        smaller = first_not_below(w.sorted, w.n, x)
        up_to = first_above(w.sorted, w.n, smaller, x)
        if up_to == 0 or smaller == w.n:
            middle = w.sorted[w.n // 2]
            beyond = further(x, w.sorted[0] if up_to == 0 else w.sorted[w.n - 1], middle)
        return beyond + log((w.n + 1.0) / fmin(up_to + 1.0, w.n - smaller + 1.0))

    cdef Py_ssize_t parts_of(self, View* v, double* out) noexcept nogil:
        """Write the surprise of each entry less its mean, 0 if unknown; return the number of known entries."""
        cdef Py_ssize_t i, known = 0
        cdef double s
        for i in range(v.n):
            s = self.surprise(v.slot[i], v.raw[i])
            out[i] = 0.0
            if s >= 0.0:
                known += 1
                out[i] = s - self.mean[self.owner(v.slot[i])]
        return known

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Sum the parts, over the root of their number: the variance of one is about 1."""
        cdef Py_ssize_t i, known = self.parts_of(v, self.part)
        out[0] = 0.0
        for i in range(v.n):
            out[0] += self.part[i]
        if known:
            out[0] /= sqrt(<double> known)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i, known
        memset(out, 0, v.n * sizeof(double))
        known = self.parts_of(v, out)
        for i in range(v.n if known else 0):
            out[i] /= sqrt(<double> known)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef double score
        self.learn_scored(v, y, w, &score, NULL)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """Score the instance, then add its values; each surprise is computed once."""
        cdef Py_ssize_t i, known = 0
        cdef int32_t slot, owner
        cdef double s
        scores[0] = 0.0
        for i in range(v.n):
            self.part[i] = self.surprise(v.slot[i], v.raw[i])
            if self.part[i] >= 0.0:
                known += 1
                scores[0] += self.part[i] - self.mean[self.owner(v.slot[i])]
        if known:
            scores[0] /= sqrt(<double> known)
        for i in range(v.n):
            slot = v.slot[i]
            owner = self.owner(slot)
            s = self.part[i]
            self.count[slot] += 1.0
            if owner != slot:
                self.count[owner] += 1.0
            else:
                self.marginals.commit(slot, v.raw[i])
            if s >= 0.0:
                self.mean[owner] += (s - self.mean[owner]) * max(1.0 / self.count[owner], SLOWEST)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.mean[self.owner(slot)]

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        counts, values = self.marginals.dump(size)
        return {**Model.dump(self, size), "window.counts": counts, "window.values": values}

    def fill(self, dict arrays, Py_ssize_t capacity):
        counts = checked_array(arrays, "window.counts", "i", (None,), 0, self.marginals.size)
        if len(counts) > capacity:
            raise ValueError(f"{len(counts)} windows for {capacity} slots")
        Model.fill(self, arrays, capacity)
        self.marginals.fill(counts, checked_array(arrays, "window.values", "f", (int(counts.sum()),)))

    def nbytes(self):
        return Model.nbytes(self) + self.marginals.nbytes()

"""Surprise of the present values together, under a Gaussian copula whose correlations are learned pair by pair."""

from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.view cimport View
from varifold._numeric.kernels cimport subtract_multiple
from varifold._numeric.wide cimport wide
from varifold.copula._marginals cimport Marginals, Place

from varifold._engine.state import checked_array, per_slot

cdef double SLOWEST = 0.0002   # rate at which moments follow, at least
cdef double RIDGE = 0.05       # added to the variances
cdef double DOUBT = 5.0        # pairs that show no correlation, in addition to the number of features
cdef double LEAST = 0.04       # of a variance given the other features


# Of neighbouring slots, the pairs of one slot are contiguous.

cdef wide correlate(Py_ssize_t n, double* out, const double* moment, const double* pairs, const double* scale, double own,
                    double doubt) noexcept nogil:
    """Write the shrunk correlations of a feature with n others."""
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = moment[j] * own * scale[j] * pairs[j] / (pairs[j] + doubt)


cdef wide follow(Py_ssize_t n, double* moment, double* pairs, double own, const double* z) noexcept nogil:
    """Update the moments of a feature with n others."""
    cdef Py_ssize_t j
    cdef double rate
    for j in range(n):
        pairs[j] += 1.0
        rate = 1.0 / pairs[j]
        rate = rate if rate > SLOWEST else SLOWEST
        moment[j] += (own * z[j] - moment[j]) * rate


cdef class CopulaDetectorModel(Model):
    """Moments of normal scores, by pairs of slots; slots from `most` on and indicators are left out."""

    cdef readonly Marginals marginals
    cdef readonly Py_ssize_t most
    cdef double* moment      # [slot][most] mean product of two scores, second slot <= first
    cdef double* pairs       # [slot][most] instances that had both
    # scratch, the instance at hand: position among the `n` scores
    cdef Py_ssize_t n
    cdef int32_t* at         # entry of the view
    cdef double* z
    cdef double* row         # correlations of one position with those before it
    cdef double* factor      # [position][most] of R = L D L': D on the diagonal, L' right of it
    cdef double* solved      # inverse of the correlation matrix times z

    def __cinit__(self, Py_ssize_t window, Py_ssize_t most):
        self.marginals = Marginals(window)
        self.most = most
        self.arrays.declare("moment", &self.moment, per_slot(width=most, most=most))
        self.arrays.declare("pairs", &self.pairs, per_slot(width=most, most=most, low=0))
        self.arrays.scratch(&self.at, per_slot(most=most))
        self.arrays.scratch(&self.z, per_slot(most=most))
        self.arrays.scratch(&self.row, per_slot(most=most))
        self.arrays.scratch(&self.factor, per_slot(width=most, most=most))
        self.arrays.scratch(&self.solved, per_slot(most=most))

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.marginals.grow(min(capacity, self.most))
        return Model.grow(self, capacity)

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t i
        if slot >= self.most:
            return
        self.marginals.clear(slot)
        Model.forget(self, slot)
        for i in range(slot, min(self.capacity, self.most)):
            self.moment[i * self.most + slot] = 0.0
            self.pairs[i * self.most + slot] = 0.0

    cdef void place_values(self, View* v, bint known) noexcept nogil:
        """Compute the normal scores of the present numbers; with `known`, only of those that occurred before."""
        cdef Py_ssize_t i, slot
        cdef Place place
        self.n = 0
        for i in range(v.n):
            slot = v.slot[i]
            if slot >= self.most:
                break
            if self.space.kind[slot] & INDICATOR or (known and self.pairs[slot * self.most + slot] < 2.0):
                continue
            self.marginals.place(slot, v.raw[i], &place)
            self.at[self.n] = <int32_t> i
            self.z[self.n] = place.z
            self.n += 1

    cdef double distance(self, View* v) noexcept nogil:
        """Return z' R^-1 z of the present scores; `factor` and `solved` hold L D L' = R and R^-1 z."""
        cdef Py_ssize_t i, j, a, b, m = self.most
        cdef bint neighbouring = v.slot[self.at[self.n - 1]] - v.slot[self.at[0]] == self.n - 1
        cdef double* row = self.row
        cdef double l, explained, total = 0.0
        for i in range(self.n):
            a = v.slot[self.at[i]]
            l = self.moment[a * m + a]
            self.solved[i] = 1.0 / sqrt(l) if l > 1e-12 else 0.0
            self.z[i] *= self.solved[i]
        for i in range(self.n):
            a = v.slot[self.at[i]]
            if neighbouring:
                b = a * m + a - i
                correlate(i, row, &self.moment[b], &self.pairs[b], self.solved, self.solved[i], self.n + DOUBT)
            for j in range(0 if neighbouring else i):
                b = a * m + v.slot[self.at[j]]
                correlate(1, &row[j], &self.moment[b], &self.pairs[b], &self.solved[j], self.solved[i], self.n + DOUBT)
            for j in range(i):                       # row[j] is L[i, j] D[j] once the terms before j are subtracted
                subtract_multiple(i - j - 1, &row[j + 1], row[j], &self.factor[j * m + j + 1])
            explained = 0.0
            for j in range(i):
                l = row[j] / self.factor[j * m + j]
                explained += l * row[j]
                row[j] = l
            l = 1.0
            self.factor[i * m + i] = 1.0 + RIDGE - explained
            if self.factor[i * m + i] < LEAST:       # correlations by pairs may contradict each other
                self.factor[i * m + i] = LEAST
                l = sqrt((1.0 + RIDGE - LEAST) / explained)
            for j in range(i):
                self.factor[j * m + i] = row[j] * l
        for i in range(self.n):
            self.solved[i] = self.z[i]
        for i in range(self.n):
            subtract_multiple(self.n - i - 1, &self.solved[i + 1], self.solved[i], &self.factor[i * m + i + 1])
            total += self.solved[i] * self.solved[i] / self.factor[i * m + i]
        return total

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Standardise the squared distance, which has n degrees of freedom."""
        out[0] = 0.0
        self.place_values(v, True)
        if self.n:
            out[0] = (self.distance(v) - self.n) / sqrt(2.0 * self.n)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Split the distance: each score times its entry of R^-1 z."""
        cdef Py_ssize_t i, j, m = self.most
        memset(out, 0, v.n * sizeof(double))
        self.place_values(v, True)
        if self.n == 0:
            return
        self.distance(v)
        for i in range(self.n):
            self.solved[i] /= self.factor[i * m + i]
        for i in range(self.n - 1, -1, -1):
            for j in range(i + 1, self.n):
                self.solved[i] -= self.factor[i * m + j] * self.solved[j]
        for i in range(self.n):
            out[self.at[i]] = (self.z[i] * self.solved[i] - 1.0) / sqrt(2.0 * self.n)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i, j, p
        cdef bint neighbouring
        self.place_values(v, False)
        neighbouring = self.n > 0 and v.slot[self.at[self.n - 1]] - v.slot[self.at[0]] == self.n - 1
        for i in range(self.n):
            p = v.slot[self.at[i]] * self.most
            if neighbouring:
                follow(i + 1, &self.moment[p + v.slot[self.at[0]]], &self.pairs[p + v.slot[self.at[0]]], self.z[i], self.z)
                continue
            for j in range(i + 1):
                follow(1, &self.moment[p + v.slot[self.at[j]]], &self.pairs[p + v.slot[self.at[j]]], self.z[i], &self.z[j])
        for i in range(self.n):
            self.marginals.commit(v.slot[self.at[i]], v.raw[self.at[i]])

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return the mean absolute product of the slot's scores with those of others."""
        cdef Py_ssize_t j
        cdef double total = 0.0
        if slot >= self.most:
            return 0.0
        for j in range(min(self.capacity, self.most)):
            total += abs(self.moment[max(slot, j) * self.most + min(slot, j)])
        return total

    def role(self, Py_ssize_t slot):
        return "outside" if slot >= self.most or self.space.kind[slot] & INDICATOR else "latent"

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        counts, values = self.marginals.dump(min(size, self.most))
        return {**Model.dump(self, size), "window.counts": counts, "window.values": values}

    def fill(self, dict arrays, Py_ssize_t capacity):
        counts = checked_array(arrays, "window.counts", "i", (None,), 0, self.marginals.size)
        if len(counts) > min(capacity, self.most):
            raise ValueError(f"{len(counts)} windows for {capacity} slots")
        Model.fill(self, arrays, capacity)
        self.marginals.fill(counts, checked_array(arrays, "window.values", "f", (int(counts.sum()),)))

    def nbytes(self):
        return Model.nbytes(self) + self.marginals.nbytes()

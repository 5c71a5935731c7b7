"""Feature states as arrays of a model file, and back.

Rows are saved for 2, 4, 8, ... classes, whatever the capacity is.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from varifold._engine.models.model cimport Model
from varifold._engine.names.space cimport Space
from varifold._numeric.heap cimport heap_touch
from varifold._numeric.memory cimport allocate
from varifold.forest._feature_state cimport FeatureState, FeatureStates, canonical_width, copy_rows
from varifold.forest._tdigest cimport Digest, digest_reserve

from varifold._engine.state import check_chains, checked_array


def check_states(dict arrays, Py_ssize_t capacity, int stumps, Py_ssize_t words, Space space):
    """Refuse arrays that do not fit the parameters, the names or each other."""
    units = checked_array(arrays, "units", "i", (None, 13), 0, 1 << 53)
    size, wide = len(units), len(checked_array(arrays, "mass", "f", (None,), 0))
    checked_array(arrays, "weights", "f", (size, 4))
    checked_array(arrays, "sums", "f", (4,))
    checked_array(arrays, "rings", "i", (int((units[:, 2] > 0).sum()), words))
    forests = checked_array(arrays, "forests", "f", (int((units[:, 11] > 0).sum()), 2 * stumps + (stumps + 1) * (1 + wide)))
    levels = checked_array(arrays, "levels", "f", (int((units[:, 12] > 0).sum()), 2 * wide + 1))
    digests = checked_array(arrays, "digests", "f", (int((units[:, 10] > 0).sum()) * wide, 5))
    favoured = (forests[:, 2 * stumps::1 + wide], levels[:, wide:wide + 1])
    if any(rows.size and (rows.min() < -1 or rows.max() >= wide) for rows in favoured):
        raise ValueError("a row favours a class that there is not")
    if not 0 < size <= capacity or units[:, 7:9].max() >= size:
        raise ValueError("units holds numbers of features that there are not")
    first, last, seen = units[:, 0], units[:, 1], units[:, 2]
    if last.max() >= 1 << 43 or (seen > np.where(seen > 0, last - first + 1, 0)).any() or (units[:, 9] > seen).any():
        raise ValueError("units holds features seen more often than there were rounds")
    if digests.size and (digests[:, 3:].min() < 0 or (digests[:, 3:] % 1 != 0).any()):
        raise ValueError("digests holds counts that are none")
    checked_array(arrays, "points", "f", (int(2 * digests[:, 3:].sum()),))
    check_chains(units[:, 7].tolist(), units[:, 8].tolist(),
                 {slot: space.column[<Py_ssize_t> slot] for slot in np.flatnonzero(units[:, 12]).tolist()})


cdef object as_array(const double* numbers, Py_ssize_t n):
    """A copy of n numbers."""
    out = np.zeros(n)
    cdef double[::1] view = out
    if n:
        memcpy(&view[0], numbers, n * sizeof(double))
    return out


cdef object rows_as_array(const double* block, int head, int wide, int new_head, int new_wide, int rows):
    """A block of rows as an array, laid out for `new_wide` classes."""
    out = np.zeros(new_head + rows * (1 + new_wide))
    cdef double[::1] view = out
    copy_rows(block, head, wide, &view[0], new_head, new_wide, rows)
    return out


cdef double* rows_from_array(object row, int head, int wide, int new_head, int new_wide, int rows) except NULL:
    """Return a new block from an array laid out for `wide` classes."""
    cdef const double[::1] view = np.ascontiguousarray(row, dtype=np.float64)
    cdef double* block = <double*> allocate((new_head + rows * (1 + new_wide)) * sizeof(double))
    if block == NULL:
        raise MemoryError
    copy_rows(&view[0], head, wide, block, new_head, new_wide, rows)
    return block


cdef class SavedFeatureStates(FeatureStates):
    """Feature states that are dumped, filled and measured."""

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t u, k
        cdef int c, J = self.stumps, wide = canonical_width(self.classes)
        cdef FeatureState* state
        cdef Digest* d
        table = np.zeros((size, 13), dtype=np.int64)
        real = np.zeros((size, 4))
        rings, forests, levels, digests, points = [], [], [], [], []
        cdef int64_t[:, ::1] ints = table
        cdef double[:, ::1] reals = real
        for u in range(size):
            state = &self.states[u]
            for k, value in enumerate((
                    state.presence.first, state.presence.last, state.presence.count, state.refreshed, state.serial,
                    state.numbers, state.texts, state.first_level, state.next_level, self.heap.place[u] > 0,
                    state.digest != NULL, state.forest != NULL, state.level != NULL)):
                ints[u, k] = value
            reals[u, 0] = state.deadline
            reals[u, 1] = state.weight
            reals[u, 2] = state.credit
            reals[u, 3] = state.credit_weight
            if state.presence.count:
                rings.append([state.presence.ring[k] for k in range(self.rule.words)])
            if state.forest != NULL:
                forests.append(rows_as_array(state.forest, 2 * J, self.wide, 2 * J, wide, J + 1))
            if state.level != NULL:
                levels.append(rows_as_array(state.level, self.wide, self.wide, wide, wide, 1))
            if state.digest != NULL:
                for c in range(wide):
                    d = &state.digest[c]
                    digests.append((d.total, d.lo, d.hi, <double> d.n, <double> d.held))
                    points.append(as_array(<double*> d.point, 2 * (d.n + d.held)))
        return {
            **Model.dump(self, size),
            "units": table, "weights": real,
            "rings": np.array(rings, dtype=np.uint64).reshape(-1, self.rule.words),
            "forests": np.array(forests).reshape(-1, 2 * J + (J + 1) * (1 + wide)),
            "levels": np.array(levels).reshape(-1, 2 * wide + 1),
            "digests": np.array(digests).reshape(-1, 5),
            "points": np.concatenate(points) if points else np.zeros(0),
            "mass": np.array([self.mass[c] if c < self.classes else 0.0 for c in range(wide)], dtype=np.float64),
            "sums": np.array([self.total, self.temperature, self.certainty, <double> self.pruned]),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t u, k
        cdef int c, J = self.stumps, wide
        cdef FeatureState* state
        check_states(arrays, capacity, J, self.rule.words, self.space)
        cdef int64_t[:, ::1] ints = np.ascontiguousarray(arrays["units"], dtype=np.int64)
        cdef double[:, ::1] reals = np.ascontiguousarray(arrays["weights"], dtype=np.float64)
        rings, forests, levels = iter(arrays["rings"]), iter(arrays["forests"]), iter(arrays["levels"])
        digests, points = iter(arrays["digests"]), iter(arrays["points"].tolist())
        Model.fill(self, arrays, capacity)
        wide = arrays["mass"].shape[0]
        if wide < self.classes:
            raise ValueError(f"a capacity of {wide} classes where there are {self.classes}")
        self.widen(canonical_width(wide))
        for c in range(self.classes):
            self.mass[c] = arrays["mass"][c]
        self.total, self.temperature, self.certainty, pruned = arrays["sums"].tolist()
        self.pruned = int(pruned)
        for u in range(ints.shape[0]):
            state = &self.states[u]
            state.presence.first = ints[u, 0]
            state.presence.last = ints[u, 1]
            state.refreshed = ints[u, 3]
            state.serial = ints[u, 4]
            state.numbers = ints[u, 5]
            state.texts = ints[u, 6]
            state.first_level = <int32_t> ints[u, 7]
            state.next_level = <int32_t> ints[u, 8]
            state.deadline = reals[u, 0]
            state.weight = reals[u, 1]
            state.credit = reals[u, 2]
            state.credit_weight = reals[u, 3]
            if ints[u, 2]:
                state.presence.ring = <uint64_t*> allocate(self.rule.words * sizeof(uint64_t))
                if state.presence.ring == NULL:
                    raise MemoryError
                for k, word in enumerate(next(rings).tolist()):
                    state.presence.ring[k] = word
            state.presence.count = ints[u, 2]
            if ints[u, 11]:
                state.forest = rows_from_array(next(forests), 2 * J, wide, 2 * J, self.wide, J + 1)
            if ints[u, 12]:
                state.level = rows_from_array(next(levels), wide, wide, self.wide, self.wide, 1)
            if ints[u, 10]:
                self.fill_digests(u, wide, digests, points)
            if ints[u, 9]:
                heap_touch(&self.heap, <int32_t> u)

    cdef int fill_digests(self, Py_ssize_t u, int wide, object digests, object points) except -1:
        """Take the digests of one feature, `wide` of them, from the saved rows and points that follow."""
        cdef int c
        cdef Py_ssize_t k
        cdef Digest* d
        cdef FeatureState* state = &self.states[u]
        state.digest = <Digest*> allocate(self.wide * sizeof(Digest))
        if state.digest == NULL:
            raise MemoryError
        for c in range(wide):
            d = &state.digest[c]
            d.total, d.lo, d.hi, n, held = next(digests).tolist()
            if not digest_reserve(d, int(n + held)):
                raise MemoryError
            self.largest = max(self.largest, <Py_ssize_t> d.capacity)
            d.n = int(n)
            d.held = int(held)
            for k in range(d.n + d.held):
                d.point[k].at = next(points)
                d.point[k].mass = next(points)
        return 0

    def nbytes(self):
        cdef Py_ssize_t u, total = self.arrays.nbytes()
        cdef int c, J = self.stumps
        for u in range(self.capacity):
            if self.states[u].presence.count:
                total += self.rule.words * sizeof(uint64_t)
            if self.states[u].forest != NULL:
                total += (2 * J + (J + 1) * (1 + self.wide)) * sizeof(double)
            if self.states[u].level != NULL:
                total += (2 * self.wide + 1) * sizeof(double)
            if self.states[u].digest != NULL:
                for c in range(self.wide):
                    total += sizeof(Digest) + 2 * sizeof(double) * self.states[u].digest[c].capacity
        return total

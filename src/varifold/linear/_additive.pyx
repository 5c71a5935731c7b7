"""Additive learner: diagonal AROW over each feature's quantile bin and its scaled value."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from varifold._numeric.hashing cimport draw
from varifold._engine.one_vs_rest cimport BinaryRule, at, capped
from varifold._engine.model cimport Model
from varifold._engine.names cimport INDICATOR
from varifold._engine.view cimport View

from varifold._engine.state import checked_array


cdef class AdditiveRule(BinaryRule):
    """Per slot and problem: mean and precision of the linear weight, then of each bin's weight."""

    def __cinit__(self, double r, Py_ssize_t max_binned, double memory=0.0):
        self.declare_rule(2 + 2 * BINS, 0)
        self.r = r
        self.max_binned = max_binned
        self.ceiling = memory / r if memory > 0.0 else 1e300

    def __dealloc__(self):
        free(self.sample)
        free(self.edge)
        free(self.met)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t binned = min(capacity, self.max_binned)
        BinaryRule.grow(self, capacity)
        if binned <= self.binned:
            return 0
        self.sample = <double*> realloc(self.sample, binned * SAMPLE * sizeof(double))
        self.edge = <double*> realloc(self.edge, binned * (BINS - 1) * sizeof(double))
        self.met = <int64_t*> realloc(self.met, binned * sizeof(int64_t))
        if self.sample == NULL or self.edge == NULL or self.met == NULL:
            raise MemoryError
        memset(self.met + self.binned, 0, (binned - self.binned) * sizeof(int64_t))
        memset(self.sample + self.binned * SAMPLE, 0, (binned - self.binned) * SAMPLE * sizeof(double))
        memset(self.edge + self.binned * (BINS - 1), 0, (binned - self.binned) * (BINS - 1) * sizeof(double))
        self.binned = binned
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        BinaryRule.forget(self, slot)
        if slot < self.binned:
            self.met[slot] = 0
            memset(self.sample + slot * SAMPLE, 0, SAMPLE * sizeof(double))
            memset(self.edge + slot * (BINS - 1), 0, (BINS - 1) * sizeof(double))

    cdef void negate(self, int c) noexcept nogil:
        cdef Py_ssize_t slot, b
        cdef double* s
        for slot in range(self.capacity):
            for b in range(BINS + 1):
                s = at(self, <int32_t> slot, c) + 2 * b
                s[0] = 0.0 - s[0]  # zero keeps its sign: slots not yet met are alike before and after loading

    cdef inline int bin_of(self, int32_t slot, double x) noexcept nogil:
        """The bin of a value, counted from 1; 0 while the feature has none."""
        cdef double* edge
        cdef int b, k = 1
        if slot == 0 or slot >= self.binned or self.met[slot] < 4:
            return 0
        edge = self.edge + slot * (BINS - 1)
        for b in range(BINS - 1):
            k += x > edge[b]
        return k

    cdef void absorb(self, View* v) noexcept nogil:
        """Let the values join their samples; edges are placed anew at counts 4, 8, 16, ..."""
        cdef Py_ssize_t i
        cdef int32_t s
        cdef int64_t n
        cdef uint64_t place
        for i in range(v.n):
            s = v.slot[i]
            if s == 0 or s >= self.binned or self.space.kind[s] & INDICATOR:
                continue
            n = self.met[s]
            place = <uint64_t> n if n < SAMPLE else draw(0, s, n) % <uint64_t> (n + 1)
            if place < SAMPLE:
                self.sample[s * SAMPLE + place] = v.raw[i]
            n += 1
            self.met[s] = n
            if n >= 4 and (n & (n - 1)) == 0:
                self.place_edges(s)

    cdef void place_edges(self, int32_t slot) noexcept nogil:
        cdef double sorted_sample[SAMPLE]
        cdef Py_ssize_t i, j, m = min(self.met[slot], <int64_t> SAMPLE)
        cdef double x
        for i in range(m):
            x = self.sample[slot * SAMPLE + i]
            j = i - 1
            while j >= 0 and sorted_sample[j] > x:
                sorted_sample[j + 1] = sorted_sample[j]
                j -= 1
            sorted_sample[j + 1] = x
        for j in range(BINS - 1):
            self.edge[slot * (BINS - 1) + j] = sorted_sample[((j + 1) * m) // BINS]

    cdef double score(self, View* v, int c) noexcept nogil:
        cdef double f = 0.0
        cdef double* s
        cdef Py_ssize_t i
        cdef int b
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            f += s[0] * v.x[i]
            b = self.bin_of(v.slot[i], v.raw[i])
            if b:
                f += s[2 * b]
        return f

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.absorb(v)
        BinaryRule.learn(self, v, y, w)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        Model.learn_scored(self, v, y, w, scores, probs)  # the bins of an update are not those of the score before it

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        cdef double f = 0.0, confidence = 0.0, loss, step, r = self.r / w
        cdef double* s
        cdef Py_ssize_t i
        cdef int b
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            f += s[0] * v.x[i]
            confidence += v.x[i] * v.x[i] / (1.0 + s[1])
            b = self.bin_of(v.slot[i], v.raw[i])
            if b:
                f += s[2 * b]
                confidence += 1.0 / (1.0 + s[2 * b + 1])
        loss = capped(1.0 - y * f)
        if loss <= 0.0:
            return f
        step = loss * y / (confidence + r)
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            s[0] += step * v.x[i] / (1.0 + s[1])
            s[1] = min(s[1] + v.x[i] * v.x[i] / r, self.ceiling)
            b = self.bin_of(v.slot[i], v.raw[i])
            if b:
                s[2 * b] += step / (1.0 + s[2 * b + 1])
                s[2 * b + 1] = min(s[2 * b + 1] + 1.0 / r, self.ceiling)
        return f

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Largest difference that the feature's bins make, and its linear weight."""
        cdef double total = 0.0, low, high
        cdef double* s
        cdef int b, c
        for c in range(self.problems):
            s = at(self, slot, c)
            low = 0.0
            high = 0.0
            for b in range(1, BINS + 1):
                low = min(low, s[2 * b])
                high = max(high, s[2 * b])
            total += fabs(s[0]) + high - low
        return total

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int b, c = label if self.problems > 1 else 0
        cdef double sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        cdef double* s
        if self.classes < 2:
            sign = 0.0
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            out[i] = sign * s[0] * v.x[i]
            b = self.bin_of(v.slot[i], v.raw[i])
            if b:
                out[i] += sign * s[2 * b]

    def dump(self, Py_ssize_t size):
        arrays = BinaryRule.dump(self, size)
        cdef Py_ssize_t binned = min(size, self.binned)
        sample = np.zeros((binned, SAMPLE))
        edge = np.zeros((binned, BINS - 1))
        met = np.zeros(binned, dtype=np.int64)
        cdef double[:, ::1] rows
        cdef int64_t[::1] counts
        if binned:
            rows = sample
            memcpy(&rows[0, 0], self.sample, binned * SAMPLE * sizeof(double))
            rows = edge
            memcpy(&rows[0, 0], self.edge, binned * (BINS - 1) * sizeof(double))
            counts = met
            memcpy(&counts[0], self.met, binned * sizeof(int64_t))
        return {**arrays, "sample": sample, "edge": edge, "met": met}

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef double[:, ::1] rows
        cdef int64_t[::1] counts
        BinaryRule.fill(self, arrays, capacity)
        self.grow(capacity)
        counts = np.ascontiguousarray(checked_array(arrays, "met", "i", (None,), 0, 1 << 53), dtype=np.int64)
        if counts.shape[0] > self.binned:
            raise ValueError("met holds more features than are binned")
        checked_array(arrays, "sample", "f", (counts.shape[0], SAMPLE))
        checked_array(arrays, "edge", "f", (counts.shape[0], BINS - 1))
        if counts.shape[0] == 0:
            return
        memcpy(self.met, &counts[0], counts.shape[0] * sizeof(int64_t))
        rows = np.ascontiguousarray(arrays["sample"], dtype=np.float64)
        memcpy(self.sample, &rows[0, 0], counts.shape[0] * SAMPLE * sizeof(double))
        rows = np.ascontiguousarray(arrays["edge"], dtype=np.float64)
        memcpy(self.edge, &rows[0, 0], counts.shape[0] * (BINS - 1) * sizeof(double))

    def notes(self):
        if self.space.size > self.max_binned:
            return [f"features beyond the first {self.max_binned - 1} are linear only (max_binned)"]
        return []

    def nbytes(self):
        return BinaryRule.nbytes(self) + self.binned * ((SAMPLE + BINS - 1) * sizeof(double) + sizeof(int64_t))

"""Additive learner: diagonal AROW over each feature's scaled value and the quantile bin that it falls in.

An instance has two inputs per feature: its value, and 1 for its bin. The edges of the bins are quantiles of a random
sample of the feature's values; they are computed again when the count of values is a power of two.
"""

from functools import partial

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint64_t

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.models.one_vs_rest cimport at
from varifold._engine.view cimport View
from varifold._numeric.hashing cimport draw
from varifold.linear._diagonal cimport DiagonalRule, Input

from varifold._engine.merging import APPROXIMATE, natural_mean
from varifold._engine.state import fixed, per_slot


def joined_sample(counts, samples):
    """Merge samples into one of at most SAMPLE values, each contributing in proportion to its count of values."""
    held = np.minimum(counts, SAMPLE)
    if counts.sum() <= SAMPLE:
        wanted = held
    else:
        ends = np.rint(np.cumsum(counts) * (SAMPLE / counts.sum())).astype(np.int64)
        wanted = np.minimum(np.diff(ends, prepend=0), held)
    return np.concatenate([sample[np.arange(n) * size // n] if n else sample[:0]
                           for sample, n, size in zip(samples, wanted.tolist(), held.tolist())])


cdef class AdditiveRule(DiagonalRule):
    """Per slot and problem: mean and precision of the linear weight, then of each bin's weight."""

    def __cinit__(self, double r, Py_ssize_t max_binned, double memory=0.0):
        self.declare_inputs(1 + BINS, 2, r, memory)
        self.max_binned = max_binned
        # without bins there are no entries: the rule is linear
        per_binned = partial(per_slot, most=max_binned) if max_binned > 0 else partial(fixed, 0)
        self.arrays.declare("sample", &self.sample, per_binned(width=SAMPLE))
        self.arrays.declare("edge", &self.edge, per_binned(width=BINS - 1))
        self.arrays.declare("count", &self.seen, per_binned(low=0, high=1 << 53))

    cdef inline int bin_of(self, int32_t slot, double x) noexcept nogil:
        """Return the bin of a value, counted from 1; 0 while the feature has no bins."""
        cdef double* edge
        cdef int b, k = 1
        if slot == 0 or slot >= self.max_binned or self.seen[slot] < 4:
            return 0
        edge = self.edge + slot * (BINS - 1)
        for b in range(BINS - 1):
            k += x > edge[b]
        return k

    cdef void sample_values(self, View* v) noexcept nogil:
        """Add the values to their samples (reservoir sampling); edges are placed at counts 4, 8, 16, ..."""
        cdef Py_ssize_t i
        cdef int32_t s
        cdef int64_t n
        cdef uint64_t place
        for i in range(v.n):
            s = v.slot[i]
            if s == 0 or s >= self.max_binned or self.space.kind[s] & INDICATOR:
                continue
            n = self.seen[s]
            place = <uint64_t> n if n < SAMPLE else draw(0, s, n) % <uint64_t> (n + 1)
            if place < SAMPLE:
                self.sample[s * SAMPLE + place] = v.raw[i]
            n += 1
            self.seen[s] = n
            if n >= 4 and (n & (n - 1)) == 0:
                self.place_edges(s)

    cdef void place_edges(self, int32_t slot) noexcept nogil:
        """Set the edges of a slot to the quantiles 1/8, 2/8, ... of its sample, sorted by insertion."""
        cdef double sorted_sample[SAMPLE]
        cdef Py_ssize_t i, j, m = min(self.seen[slot], <int64_t> SAMPLE)
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

    cdef void collect(self, View* v) noexcept nogil:
        cdef Py_ssize_t i
        cdef int b
        cdef Input* p = self.inputs
        for i in range(v.n):
            p.pair = <Py_ssize_t> v.slot[i] * self.width
            p.x = v.x[i]
            p += 1
            b = self.bin_of(v.slot[i], v.raw[i])
            if b:
                p.pair = <Py_ssize_t> v.slot[i] * self.width + 2 * b
                p.x = 1.0
                p += 1
        self.count = p - self.inputs

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.sample_values(v)
        DiagonalRule.learn(self, v, y, w)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        Model.learn_scored(self, v, y, w, scores, probs)  # learning may move the edges between score and update

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return the largest difference between the feature's bins plus its linear weight, over all problems."""
        cdef double total = 0.0, low, high
        cdef double* s
        cdef int b, c
        for c in range(self.problems):
            s = at(self, slot, c)
            low = 0.0
            high = 0.0
            for b in range(1, BINS + 1):
                low = min(low, s[2 * b * self.plane])
                high = max(high, s[2 * b * self.plane])
            total += fabs(s[0]) + high - low
        return total

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        if self.classes < 2:
            sign = 0.0
        self.parts(v, label if self.problems > 1 else 0, out)
        for i in range(v.n):
            out[i] *= sign

    cdef void parts(self, View* v, int c, double* out) noexcept nogil:
        """Compute each entry's contribution to the score of problem c."""
        cdef Py_ssize_t i
        cdef int b
        cdef double* s
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            out[i] = s[0] * v.x[i]
            b = self.bin_of(v.slot[i], v.raw[i])
            if b:
                out[i] += s[2 * b * self.plane]

    def notes(self):
        if 0 < self.max_binned < self.space.size:
            return [f"features beyond the first {self.max_binned - 1} are linear only (max_binned)"]
        return []

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """Sum the natural parameters of values and bins, bins matched by rank; merge samples by their counts."""
        signed = range(0, self.width, 2)
        states = [part.by_slot_problem("state", signed) for part in parts]
        for part, state in zip(parts, states):
            part.rescaled(state[..., 0])
            part.rescaled_precisions(state[..., 1])
        merged = np.empty_like(states[0])
        merged[..., ::2], precision = natural_mean([s[..., ::2] for s in states], [s[..., 1::2] for s in states])
        merged[..., 1::2] = np.minimum(precision, self.ceiling)
        most = self.max_binned
        counts = np.stack([part.by_slot("count", 0, most) for part in parts])
        samples = np.stack([part.by_slot("sample", 0.0, most) for part in parts])
        sample, edge = np.zeros(samples.shape[1:]), np.zeros((samples.shape[1], BINS - 1))
        for slot in np.flatnonzero(counts.sum(axis=0)):
            values = joined_sample(counts[:, slot], samples[:, slot])
            sample[slot, :len(values)] = values
            if len(values) >= 4:    # of fewer values no bins are made
                edge[slot] = np.sort(values)[np.arange(1, BINS) * len(values) // BINS]
        return {"state": merged, "shared": np.zeros((merged.shape[1], 0)),
                "sample": sample, "edge": edge, "count": counts.sum(axis=0)}

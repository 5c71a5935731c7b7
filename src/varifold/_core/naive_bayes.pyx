"""Naive Bayes over the features present: Gaussian for numbers, categorical for indicators."""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from varifold._core.model cimport Model
from varifold._core.names cimport INDICATOR
from varifold._core.space cimport Space
from varifold._core.view cimport View

cdef double STRONGEST = 50.0  # bound of what one feature may say, in log units


cdef inline double held(double square) noexcept nogil:
    """A squared distance, held where the difference of two is still a number."""
    return square if square < 1e100 else 1e100


cdef inline double bounded(double e) noexcept nogil:
    return STRONGEST if e > STRONGEST else (-STRONGEST if e < -STRONGEST else e)


cdef inline double common_mean(Moments* m, int k, double n) noexcept nogil:
    """The mean over all classes; exact where the values are all the same."""
    cdef int c
    cdef double origin = 0.0, shift = 0.0
    for c in range(k):
        if m[c].n > 0.0:
            origin = m[c].mean
            break
    for c in range(k):
        if m[c].n > 0.0:
            shift += m[c].n / n * (m[c].mean - origin)
    return origin + shift


cdef class GaussianNBModel(Model):
    """Scores are log prior + sum over present features of log p(x | class) / p(x), so that 0 says nothing.

    A class's mean and variance (or share, of an indicator) are drawn to those of all classes by `prior` observations.
    """

    def __cinit__(self, double prior):
        self.prior = prior
        self.wants_columns = True
        self.room = 2

    def __dealloc__(self):
        free(self.table)
        free(self.counts)

    cdef int attach(self, Space space) except -1:
        self.counts = <double*> calloc(self.room, sizeof(double))
        if self.counts == NULL:
            raise MemoryError
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if capacity <= self.capacity:
            return 0
        self.table = <Moments*> realloc(self.table, capacity * self.room * sizeof(Moments))
        if self.table == NULL:
            raise MemoryError
        memset(self.table + self.capacity * self.room, 0, (capacity - self.capacity) * self.room * sizeof(Moments))
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        cdef Py_ssize_t slot, room = self.room
        cdef Moments* table
        if self.classes == room:
            room = 2 * self.room
            table = <Moments*> calloc(self.capacity * room, sizeof(Moments))
            if table == NULL:
                raise MemoryError
            for slot in range(self.capacity):
                memcpy(table + slot * room, self.table + slot * self.room, self.room * sizeof(Moments))
            free(self.table)
            self.table = table
            self.counts = <double*> realloc(self.counts, room * sizeof(double))
            if self.counts == NULL:
                raise MemoryError
            memset(self.counts + self.room, 0, (room - self.room) * sizeof(double))
            self.room = room
        self.classes += 1
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        memset(self.table + slot * self.room, 0, self.room * sizeof(Moments))

    cdef inline double log_prior(self, int c) noexcept nogil:
        cdef int i
        cdef double total = 0.0
        for i in range(self.classes):
            total += self.counts[i]
        return log((self.counts[c] + self.prior) / (total + self.classes * self.prior))

    cdef void evidence(self, int32_t slot, double x, double* out) noexcept nogil:
        """Add to out what the value says of each class against all classes together."""
        cdef Moments* m = self.table + slot * self.room
        cdef Moments* head
        cdef int c, k = self.classes
        cdef double n = 0.0, mean, m2 = 0.0, columns = 0.0, share, variance, own, d, weight
        for c in range(k):
            n += m[c].n
        if n == 0.0:
            return
        if self.space.kind[slot] & INDICATOR:
            head = self.table + self.space.column[slot] * self.room
            for c in range(k):
                columns += head[c].column
            if columns <= 0.0:
                return
            share = n / columns
            for c in range(k):
                own = (m[c].n + self.prior * share) / (head[c].column + self.prior)
                out[c] += bounded(log(own / share))
            return
        mean = common_mean(m, k, n)
        for c in range(k):
            d = m[c].mean - mean
            m2 += m[c].m2 + m[c].n * d * d
        variance = min(m2, 1e300) / n
        if not variance > 1e-300:
            return
        share = held((x - mean) * (x - mean) / variance)
        for c in range(k):
            weight = m[c].n + self.prior
            d = m[c].mean - mean
            # around the shrunk mean, which lies prior / weight of the way to the common one
            own = (m[c].m2 + self.prior * variance + m[c].n * self.prior / weight * d * d) / weight
            own = held(own / variance) + 1e-9
            d = x - mean - d * (m[c].n / weight)
            out[c] += bounded(0.5 * (share - held(d * d / variance / own) - log(own)))

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c
        for c in range(self.classes):
            out[c] = self.log_prior(c) if v.n and v.slot[0] == 0 else 0.0
        for i in range(v.n):
            if v.slot[i] != 0:
                self.evidence(v.slot[i], v.raw[i], out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i
        cdef Moments* m
        cdef double d
        self.counts[y] += w
        for i in range(v.n):
            if v.slot[i] == 0:
                continue
            m = self.table + v.slot[i] * self.room + y
            m.n += w
            if not self.space.kind[v.slot[i]] & INDICATOR:
                d = v.raw[i] - m.mean
                m.mean += d * (w / m.n)
                m.m2 += w * d * (v.raw[i] - m.mean)
                if m.m2 > 1e300:
                    m.m2 = 1e300
        for i in range(v.columns):
            self.table[v.column[i] * self.room + y].column += w

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Spread of the class means in common deviations; of an indicator, of the shares."""
        cdef Moments* m = self.table + slot * self.room
        cdef Moments* head = self.table + self.space.column[slot] * self.room
        cdef int c
        cdef double n = 0.0, mean, m2 = 0.0, total = 0.0, columns = 0.0
        for c in range(self.classes):
            n += m[c].n
            columns += head[c].column
        if n == 0.0:
            return 0.0
        if self.space.kind[slot] & INDICATOR:
            for c in range(self.classes):
                if head[c].column > 0.0 and columns > 0.0:
                    total += fabs(m[c].n / head[c].column - n / columns)
            return total
        mean = common_mean(m, self.classes, n)
        for c in range(self.classes):
            m2 += m[c].m2
        for c in range(self.classes):
            if m[c].n > 0.0:
                total += fabs(m[c].mean - mean)
        return total / sqrt(m2 / n) if m2 > 1e-300 else 0.0

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double* by_class = <double*> calloc(self.classes, sizeof(double))
        memset(out, 0, v.n * sizeof(double))
        if by_class == NULL:
            return
        for i in range(v.n):
            if v.slot[i] == 0:
                out[i] = self.log_prior(label)
                continue
            memset(by_class, 0, self.classes * sizeof(double))
            self.evidence(v.slot[i], v.raw[i], by_class)
            out[i] = by_class[label]
        free(by_class)

    def dump(self, Py_ssize_t size):
        cdef double[:, :, ::1] view = np.zeros((size, max(1, self.classes), 4))
        cdef Py_ssize_t slot
        for slot in range(size):
            memcpy(&view[slot, 0, 0], self.table + slot * self.room, self.classes * sizeof(Moments))
        arrays = Model.dump(self, size)
        arrays["moments"] = np.asarray(view)
        arrays["counts"] = np.array([self.counts[c] for c in range(self.classes)], dtype=np.float64)
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef const double[:, :, ::1] view = np.ascontiguousarray(arrays["moments"], dtype=np.float64)
        cdef Py_ssize_t slot
        if view.shape[2] != 4:
            raise ValueError("the arrays do not belong to this method")
        self.classes = 0
        for slot in range(int(arrays["classes"][0])):
            self.add_class()
        GaussianNBModel.grow(self, capacity)
        memset(self.table, 0, self.capacity * self.room * sizeof(Moments))
        for slot in range(view.shape[0]):
            memcpy(self.table + slot * self.room, &view[slot, 0, 0], self.classes * sizeof(Moments))
        for slot in range(self.classes):
            self.counts[slot] = arrays["counts"][slot]

    def nbytes(self):
        return self.capacity * self.room * sizeof(Moments)

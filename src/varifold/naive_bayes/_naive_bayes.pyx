"""Naive Bayes over the features present: from their values (GaussianNB), or from their presence alone (NB3)."""

import numpy as np

from libc.math cimport ceil, fabs, log, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, qsort, realloc
from libc.string cimport memcpy, memset

from varifold._engine.model cimport Model
from varifold._engine.names cimport INDICATOR
from varifold._engine.space cimport Space
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

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


cdef class ClassTable(Model):
    """Numbers by slot and class, and the weight learned by class; grows with both."""

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
        cdef Py_ssize_t row = self.room * self.width
        if capacity <= self.capacity:
            return 0
        self.table = <double*> realloc(self.table, capacity * row * sizeof(double))
        if self.table == NULL:
            raise MemoryError
        memset(self.table + self.capacity * row, 0, (capacity - self.capacity) * row * sizeof(double))
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        cdef Py_ssize_t slot, room = self.room, wide = self.width
        cdef double* table
        if self.classes == room:
            room = 2 * self.room
            table = <double*> calloc(self.capacity * room * wide, sizeof(double))
            if table == NULL:
                raise MemoryError
            for slot in range(self.capacity):
                memcpy(table + slot * room * wide, self.table + slot * self.room * wide,
                       self.room * wide * sizeof(double))
            free(self.table)
            self.table = table
            self.counts = <double*> realloc(self.counts, room * sizeof(double))
            if self.counts == NULL:
                raise MemoryError
            memset(self.counts + self.room, 0, (room - self.room) * sizeof(double))
            self.room = room
        self.classes += 1
        return 0

    cdef inline double* row(self, int32_t slot) noexcept nogil:
        return self.table + slot * self.room * self.width

    cdef void forget(self, int32_t slot) noexcept nogil:
        memset(self.row(slot), 0, self.room * self.width * sizeof(double))

    cdef inline double log_prior(self, int c) noexcept nogil:
        cdef int i
        cdef double total = 0.0
        for i in range(self.classes):
            total += self.counts[i]
        return log((self.counts[c] + self.prior) / (total + self.classes * self.prior))

    def dump(self, Py_ssize_t size):
        cdef double[:, :, ::1] view = np.zeros((size, max(1, self.classes), self.width))
        cdef Py_ssize_t slot
        for slot in range(size):
            memcpy(&view[slot, 0, 0], self.row(<int32_t> slot), self.classes * self.width * sizeof(double))
        arrays = Model.dump(self, size)
        arrays["table"] = np.asarray(view)
        arrays["counts"] = np.array([self.counts[c] for c in range(self.classes)], dtype=np.float64)
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t slot
        classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        checked_array(arrays, "counts", "f", (classes,), 0)
        cdef const double[:, :, ::1] view = checked_array(arrays, "table", "f", (None, max(1, classes), self.width))
        if view.shape[0] > capacity:
            raise ValueError("the table holds more features than there are")
        self.classes = 0
        for slot in range(classes):
            ClassTable.add_class(self)
        ClassTable.grow(self, capacity)
        memset(self.table, 0, self.capacity * self.room * self.width * sizeof(double))
        for slot in range(view.shape[0]):
            memcpy(self.row(<int32_t> slot), &view[slot, 0, 0], self.classes * self.width * sizeof(double))
        for slot in range(self.classes):
            self.counts[slot] = arrays["counts"][slot]

    def nbytes(self):
        return self.capacity * self.room * self.width * sizeof(double)


cdef class GaussianNBModel(ClassTable):
    """Scores are log prior + sum over present features of log p(x | class) / p(x), so that 0 says nothing.

    A class's mean and variance (or share, of an indicator) are drawn to those of all classes by `prior` observations.
    """

    def __cinit__(self, double prior):
        self.product = NULL
        self.width = 4
        self.room = 2
        self.prior = prior
        self.wants_columns = True

    def __dealloc__(self):
        free(self.product)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        ClassTable.grow(self, capacity)
        return self.fit()

    cdef int add_class(self) except -1:
        ClassTable.add_class(self)
        return self.fit()

    cdef int fit(self) except -1:
        self.product = <double*> realloc(self.product, self.room * sizeof(double))
        if self.product == NULL:
            raise MemoryError
        return 0

    def fill(self, dict arrays, Py_ssize_t capacity):
        ClassTable.fill(self, arrays, capacity)
        self.fit()

    cdef void evidence(self, int32_t slot, double x, double* out, double* product) noexcept nogil:
        """Add to out what the value says of each class against all classes together.

        With `product` (by class, from 1) half the logarithm of a variance may wait in it, to be taken off at the end.
        """
        cdef Moments* m = <Moments*> self.row(slot)
        cdef Moments* head
        cdef int c, k = self.classes
        cdef double n = 0.0, mean, m2 = 0.0, columns = 0.0, share, variance, own, d, weight, far, per
        for c in range(k):
            n += m[c].n
        if n == 0.0:
            return
        if self.space.kind[slot] & INDICATOR:
            head = <Moments*> self.row(self.space.column[slot])
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
        per = 1.0 / variance
        share = held((x - mean) * (x - mean) * per)
        for c in range(k):
            weight = 1.0 / (m[c].n + self.prior)
            d = m[c].mean - mean
            # around the shrunk mean, which lies prior * weight of the way to the common one
            own = held((m[c].m2 + m[c].n * self.prior * weight * d * d) * weight * per + self.prior * weight) + 1e-9
            d = x - mean - d * (m[c].n * weight)
            far = share - held(d * d * per / own)
            if product != NULL and fabs(far) < 60.0 and own < 1e8:
                out[c] += 0.5 * far  # within the bounds whatever the logarithm of own: it can wait
                product[c] *= own
                if not 1e-200 < product[c] < 1e200:
                    out[c] -= 0.5 * log(product[c])
                    product[c] = 1.0
            else:
                out[c] += bounded(0.5 * (far - log(own)))

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c
        for c in range(self.classes):
            out[c] = self.log_prior(c) if v.n and v.slot[0] == 0 else 0.0
            self.product[c] = 1.0
        for i in range(v.n):
            if v.slot[i] != 0:
                self.evidence(v.slot[i], v.raw[i], out, self.product)
        for c in range(self.classes):
            out[c] -= 0.5 * log(self.product[c])

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i
        cdef Moments* m
        cdef double d
        self.counts[y] += w
        for i in range(v.n):
            if v.slot[i] == 0:
                continue
            m = <Moments*> self.row(v.slot[i]) + y
            m.n += w
            if not self.space.kind[v.slot[i]] & INDICATOR:
                d = v.raw[i] - m.mean
                m.mean += d * (w / m.n)
                m.m2 += w * d * (v.raw[i] - m.mean)
                # rounding of a huge value beside a small weight can take it below nothing
                m.m2 = 0.0 if m.m2 < 0.0 else min(m.m2, 1e300)
        for i in range(v.columns):
            (<Moments*> self.row(v.column[i]))[y].column += w

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Spread of the class means in common deviations; of an indicator, of the shares."""
        cdef Moments* m = <Moments*> self.row(slot)
        cdef Moments* head = <Moments*> self.row(self.space.column[slot])
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
            self.evidence(v.slot[i], v.raw[i], by_class, NULL)
            out[i] = by_class[label]
        free(by_class)


cdef int by_chi2(const void* a, const void* b) noexcept nogil:
    """Largest first; among equals the earlier entry."""
    cdef const Ranked* p = <const Ranked*> a
    cdef const Ranked* q = <const Ranked*> b
    if p.chi2 != q.chi2:
        return -1 if p.chi2 > q.chi2 else 1
    return -1 if p.i < q.i else 1


cdef inline double summed(int k, double* row) noexcept nogil:
    cdef int c
    cdef double total = 0.0
    for c in range(k):
        total += row[c]
    return total


cdef class NB3Model(ClassTable):
    """Per slot and class: the weight of the instances that held the feature."""

    def __cinit__(self, double prior, double M):
        self.width = 1
        self.room = 2
        self.prior = prior
        self.M = M

    def __dealloc__(self):
        free(self.ranked)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        ClassTable.grow(self, capacity)
        self.ranked = <Ranked*> realloc(self.ranked, capacity * sizeof(Ranked))
        if self.ranked == NULL:
            raise MemoryError
        return 0

    cdef double chi2(self, int32_t slot) noexcept nogil:
        """How far presence and class are from independence."""
        cdef double* n = self.row(slot)
        cdef double held = 0.0, total = 0.0, expected, d, found = 0.0
        cdef int c
        for c in range(self.classes):
            held += n[c]
            total += self.counts[c]
        for c in range(self.classes):
            expected = held * self.counts[c] / total if total > 0.0 else 0.0
            d = n[c] - expected
            if expected > 0.0:
                found += d * d / expected
            if self.counts[c] - expected > 0.0:
                found += d * d / (self.counts[c] - expected)
        return found

    cdef Py_ssize_t choose(self, View* v) noexcept nogil:
        """Rank the entries of the view; returns how many of the first ones speak."""
        cdef Py_ssize_t i, n = 0
        for i in range(v.n):
            if v.slot[i] != 0:
                self.ranked[n].i = i
                self.ranked[n].chi2 = self.chi2(v.slot[i]) if self.M < 1.0 else 0.0
                n += 1
        if self.M < 1.0:
            qsort(self.ranked, n, sizeof(Ranked), by_chi2)
            n = <Py_ssize_t> ceil(self.M * n)
        return n

    cdef inline double says(self, int32_t slot, int label) noexcept nogil:
        """log P(present | class) / P(present)."""
        cdef double* n = self.row(slot)
        cdef double held = 0.0, total = 0.0
        cdef int c
        for c in range(self.classes):
            held += n[c]
            total += self.counts[c]
        return log((n[label] + self.prior) / (self.counts[label] + 2.0 * self.prior)
                   * (total + 2.0 * self.prior) / (held + self.prior))

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i, n = self.choose(v)
        cdef int c, k = self.classes
        cdef double total = 0.0, held, product
        cdef double* row
        for c in range(k):
            out[c] = self.log_prior(c) if v.n and v.slot[0] == 0 else 0.0
            total += self.counts[c]
        for c in range(k):
            product = 1.0  # of what says() takes the logarithms of, but for a factor common to all features
            for i in range(n):
                row = self.row(v.slot[self.ranked[i].i])
                held = self.prior + (row[0] + row[1] if k == 2 else summed(k, row))
                product *= (row[c] + self.prior) / held
                if not 1e-200 < product < 1e200:
                    out[c] += log(product)
                    product = 1.0
            out[c] += log(product) + n * log((total + 2.0 * self.prior) / (self.counts[c] + 2.0 * self.prior))

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i
        self.counts[y] += w
        for i in range(v.n):
            if v.slot[i] != 0:
                self.row(v.slot[i])[y] += w

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.chi2(slot)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i, n = self.choose(v)
        memset(out, 0, v.n * sizeof(double))
        if v.n and v.slot[0] == 0:
            out[0] = self.log_prior(label)
        for i in range(n):
            out[self.ranked[i].i] = self.says(v.slot[self.ranked[i].i], label)

"""Gaussian naive Bayes over the features present.

The score of a class is log P(class) + sum over the features present of log p(x | class) / p(x), so that a feature
that tells nothing adds 0. Numbers are normal within a class; an indicator has a share of the instances that have its
column.
"""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.names cimport INDICATOR
from varifold._engine.state cimport CLASS
from varifold._engine.view cimport View
from varifold.naive_bayes._class_table cimport ClassTable, row_of

from varifold._engine.merging import EXACT, merged_moments, total

cdef double STRONGEST = 50.0  # bound of what one feature may add to a score


cdef inline double limited(double square) noexcept nogil:
    """A squared distance, limited so that the difference of two is a finite number."""
    return square if square < 1e100 else 1e100


cdef inline double bounded(double e) noexcept nogil:
    """What one feature adds to a score, within its bounds."""
    return STRONGEST if e > STRONGEST else (-STRONGEST if e < -STRONGEST else e)


cdef inline double common_mean(Moments* m, int k, double n) noexcept nogil:
    """The mean over all classes; exact where all values are equal."""
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


cdef class GaussianNBModel(ClassTable):
    """Per slot and class: `Moments`.

    A class's mean and variance (or share, of an indicator) are shrunk to those of all classes by `prior` observations.
    """

    def __cinit__(self, double prior):
        self.declare_table(4, prior)
        self.wants_columns = True
        self.arrays.scratch(<void**> &self.product, CLASS)
        self.arrays.scratch(<void**> &self.evidence_of, CLASS)

    cdef void evidence(self, int32_t slot, double x, double* out, double* product) noexcept nogil:
        """Add log p(x | class) / p(x) to each class's entry of `out`.

        With `product` (by class, 1 at first) the variances are multiplied there where that is safe: the caller
        subtracts half the logarithm of the product once, instead of one logarithm per feature.
        """
        cdef Moments* m = <Moments*> row_of(self, slot)
        cdef Moments* column
        cdef int c, k = self.classes
        cdef double n = 0.0, mean, m2 = 0.0, columns = 0.0, share, variance, own, d, weight, far, per
        for c in range(k):
            n += m[c].n
        if n == 0.0:
            return
        if self.space.kind[slot] & INDICATOR:
            column = <Moments*> row_of(self, self.space.column[slot])
            for c in range(k):
                columns += column[c].column
            if columns <= 0.0:
                return
            share = n / columns
            for c in range(k):
                own = (m[c].n + self.prior * share) / (column[c].column + self.prior)
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
        share = limited((x - mean) * (x - mean) * per)
        for c in range(k):
            weight = 1.0 / (m[c].n + self.prior)
            d = m[c].mean - mean
            # the variance around the shrunk mean, which lies prior * weight of the way to the common mean
            own = limited((m[c].m2 + m[c].n * self.prior * weight * d * d) * weight * per + self.prior * weight) + 1e-9
            d = x - mean - d * (m[c].n * weight)
            far = share - limited(d * d * per / own)
            if product != NULL and fabs(far) < 60.0 and own < 1e8:
                out[c] += 0.5 * far  # within the bounds whatever the logarithm of own is
                product[c] *= own
                if not 1e-200 < product[c] < 1e200:
                    out[c] -= 0.5 * log(product[c])
                    product[c] = 1.0
            else:
                out[c] += bounded(0.5 * (far - log(own)))

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c
        cdef double total = self.total_weight()
        for c in range(self.classes):
            out[c] = self.log_prior(c, total) if v.n and v.slot[0] == 0 else 0.0
            self.product[c] = 1.0
        for i in range(v.n):
            if v.slot[i] != 0:
                self.evidence(v.slot[i], v.raw[i], out, self.product)
        for c in range(self.classes):
            out[c] -= 0.5 * log(self.product[c])

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        """Welford's update of each number's moments in class y; counts for indicators and columns."""
        cdef Py_ssize_t i
        cdef Moments* m
        cdef double d
        self.counts[y] += w
        for i in range(v.n):
            if v.slot[i] == 0:
                continue
            m = <Moments*> row_of(self, v.slot[i]) + y
            m.n += w
            if not self.space.kind[v.slot[i]] & INDICATOR:
                d = v.raw[i] - m.mean
                m.mean += d * (w / m.n)
                m.m2 += w * d * (v.raw[i] - m.mean)
                # rounding of a huge value with a small weight can make it negative
                m.m2 = 0.0 if m.m2 < 0.0 else min(m.m2, 1e300)
        for i in range(v.columns):
            (<Moments*> row_of(self, v.column[i]))[y].column += w

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Spread of the class means in common deviations; of an indicator, of the shares."""
        cdef Moments* m = <Moments*> row_of(self, slot)
        cdef Moments* column = <Moments*> row_of(self, self.space.column[slot])
        cdef int c
        cdef double n = 0.0, mean, m2 = 0.0, total = 0.0, columns = 0.0
        for c in range(self.classes):
            n += m[c].n
            columns += column[c].column
        if n == 0.0:
            return 0.0
        if self.space.kind[slot] & INDICATOR:
            for c in range(self.classes):
                if column[c].column > 0.0 and columns > 0.0:
                    total += fabs(m[c].n / column[c].column - n / columns)
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
        for i in range(v.n):
            if v.slot[i] == 0:
                out[i] = self.log_prior(label, self.total_weight())
                continue
            memset(self.evidence_of, 0, self.classes * sizeof(double))
            self.evidence(v.slot[i], v.raw[i], self.evidence_of, NULL)
            out[i] = self.evidence_of[label]

    # ---------------------------------------------------------------- merging

    def merging(self):
        return EXACT

    def merge(self, parts):
        """Moments join as Chan's do, counts add up."""
        tables = np.stack([part.by_slot_class("table") for part in parts])
        table = np.empty(tables.shape[1:])
        table[..., 0], table[..., 1], table[..., 2] = merged_moments(*np.moveaxis(tables[..., :3], -1, 0))
        table[..., 3] = tables[..., 3].sum(axis=0)
        return {"table": table, "counts": total([part.by_class("counts") for part in parts])}

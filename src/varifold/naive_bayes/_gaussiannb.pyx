"""Gaussian naive Bayes over the features present.

The score of a class is log P(class) + sum over the features present of log p(x | class) / p(x), so that a feature that
carries no information adds 0. Numbers are normal within a class; an indicator has a share of the instances that have
its column.
"""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from varifold._engine.names.table cimport INDICATOR
from varifold._engine.view cimport View
from varifold._numeric.activation cimport softmax
from varifold._numeric.hashing cimport mix
from varifold.naive_bayes._class_table cimport ClassTable, row_of

from varifold._engine.merging import EXACT, merged_moments, total
from varifold._engine.state import fixed, per_class

cdef double LEAST_MEMBER = 0.01    # probability of a class below which it does not learn an instance without a label

cdef struct Moments:
    double n          # weight of the values seen with the class
    double mean
    double m2         # summed squared deviations
    double column     # weight of the class's instances that had the column

cdef double STRONGEST = 50.0  # bound of one feature's contribution to a score

cdef enum:
    STRIP = 64   # numeric features scored together


cdef inline double limited(double square) noexcept nogil:
    """Bound a squared distance, so that the difference of two is finite."""
    return square if square < 1e100 else 1e100


cdef inline double bounded(double e) noexcept nogil:
    """Bound one feature's contribution to a score."""
    return STRONGEST if e > STRONGEST else (-STRONGEST if e < -STRONGEST else e)


cdef inline double common_mean(Moments* m, int k, double n) noexcept nogil:
    """Return the mean over all classes; exact where all values are equal."""
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


cdef inline void add_evidence(int c, double far, double own, double* out, double* product) noexcept nogil:
    """Add a numeric feature's evidence for class c: half of `far` minus half the logarithm of its variance `own`."""
    if product != NULL and fabs(far) < 60.0 and own < 1e8:
        out[c] += 0.5 * far  # within the bounds for any logarithm of own
        product[c] *= own
        if not 1e-200 < product[c] < 1e200:
            out[c] -= 0.5 * log(product[c])
            product[c] = 1.0
    else:
        out[c] += bounded(0.5 * (far - log(own)))


cdef struct Evidence:
    double total[STRIP]       # weight of the values of both classes
    double variance[STRIP]    # of the values of both
    double far[2][STRIP]      # squared distance from the common mean minus that from the class mean
    double own[2][STRIP]      # variance within the class, in units of the common one


cdef void weigh_strip(Moments* table, Py_ssize_t stride, Py_ssize_t n, const int32_t* slot, const double* x,
                      double prior, Evidence* e) noexcept nogil:
    """Compute GaussianNBModel.evidence() for up to STRIP slots: gathered, so that the compiler vectorises divisions."""
    cdef Moments* m
    cdef double counts[2][STRIP]
    cdef double means[2][STRIP]
    cdef double squares[2][STRIP]
    cdef double total, common, per, share, weight, d, own, m2
    cdef Py_ssize_t i
    cdef int c
    for i in range(n):
        m = table + slot[i] * stride
        for c in range(2):
            counts[c][i] = m[c].n
            means[c][i] = m[c].mean
            squares[c][i] = m[c].m2
    for i in range(n):
        total = counts[0][i] + counts[1][i]
        common = means[0][i] if counts[0][i] > 0.0 else means[1][i]
        common += counts[1][i] / total * (means[1][i] - common)
        m2 = squares[0][i] + counts[0][i] * (means[0][i] - common) * (means[0][i] - common)
        m2 += squares[1][i] + counts[1][i] * (means[1][i] - common) * (means[1][i] - common)
        e.total[i] = total
        e.variance[i] = (m2 if m2 < 1e300 else 1e300) / total
        per = 1.0 / e.variance[i]
        share = limited((x[i] - common) * (x[i] - common) * per)
        for c in range(2):
            weight = 1.0 / (counts[c][i] + prior)
            d = means[c][i] - common
            own = limited((squares[c][i] + counts[c][i] * prior * weight * d * d) * weight * per + prior * weight)
            own += 1e-9
            d = x[i] - common - d * (counts[c][i] * weight)
            e.own[c][i] = own
            e.far[c][i] = share - limited(d * d * per / own)


cdef class GaussianNBModel(ClassTable):
    """Naive Bayes with `Moments` per slot and class.

    A class's mean and variance (or share, of an indicator) are shrunk to those of all classes by `prior` observations.
    """

    cdef double* unlabelled       # [1]: weight of the instances without a label
    cdef double* probability      # scratch, [class]
    cdef double* product          # scratch, [class]: product of variances
    cdef double* evidence_of      # scratch, [class]: contribution of one feature

    def __cinit__(self, double prior):
        self.declare_table(4, prior)
        self.wants_columns = True
        self.learns_unlabelled = True
        self.arrays.declare("unlabelled", &self.unlabelled, fixed(1, low=0))
        self.arrays.scratch(&self.probability, per_class())
        self.arrays.scratch(&self.product, per_class())
        self.arrays.scratch(&self.evidence_of, per_class())

    cdef void evidence(self, int32_t slot, double x, double* out, double* product) noexcept nogil:
        """Add log p(x | class) / p(x) to each class's entry of `out`.

        With `product` (by class, 1 at first) the variances are multiplied there where that is safe: the caller
        subtracts half the logarithm of the product once, instead of one logarithm per feature.
        """
        cdef Moments* m = <Moments*> row_of(self, slot)
        cdef Moments* column
        cdef int c, k = self.classes
        cdef double n = 0.0, mean, m2 = 0.0, columns = 0.0, share, variance, own, d, weight, per
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
            add_evidence(c, share - limited(d * d * per / own), own, out, product)

    cdef void two_classes(self, View* v, double* out) noexcept nogil:
        """Compute evidence() of all numeric features for two classes, STRIP at a time, in the same order."""
        cdef Evidence e
        cdef Py_ssize_t i, n, start = 1 if v.n > 0 and v.slot[0] == 0 else 0
        while start < v.n:
            n = min(v.n - start, <Py_ssize_t> STRIP)
            weigh_strip(<Moments*> self.table, self.stride // 4, n, v.slot + start, v.raw + start, self.prior, &e)
            for i in range(n):
                if e.total[i] > 0.0 and e.variance[i] > 1e-300:
                    add_evidence(0, e.far[0][i], e.own[0][i], out, self.product)
                    add_evidence(1, e.far[1][i], e.own[1][i], out, self.product)
            start += n

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c
        cdef double total = self.total_weight()
        for c in range(self.classes):
            out[c] = self.log_prior(c, total) if v.n and v.slot[0] == 0 else 0.0
            self.product[c] = 1.0
        if self.classes == 2 and not self.space.indicators:
            self.two_classes(v, out)
        else:
            for i in range(v.n):
                if v.slot[i] != 0:
                    self.evidence(v.slot[i], v.raw[i], out, self.product)
        for c in range(self.classes):
            out[c] -= 0.5 * log(self.product[c])

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.counts[y] += w
        self.absorb(v, y, w)

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Do a step of online expectation maximisation: learn the instance in every class by its probability there.

        Labels decide what a class is: all instances without one together weigh about as much as those with one. The
        shares of the classes are those of the labels. Predicting costs as much as learning one instance in every class,
        so one in 2k is learned, drawn by a hash of the step, with 2k times the weight, but at most with its own.
        """
        cdef int c, every = 2 * self.classes
        cdef double labelled = self.total_weight()
        if self.classes < 2 or labelled <= 0.0:
            return
        self.unlabelled[0] += w
        if mix(<uint64_t> v.step) % <uint64_t> every != 0:
            return
        w *= min(every * labelled / self.unlabelled[0], 1.0)
        self.scores(v, self.probability)
        softmax(self.classes, self.probability, self.probability)
        for c in range(self.classes):
            if self.probability[c] > LEAST_MEMBER:
                self.absorb(v, c, w * self.probability[c])

    cdef void absorb(self, View* v, int y, double w) noexcept nogil:
        """Update each numeric feature's moments in class y (Welford); count indicators and columns."""
        cdef Py_ssize_t i
        cdef Moments* m
        cdef double d
        cdef bint indicators = self.space.indicators > 0
        for i in range(v.n):
            if v.slot[i] == 0:
                continue
            m = <Moments*> row_of(self, v.slot[i]) + y
            m.n += w
            if not indicators:
                m.column += w  # every numeric feature is its own column
            if not (indicators and self.space.kind[v.slot[i]] & INDICATOR):
                d = v.raw[i] - m.mean
                m.mean += d * (w / m.n)
                m.m2 += w * d * (v.raw[i] - m.mean)
                # rounding of a huge value with a small weight can make it negative
                m.m2 = 0.0 if m.m2 < 0.0 else min(m.m2, 1e300)
        for i in range(v.columns if indicators else 0):
            (<Moments*> row_of(self, v.column[i]))[y].column += w

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return the spread of the class means in common deviations; for an indicator, that of the shares."""
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
        """Merge moments by Chan's formula and sum the counts."""
        tables = np.stack([part.by_slot_class("table") for part in parts])
        table = np.empty(tables.shape[1:])
        table[..., 0], table[..., 1], table[..., 2] = merged_moments(*np.moveaxis(tables[..., :3], -1, 0))
        table[..., 3] = tables[..., 3].sum(axis=0)
        return {"table": table, "counts": total([part.by_class("counts") for part in parts]),
                "unlabelled": total([part.arrays["unlabelled"] for part in parts])}

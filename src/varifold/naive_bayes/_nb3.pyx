"""NB3 (Katakis, Tsoumakas, Vlahavas 2005): naive Bayes from which features are present, the best of them by chi-square.

The score of a class is log P(class) + sum over the chosen features of log P(present | class) / P(present). The ratio is
that of P(class | present) to P(class), and P(class | present) is smoothed by `prior` instances with the classes' shares:
a new feature changes no score. Laplace smoothing of P(present | class) would let every rare feature favour the
rarest class, and in text most features are rare.
"""

from libc.math cimport ceil, exp, log
from libc.stdint cimport int32_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from varifold._engine.view cimport View
from varifold.naive_bayes._class_table cimport PresenceTable, row_of

from varifold._engine.merging import EXACT, total
from varifold._engine.state import per_class, per_slot

cdef struct Ranked:
    double chi2
    Py_ssize_t i      # entry of the view


cdef int by_chi2(const void* a, const void* b) noexcept nogil:
    """Compare for qsort(): the largest chi-square first, among ties the earlier entry."""
    cdef const Ranked* p = <const Ranked*> a
    cdef const Ranked* q = <const Ranked*> b
    if p.chi2 != q.chi2:
        return -1 if p.chi2 > q.chi2 else 1
    return -1 if p.i < q.i else 1


cdef class NB3Model(PresenceTable):
    """Naive Bayes from feature presence: per slot and class the weight of the instances that had the feature."""

    cdef readonly double M        # share of the features present that is used
    cdef Ranked* ranked           # scratch, by slot
    cdef double* product          # scratch, [class]
    cdef double* share            # scratch, [class]: P(class)

    def __cinit__(self, double prior, double M):
        self.declare_table(1, prior)
        self.M = M
        self.arrays.scratch_bytes(<void**> &self.ranked, sizeof(Ranked), per_slot())
        self.arrays.scratch(&self.product, per_class())
        self.arrays.scratch(&self.share, per_class())

    cdef Py_ssize_t select(self, View* v) noexcept nogil:
        """Rank the entries of the view by chi-square; return how many of the first are used."""
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

    cdef double log_ratio(self, int32_t slot, int label) noexcept nogil:
        """Return log P(class | present) / P(class)."""
        cdef double share = exp(self.log_prior(label, self.total_weight()))
        return log((row_of(self, slot)[label] + self.prior * share) / ((self.presence(slot) + self.prior) * share))

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Compute log prior plus log_ratio() of the selected features, with one logarithm per class of a product."""
        cdef Py_ssize_t i, n = self.select(v)
        cdef int32_t slot
        cdef int c, k = self.classes
        cdef double total = self.total_weight(), present
        cdef double* product = self.product
        cdef double* share = self.share
        cdef double* row
        for c in range(k):
            out[c] = self.log_prior(c, total)
            share[c] = exp(out[c])
            out[c] = (out[c] if v.n and v.slot[0] == 0 else 0.0) - n * out[c]
            product[c] = 1.0
        for i in range(n):
            slot = v.slot[self.ranked[i].i]
            row = row_of(self, slot)
            present = self.prior + self.presence(slot)
            for c in range(k):
                product[c] *= (row[c] + self.prior * share[c]) / present
                if not 1e-200 < product[c] < 1e200:
                    out[c] += log(product[c])
                    product[c] = 1.0
        for c in range(k):
            out[c] += log(product[c])

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i, n = self.select(v)
        memset(out, 0, v.n * sizeof(double))
        if v.n and v.slot[0] == 0:
            out[0] = self.log_prior(label, self.total_weight())
        for i in range(n):
            out[self.ranked[i].i] = self.log_ratio(v.slot[self.ranked[i].i], label)

    # ---------------------------------------------------------------- merging

    def merging(self):
        return EXACT

    def merge(self, parts):
        return {"table": total([part.by_slot_class("table") for part in parts]),
                "counts": total([part.by_class("counts") for part in parts])}

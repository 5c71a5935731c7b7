"""Base of the naive Bayes models: statistics per slot and class, the weight per class and the resulting prior."""

from libc.math cimport log
from libc.stdint cimport int32_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import per_class, per_slot_and_class



cdef class ClassTable(Model):
    """Statistics per slot and class, and the weight learned per class. A subclass calls ``declare_table``."""

    cdef int declare_table(self, Py_ssize_t width, double prior) except -1:
        """Reserve `width` statistics per slot and class; `prior` observations are added to every class."""
        self.prior = prior
        self.width = width
        self.arrays.declare("table", &self.table, per_slot_and_class(width=width))
        self.arrays.declare("counts", &self.counts, per_class(low=0))
        self.arrays.reserve_classes(2)
        self.stride = self.arrays.classes * width
        return 0

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        self.stride = self.arrays.classes * self.width
        return 0

    cdef double total_weight(self) noexcept nogil:
        """Return the weight of all instances learned."""
        cdef int c
        cdef double total = 0.0
        for c in range(self.classes):
            total += self.counts[c]
        return total

    cdef double log_prior(self, int c, double total) noexcept nogil:
        """Return the logarithm of a class's smoothed share of the total weight."""
        return log((self.counts[c] + self.prior) / (total + self.classes * self.prior))

    def fill(self, dict arrays, Py_ssize_t capacity):
        Model.fill(self, arrays, capacity)
        self.stride = self.arrays.classes * self.width


cdef class PresenceTable(ClassTable):
    """Weight of the instances that had the feature, per slot and class, with ``declare_table(1, ...)``."""

    cdef double presence(self, int32_t slot) noexcept nogil:
        """Return the weight of the instances, of any class, that had the feature."""
        cdef double* n = row_of(self, slot)
        cdef double total = 0.0
        cdef int c
        for c in range(self.classes):
            total += n[c]
        return total

    cdef double chi2(self, int32_t slot) noexcept nogil:
        """Return the chi-square statistic of presence and class, which measures their dependence."""
        cdef double* n = row_of(self, slot)
        cdef double present = self.presence(slot), total = self.total_weight(), expected, d, found = 0.0
        cdef int c
        for c in range(self.classes):
            expected = present * self.counts[c] / total if total > 0.0 else 0.0
            d = n[c] - expected
            if expected > 0.0:
                found += d * d / expected
            if self.counts[c] - expected > 0.0:
                found += d * d / (self.counts[c] - expected)
        return found

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i
        self.counts[y] += w
        for i in range(v.n):
            if v.slot[i] != 0:
                row_of(self, v.slot[i])[y] += w

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.chi2(slot)

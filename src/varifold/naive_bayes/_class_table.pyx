"""What the naive Bayes models share: numbers per slot and class, the weight per class and the prior from it."""

from libc.math cimport log

from varifold._engine.model cimport Model
from varifold._engine.state cimport CLASS, FLOAT64, SLOT_CLASS

cdef double ANY = 1e999


cdef class ClassTable(Model):
    """Numbers per slot and class, and the weight learned per class. A subclass calls ``declare_table``."""

    cdef int declare_table(self, Py_ssize_t width, double prior) except -1:
        """Keep `width` numbers per slot and class; `prior` observations are added to every class."""
        self.prior = prior
        self.width = width
        self.arrays.declare("table", <void**> &self.table, SLOT_CLASS, width)
        self.arrays.declare("counts", <void**> &self.counts, CLASS, 1, FLOAT64, True, 0, 0.0, 0.0, ANY)
        self.arrays.reserve_classes(2)
        self.stride = self.arrays.classes * width
        return 0

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        self.stride = self.arrays.classes * self.width
        return 0

    cdef double total_weight(self) noexcept nogil:
        """The weight learned of all classes."""
        cdef int c
        cdef double total = 0.0
        for c in range(self.classes):
            total += self.counts[c]
        return total

    cdef double log_prior(self, int c, double total) noexcept nogil:
        """Logarithm of the smoothed share of a class in the total weight."""
        return log((self.counts[c] + self.prior) / (total + self.classes * self.prior))

    def fill(self, dict arrays, Py_ssize_t capacity):
        Model.fill(self, arrays, capacity)
        self.stride = self.arrays.classes * self.width

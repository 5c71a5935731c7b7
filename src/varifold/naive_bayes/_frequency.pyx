"""The class frequencies so far."""

import numpy as np

from libc.math cimport log
from libc.stdlib cimport free, realloc

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import checked_array


cdef class FrequencyModel(Model):
    """The class frequencies so far, whatever the instance: what every other expert has to beat."""

    def __dealloc__(self):
        free(self.counts)

    cdef int add_class(self) except -1:
        self.counts = <double*> realloc(self.counts, (self.classes + 1) * sizeof(double))
        if self.counts == NULL:
            raise MemoryError
        self.counts[self.classes] = 0.0
        Model.add_class(self)
        return 0

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        for c in range(self.classes):
            out[c] = log(self.counts[c] + 0.5)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.counts[y] += w

    def dump(self, Py_ssize_t size):
        cdef int c
        counts = np.array([self.counts[c] for c in range(self.classes)], dtype=np.float64)
        return {**Model.dump(self, size), "counts": counts}

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int c
        Model.fill(self, arrays, capacity)
        checked_array(arrays, "counts", "f", (self.classes,), 0)
        self.counts = <double*> realloc(self.counts, (self.classes + 1) * sizeof(double))
        if self.counts == NULL:
            raise MemoryError
        for c in range(self.classes):
            self.counts[c] = arrays["counts"][c]

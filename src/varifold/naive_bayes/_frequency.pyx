"""The class frequencies so far."""

from libc.math cimport log

from varifold._engine.model cimport Model
from varifold._engine.state cimport CLASS, FLOAT64
from varifold._engine.view cimport View

from varifold._engine.merging import EXACT, total

cdef double ANY = 1e999


cdef class FrequencyModel(Model):
    """The class frequencies so far, whatever the instance: the baseline of every other expert."""

    def __cinit__(self):
        self.arrays.declare("counts", <void**> &self.counts, CLASS, 1, FLOAT64, True, 0, 0.0, 0.0, ANY)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        for c in range(self.classes):
            out[c] = log(self.counts[c] + 0.5)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.counts[y] += w

    # ---------------------------------------------------------------- merging

    def merging(self):
        return EXACT

    def merge(self, parts):
        return {"counts": total([part.by_class("counts") for part in parts])}

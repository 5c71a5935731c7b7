"""Class frequencies so far, as a model."""

from libc.math cimport log

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.merging import EXACT, total
from varifold._engine.state import per_class



cdef class FrequencyModel(Model):
    """Class frequencies so far, independent of the instance: the baseline of every other expert."""

    cdef double* counts    # [class]: weight learned

    def __cinit__(self):
        self.arrays.declare("counts", &self.counts, per_class(low=0))

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

from libc.stdint cimport int32_t, uint8_t

from varifold.linear._ftrl cimport Penalty
from varifold._engine.names.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View

cdef class VariationLearner:
    cdef Space space
    cdef State arrays
    cdef Penalty penalty
    cdef readonly bint presence      # weights belong to the columns present instead of those absent
    cdef readonly bint bias          # has an unpenalised bias
    cdef bint auto                   # may switch from absence to presence
    cdef double there, known         # sums of present and known columns since the last decision on the encoding
    cdef double rounds               # instances learned
    cdef int problems
    cdef Py_ssize_t plane            # reserved problems
    cdef double* table               # [slot][z, root, weight][problem], see `linear/_ftrl.pxd`; slot 0 is the bias
    cdef double* gradient            # scratch [problem]
    cdef const int32_t* counted      # counted columns of the current instance: those present, or those absent
    cdef Py_ssize_t n_counted
    cdef int32_t* absent             # scratch [slot]
    cdef uint8_t* is_present         # scratch [slot], all zero

    cdef int reserve_slots(self, Py_ssize_t slots) except -1
    cdef int reserve_problems(self, Py_ssize_t problems) except -1
    cdef void split(self) noexcept nogil
    cdef void collect(self, View* v) noexcept nogil
    cdef double score(self, int c) noexcept nogil
    cdef void scores(self, double* out) noexcept nogil
    cdef void learn(self, View* v, int y, double w, const double* scores) noexcept nogil
    cdef void step(self) noexcept nogil
    cdef void step_one(self) noexcept nogil
    cdef void consider_encoding(self, View* v) noexcept nogil
    cdef void encode_presence(self) noexcept nogil

    cdef inline double* cell(self, Py_ssize_t slot, int c) noexcept nogil:
        """Return the state of a slot in problem c; its three values are `plane` apart."""
        return self.table + (3 * slot * self.plane + c)

    cdef inline double weight(self, Py_ssize_t slot, int c) noexcept nogil:
        """Return the weight of a slot in problem c."""
        return self.cell(slot, c)[2 * self.plane]

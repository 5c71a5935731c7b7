from libc.stdint cimport int32_t, uint8_t

from varifold._core.experts cimport Experts
from varifold._core.latent cimport Copula
from varifold._core.model cimport BinaryRule, Model
from varifold._core.view cimport View

cdef class OVFMModel(Model):
    cdef readonly Copula copula
    cdef readonly BinaryRule raw, latent
    cdef readonly bint latent_only
    cdef double radius                 # of the l1 ball, 0 for none
    cdef int parts                     # numbers of a slot, from the first, that the weight is a sum of
    cdef int rate
    cdef double eta
    cdef Experts* mix                  # one a problem: raw, latent
    cdef int mixes
    # the latent instance
    cdef View inner
    cdef int32_t* slot
    cdef double* x
    cdef uint8_t* fresh

    cdef int fit_mixes(self) except -1
    cdef void present(self, View* v) noexcept nogil
    cdef double share(self, int c) noexcept nogil
    cdef double score(self, View* v, int c) noexcept nogil
    cdef void project(self, BinaryRule rule, int c) noexcept nogil

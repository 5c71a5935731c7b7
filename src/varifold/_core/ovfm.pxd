from libc.stdint cimport int32_t, uint8_t

from varifold._core.experts cimport Experts
from varifold._core.latent cimport Copula
from varifold._core.model cimport BinaryRule, Model
from varifold._core.view cimport View

cdef class OVFMModel(Model):
    cdef readonly Copula copula
    cdef readonly BinaryRule raw, latent, presence   # presence may be None
    cdef int halves                    # learners: 3 with presence, else 2
    cdef readonly bint latent_only
    cdef double radius                 # of the l1 ball, 0 for none
    cdef int parts                     # numbers of a slot, from the first, that the weight is a sum of
    cdef int rate
    cdef double eta
    cdef Experts* mix                  # one a problem: raw, latent, presence
    cdef int mixes
    # the latent instance
    cdef View inner
    cdef int32_t* slot
    cdef double* x
    cdef uint8_t* fresh
    cdef double* ones                  # what the presence learner sees

    cdef int fit_mixes(self) except -1
    cdef int fit_ones(self, Py_ssize_t room) except -1
    cdef list held(self)
    cdef void present(self, View* v) noexcept nogil
    cdef View there(self, View* v) noexcept nogil
    cdef void shares(self, int c, double* weights) noexcept nogil
    cdef double score(self, View* v, int c) noexcept nogil
    cdef void project(self, BinaryRule rule, int c) noexcept nogil

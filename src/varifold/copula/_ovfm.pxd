from libc.stdint cimport int32_t, uint8_t

from varifold._numeric.hedge cimport Experts
from varifold.copula._latent cimport Copula
from varifold._engine.model cimport Model
from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class OVFMModel(Model):
    cdef readonly Copula copula
    cdef readonly BinaryRule raw, latent, presence   # presence may be None
    cdef int halves                    # learners: 3 with presence, else 2
    cdef int experts                   # in the mix: 5 with presence, else 2
    cdef readonly bint latent_only
    cdef double radius                 # of the l1 ball, 0 for none
    cdef int parts                     # numbers of a slot, from the first, that the weight is a sum of
    cdef int rate
    cdef double eta
    cdef double odds                   # log-odds that a margin of one stands for
    cdef Experts* mix                  # one a problem
    cdef int mixes
    # the latent instance
    cdef View inner
    cdef int32_t* slot
    cdef double* x
    cdef uint8_t* is_new
    # what the presence learner sees
    cdef View given
    cdef int32_t* given_slot
    cdef double* given_x
    cdef uint8_t* given_fresh
    cdef int32_t* place                # node -> where it stands there

    cdef int fit_mixes(self) except -1
    cdef int fit_given(self, Py_ssize_t room) except -1
    cdef list held(self)
    cdef void present(self, View* v) noexcept nogil
    cdef void attend(self, View* v) noexcept nogil
    cdef void shares(self, int c, double* weights) noexcept nogil
    cdef void count_losses(self, View* v, int c, double sign, double w) noexcept nogil
    cdef double score(self, View* v, int c) noexcept nogil
    cdef void project(self, BinaryRule rule, int c) noexcept nogil

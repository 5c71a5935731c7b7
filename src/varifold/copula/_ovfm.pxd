from libc.stdint cimport int32_t, uint8_t

from varifold._numeric.hedge cimport Experts
from varifold.copula._latent cimport Copula
from varifold._engine.model cimport Model
from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef enum:
    RAW = 0            # the learners
    LATENT = 1
    PRESENCE = 2
    MOST_EXPERTS = 5

cdef class OVFMModel(Model):
    cdef readonly Copula copula
    cdef readonly BinaryRule raw, latent, presence   # presence may be None
    cdef bint with_presence
    cdef readonly bint latent_only
    cdef double radius                 # of the l1 ball, 0 for none
    cdef double keep                   # share of the features whose weights are kept, 1 for all
    cdef double* sizes                 # scratch [slot]
    cdef int parts                     # the first numbers of a slot that its weight is the sum of
    cdef double odds                   # log-odds of a margin of one
    cdef Experts settings              # k, rate and eta of the mixes
    cdef double* mix                   # [problem][1 + k]: rounds and losses of the experts
    cdef int problems
    cdef double* margins               # scratch [class][3]: scores of the learners before they learned
    # the latent instance
    cdef View inner
    cdef int32_t* inner_slot
    cdef double* inner_x
    cdef uint8_t* inner_is_new         # all zero
    # what the presence learner sees
    cdef View given
    cdef int32_t* given_slot
    cdef double* given_x
    cdef uint8_t* given_is_new         # all zero
    cdef int32_t* place                # [node]: where it stands in `given`

    cdef int declare_arrays(self, Py_ssize_t most) except -1
    cdef list held(self)
    cdef Experts experts(self, int c) noexcept nogil
    cdef object merged_mix(self, parts)
    cdef void start_mix(self, int c) noexcept nogil
    cdef void present(self, View* v) noexcept nogil
    cdef void present_presence(self, View* v) noexcept nogil
    cdef void shares(self, int c, double* weights) noexcept nogil
    cdef void learn_rule(self, BinaryRule rule, int which, View* v, int y, double w) noexcept nogil
    cdef void count_losses(self, int c, double sign, double w) noexcept nogil
    cdef double score(self, View* v, int c) noexcept nogil
    cdef void sparsify(self, BinaryRule rule, int c, Py_ssize_t known) noexcept nogil
    cdef double sign_of(self, int label) noexcept nogil

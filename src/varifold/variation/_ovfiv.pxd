from libc.stdint cimport int32_t, uint8_t

from varifold._numeric.hedge cimport Experts
from varifold._engine.model cimport Model
from varifold._engine.view cimport View
from varifold.variation._variation cimport VariationLearner

cdef class OVFIVModel(Model):
    cdef readonly Model base
    cdef readonly VariationLearner variation
    cdef readonly bint only_variation  # answers are those of the variation learner; the base learner only counts classes
    cdef readonly bint mix_scores      # scores are mixed and judged, not probabilities
    cdef Experts experts             # its losses stand in `mixing`
    cdef double* mixing              # [3]: rounds and losses of the experts
    cdef double* counts              # [class]: weight learned
    cdef double* base_score          # scratch [class], as are the next three
    cdef double* base_proba
    cdef double* own_score           # of the variation learner, by problem
    cdef double* own_proba
    cdef View known_part             # scratch: the instance without what is new in it
    cdef int32_t* known_slot
    cdef int32_t* known_column
    cdef double* known_x
    cdef double* known_raw
    cdef uint8_t* known_is_new       # all zero

    cdef int declare_arrays(self) except -1
    cdef bint base_sees(self, View* v) noexcept nogil
    cdef View* without_new(self, View* v) noexcept nogil
    cdef void predict_base(self, View* v) noexcept nogil
    cdef void predict_variation(self) noexcept nogil
    cdef double own(self, int c) noexcept nogil
    cdef double mixed(self, int c, double share) noexcept nogil
    cdef double predict(self, View* v) noexcept nogil
    cdef void count_losses(self, int y, double w) noexcept nogil
    cdef double factor(self, View* v, int label) noexcept nogil
    cdef double explain_variation(self, View* v, int label, double share, double rest, dict parts) except? -1e308

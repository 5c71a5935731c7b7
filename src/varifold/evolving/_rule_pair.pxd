from libc.stdint cimport int32_t, uint8_t, uint64_t

from varifold.evolving._feature_map cimport FeatureMap
from varifold._engine.models.model cimport Model
from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View

# A rule's own numbering of the slots it uses. Local 0 is the intercept.
cdef struct Locals:
    int32_t n            # locals assigned
    int32_t spares
    int32_t* of          # slot -> local, -1 none
    int32_t* slot        # local -> slot, -1 free
    int32_t* spare       # free locals
    bint sealed          # accepts no further features


cdef class RulePair(Model):
    cdef BinaryRule first, second
    cdef Space first_space, second_space
    cdef Locals local[2]
    cdef readonly FeatureMap map      # of the old rule
    cdef bint logistic                # loss: log2(1 + exp(-yf)), else hinge
    cdef double bound                 # of recovered values; 0: none
    cdef readonly int old             # index of the old rule, or of the only one that runs
    cdef readonly bint two            # the other rule runs too
    # scratch
    cdef View inner                   # the instance as a rule sees it
    cdef int32_t* slots
    cdef int32_t* slots2
    cdef double* values
    cdef double* values2
    cdef int32_t* where               # slot -> position in the view + 1
    cdef double* recovered
    cdef uint8_t* never_new           # zeros, for View.is_new
    cdef uint64_t* marks              # for sorting

    cdef double rule_score(self, int e, int c) noexcept nogil
    cdef void rule_learn(self, int e, int y, double w) noexcept nogil
    cdef double rule_coefficient(self, int e, int32_t slot, int c) noexcept nogil
    cdef double rule_loss(self, int e, int y) noexcept nogil
    cdef void restart(self, int e) noexcept nogil
    cdef void wipe(self, int e) noexcept nogil
    cdef int32_t local_slot(self, int e, int32_t slot) noexcept nogil
    cdef void set_weight(self, int e, int32_t slot, int c, double f) noexcept nogil
    cdef void mark(self, View* v, bint present) noexcept nogil
    cdef inline double clipped(self, double x) noexcept nogil
    cdef void recover(self, View* v) noexcept nogil
    cdef void lay_out(self, int e, View* v) noexcept nogil
    cdef void explain_part(self, int e, View* v, int c, double sign, double* out) noexcept nogil

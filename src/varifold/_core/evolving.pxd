from libc.stdint cimport int32_t, uint8_t, uint64_t

from varifold._core.experts cimport Experts
from varifold._core.feature_map cimport FeatureMap, Overlap
from varifold._core.model cimport BinaryRule, Model
from varifold._core.phases cimport Phases
from varifold._core.space cimport Space
from varifold._core.view cimport View

# What runs after a switch.
cdef enum Parts:
    NEW = 0          # a new model alone
    FROZEN = 1       # the old model on recovered features, as it was
    UPDATED = 2      # the old model on recovered features, learning on
    MEAN = 3         # both, weighted mean
    DRAWN = 4        # both, one drawn by weight
    HEAVIER = 5      # both, the heavier one

# A model's own numbering of the slots it uses, so that its state is no larger than its space. Local 0: the intercept.
cdef struct Locals:
    int32_t n            # numbers given out
    int32_t spares
    int32_t* of          # slot -> local, -1 none
    int32_t* slot        # local -> slot, -1 given back
    int32_t* spare       # locals given back
    bint sealed          # takes no further features


cdef class EvolvingModel(Model):
    cdef BinaryRule first, second
    cdef Space first_space, second_space
    cdef Locals local[2]
    cdef readonly Phases phases
    cdef readonly FeatureMap map      # of the old model
    cdef readonly Overlap overlap
    cdef Experts experts
    cdef int parts
    cdef bint logistic                # loss of the combination: log2(1 + exp(-yf)), else hinge
    cdef bint transfer                # the new model starts from the old one's weights through the map
    cdef bint centred                 # the map has a constant
    cdef bint frozen
    cdef double bound                 # on recovered values, 0 none
    cdef uint64_t seed
    cdef readonly int old             # the old model, or the only one that runs
    cdef readonly bint two            # the other one runs beside it
    cdef double recent[2]             # running mean loss of the old and the new model
    cdef int heir                     # whose features the overlap that runs is mapped to
    cdef Py_ssize_t maps_missed       # overlaps wider than max_dense
    # scratch
    cdef View inner
    cdef int32_t* slots
    cdef int32_t* slots2
    cdef double* values
    cdef double* values2
    cdef int32_t* where               # slot -> position in the view + 1
    cdef int32_t* column_of           # slot -> input column of the overlap + 1
    cdef double* recovered
    cdef uint8_t* unfresh             # zeros
    cdef double* dense                # for sorting

    cdef int grow_rule(self, int e, Py_ssize_t capacity) except -1
    cdef void admit(self, int e, View* v) noexcept nogil
    cdef int32_t take(self, int e, int32_t slot) noexcept nogil
    cdef void lay(self, int e, View* v) noexcept nogil
    cdef void recover(self, View* v) noexcept nogil
    cdef void mark(self, View* v, bint present) noexcept nogil
    cdef inline double clipped(self, double x) noexcept nogil
    cdef double rule_score(self, int e, int c) noexcept nogil
    cdef void rule_learn(self, int e, int y, double w) noexcept nogil
    cdef double rule_coefficient(self, int e, int32_t slot, int c) noexcept nogil
    cdef double rule_loss(self, int e, int y) noexcept nogil
    cdef void weights(self, View* v, double* a) noexcept nogil
    cdef void begin(self) noexcept nogil
    cdef void collect(self, View* v, double w) noexcept nogil
    cdef void switch(self, View* v) noexcept nogil
    cdef bint stays(self, View* v) noexcept nogil
    cdef void wipe(self, int e) noexcept nogil
    cdef void restart(self, int e) noexcept nogil
    cdef void hand_over(self, int giver, int taker, View* v) noexcept nogil
    cdef void set_weight(self, int e, int32_t slot, int c, double f) noexcept nogil
    cdef void explain_part(self, int e, View* v, int c, double sign, double* out) noexcept nogil

from libc.stdint cimport int32_t, uint64_t

from varifold._numeric.hedge cimport Experts
from varifold.evolving._overlap cimport Overlap
from varifold.evolving._switch_detector cimport SwitchDetector
from varifold.evolving._rule_pair cimport RulePair
from varifold._engine.view cimport View

# Models that run after a switch.
cdef enum Parts:
    NEW = 0          # a new model alone
    FROZEN = 1       # the old model on recovered features, no longer updated
    UPDATED = 2      # the old model on recovered features, still updated
    MEAN = 3         # both, weighted mean
    DRAWN = 4        # both, one drawn by weight
    HEAVIER = 5      # both, the one with the larger weight


cdef class EvolvingModel(RulePair):
    cdef readonly SwitchDetector detector
    cdef readonly Overlap overlap
    cdef Experts experts              # index 0: the old model, 1: the new one
    cdef int parts
    cdef bint transfers               # initialise the new model with the old one's weights, through the map
    cdef bint centred                 # the map has an intercept
    cdef bint frozen
    cdef uint64_t seed
    cdef double recent[2]             # running mean loss of the old and the new model
    cdef int successor                # the rule carried over at the next switch: the overlap maps to its features
    cdef Py_ssize_t maps_missed       # overlaps with more than max_dense features: no map
    cdef int32_t* column_of           # slot -> input column of the overlap + 1

    cdef int reserve_overlap(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new) except -1 nogil
    cdef void weights(self, View* v, double* a) noexcept nogil
    cdef void admit(self, int e, View* v) noexcept nogil
    cdef void begin_overlap(self) noexcept nogil
    cdef void collect(self, View* v, double w) noexcept nogil
    cdef bint stays(self, View* v) noexcept nogil
    cdef void switch(self, View* v) noexcept nogil
    cdef void transfer_weights(self, int giver, int taker, View* v) noexcept nogil

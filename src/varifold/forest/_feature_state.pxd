from libc.stdint cimport int32_t, int64_t

from varifold._engine.models.model cimport Model
from varifold._numeric.heap cimport Heap
from varifold.forest._pool cimport Pool
from varifold.forest._tdigest cimport Digest
from varifold.forest._vanishing cimport Presence, Vanishing

# State of a slot. Each numeric slot has its own; the levels of a string column share the column's state and have one
# block of counts each. All zero: never seen, or pruned.
cdef struct FeatureState:
    double deadline        # round of the next test whether it has vanished (heap key)
    double weight          # w_i (eq. 8)
    double credit          # information of its votes about the label, recent ones counting more
    double credit_weight   # divisor of `credit`
    Presence presence
    int64_t refreshed      # numbers seen when the forest was last renewed
    int64_t serial         # stumps drawn so far
    int64_t numbers        # rounds with a number
    int64_t texts          # rounds with a level
    Digest* digest         # [class]
    double* forest         # edge[J] ascending, serial[J], then J + 1 rows
    double* level          # an indicator: weight by class, then one row
    int32_t first_level    # a column: its levels, chained
    int32_t next_level


cdef class FeatureStates(Model):
    cdef readonly int stumps           # J
    cdef readonly int grace            # values of a feature before it gets a forest
    cdef readonly int64_t pruned       # features pruned so far
    cdef Vanishing rule
    cdef FeatureState* states          # [slot]
    cdef int wide                      # capacity for classes; a row is a favoured class and `wide` votes
    cdef double* mass                  # [class]: weight learned
    cdef double total
    cdef double temperature, certainty # factor on the evidence, and what it rests on
    cdef Heap heap
    cdef Py_ssize_t largest            # capacity of the largest digest, in points
    cdef Pool rings, digests, points, forests, levels    # blocks for features and values to come

    cdef int widen(self, int wide) except -1
    cdef void size_pools(self, int wide) noexcept nogil
    cdef void see(self, int32_t u, int64_t t) noexcept nogil
    cdef void prune(self, int64_t t) noexcept nogil
    cdef void prune_levels(self, int32_t u, int32_t present, int64_t t) noexcept nogil
    cdef bint level_vanished(self, int32_t s, int64_t t) noexcept nogil
    cdef void vanish(self, int32_t u) noexcept nogil
    cdef void clear(self, int32_t u) noexcept nogil
    cdef void clear_numbers(self, FeatureState* state) noexcept nogil
    cdef void link(self, int32_t s, int32_t u) noexcept nogil
    cdef void unlink(self, int32_t s) noexcept nogil


cdef int canonical_width(int classes) noexcept nogil
cdef void copy_rows(const double* source, int head, int wide, double* target, int new_head, int new_wide,
                    int rows) noexcept nogil

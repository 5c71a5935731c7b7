from libc.stdint cimport int32_t, int64_t

from varifold._numeric.heap cimport Heap
from varifold._engine.model cimport Model
from varifold.forest._tdigest cimport Digest
from varifold.forest._vanishing cimport Presence, Vanishing

# What is held for a slot. A number's slot is a unit by itself; the levels of a string column share the column's unit
# and have a block of their own each. All zero: never seen, or pruned.
cdef struct Unit:
    double deadline        # round of the next look whether it has vanished (heap key)
    double weight          # w_i
    double told            # information of its votes about the label, recent ones counting more
    double heard           # what `told` is to be divided by
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


cdef class Units(Model):
    cdef readonly int stumps           # J
    cdef readonly int64_t pruned       # features given up so far
    cdef Vanishing rule
    cdef Unit* unit
    cdef int wide                      # room for classes; a row is a favoured class and `wide` votes
    cdef double* mass                  # weight learned by class
    cdef double total
    cdef double temper, certainty      # factor on the evidence, and what it rests on
    cdef Heap heap

    cdef int widen(self, int wide) except -1
    cdef void* grab(self, Py_ssize_t count, Py_ssize_t size) noexcept nogil
    cdef bint see(self, int32_t u, int64_t t) noexcept nogil
    cdef void prune(self, int64_t t) noexcept nogil
    cdef void vanish(self, int32_t u) noexcept nogil
    cdef void clear(self, int32_t u) noexcept nogil
    cdef void clear_numbers(self, Unit* unit) noexcept nogil
    cdef bint link(self, int32_t s, int32_t u) noexcept nogil
    cdef void unlink(self, int32_t s) noexcept nogil

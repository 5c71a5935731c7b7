from libc.stdint cimport int32_t, int64_t

from varifold._engine.view cimport View
from varifold.linear._diagonal cimport DiagonalRule

cdef enum:
    BINS = 8

cdef class RecallRule(DiagonalRule):
    cdef readonly int most       # columns recalled
    cdef readonly bint binned
    cdef int level_pair          # first pair of a slot's level; pairs before it belong to its value
    cdef int slow_pair
    cdef int absence_pair
    cdef int silence_pair
    cdef int faded_pair          # of level times silence
    cdef double* level           # [slot]: running mean of the scaled values
    cdef double* slow            # [slot]: the same with a slower rate
    cdef int64_t* last           # [slot]: latest step that had the column, counted from 1; 0: none
    cdef int32_t* newer          # [slot]: linked list of columns by the step they were last seen, 0 at the ends
    cdef int32_t* older
    cdef int32_t newest
    cdef int32_t* place          # [slot]: scratch of collect()

    cdef void unlink(self, int32_t slot) noexcept nogil
    cdef void link(self, int32_t slot) noexcept nogil
    cdef void touch(self, View* v) noexcept nogil
    cdef void add(self, int32_t slot, int pair, int32_t entry, double x) noexcept nogil
    cdef void add_number(self, int32_t slot, int pair, int32_t entry, double x) noexcept nogil
    cdef void move_levels(self, View* v) noexcept nogil
    cdef void recall(self, View* v, int32_t slot) noexcept nogil

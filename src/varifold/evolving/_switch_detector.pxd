from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold._engine.names.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View

# State of a column.
cdef enum Group:
    UNKNOWN = 0
    SETTLED = 1      # in the feature space of the running models
    JOINED = 2       # first seen during the current overlap
    GONE = 3         # was settled, removed by a switch

# Effect of an instance.
cdef enum Event:
    NOTHING = 0
    JOIN = 1         # an overlap begins: the first columns join
    ABSORB = 2       # the overlap ends without a switch: joined columns are settled
    SWITCH = 3       # settled columns have gone


cdef class SwitchDetector:
    cdef Space space
    cdef State arrays
    cdef readonly int64_t known_switch, known_overlap    # steps; known_switch < 0: detect switches
    cdef readonly Py_ssize_t settle, patience
    cdef uint8_t* group                                  # [slot]: of columns
    cdef readonly bint overlapping
    cdef readonly bint pairs                             # this instance has old and new columns together
    cdef Py_ssize_t paired                               # number of such instances in the current overlap
    cdef readonly Py_ssize_t settled                     # number of settled columns
    cdef readonly int64_t joined_at                      # step at which the current or latest overlap began
    cdef readonly int64_t last_start                     # step at which the overlap before the last switch began
    cdef double density                                  # running mean share of settled columns per instance
    cdef double evidence                                 # log-likelihood ratio in nats: settled columns have gone
    cdef int64_t* switched_at                            # steps of the switches so far
    cdef readonly Py_ssize_t switches
    cdef Py_ssize_t capacity

    cdef int grow(self, Space space, Py_ssize_t capacity) except -1
    cdef int prepare(self) except -1 nogil
    cdef bint may_join(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new) noexcept nogil
    cdef int observe(self, View* v) noexcept nogil
    cdef bint due(self, int64_t steps) noexcept nogil
    cdef void record_switch(self, View* v) noexcept nogil
    cdef bint group_columns(self, View* v, Py_ssize_t* old) noexcept nogil
    cdef int follow_known(self, View* v) noexcept nogil
    cdef int weigh_absence(self, View* v) noexcept nogil
    cdef void absorb(self) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil

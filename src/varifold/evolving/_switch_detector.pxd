from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold._engine.space cimport Seen, Space
from varifold._engine.view cimport View

# What a column is to the watcher.
cdef enum Group:
    UNKNOWN = 0
    SETTLED = 1      # of the space the running models know
    JOINED = 2       # came during the overlap that runs
    GONE = 3         # was settled, and went with a switch

# What an instance brought about.
cdef enum Event:
    NOTHING = 0
    JOIN = 1         # an overlap begins: the first columns joined
    ABSORB = 2       # the overlap ends without a switch: joined columns are settled
    SWITCH = 3       # settled columns have gone


cdef class Phases:
    cdef Space space
    cdef readonly int64_t told_switch, told_overlap      # steps; told_switch < 0: find them
    cdef readonly Py_ssize_t settle, patience
    cdef uint8_t* group                                  # by column id
    cdef Py_ssize_t capacity
    cdef readonly bint overlapping
    cdef readonly bint pairs                             # this instance shows old and new together
    cdef Py_ssize_t paired                               # such instances in the overlap that runs
    cdef readonly Py_ssize_t settled                     # columns settled now
    cdef readonly int64_t joined_at                      # step at which the overlap that runs, or ran last, began
    cdef readonly int64_t last_start                     # step at which the overlap before the last switch began
    cdef double density                                  # running share of the settled columns that an instance shows
    cdef double evidence                                 # that the settled columns have gone, in nats
    cdef int64_t* found                                  # steps of the switches so far
    cdef readonly Py_ssize_t switches
    cdef Py_ssize_t room

    cdef int grow(self, Space space, Py_ssize_t capacity) except -1
    cdef int observe(self, View* v) noexcept nogil
    cdef bint due(self, int64_t steps) noexcept nogil
    cdef void turn(self, View* v) noexcept nogil
    cdef bint meet(self, View* v, Py_ssize_t* joined, Py_ssize_t* old) noexcept nogil
    cdef int told(self, View* v, bint fresh) noexcept nogil
    cdef int weigh(self, View* v) noexcept nogil
    cdef void absorb(self) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil

from libc.stdint cimport int32_t, int64_t

from varifold._numeric.heap cimport Heap
from varifold._engine.space cimport Space
from varifold._engine.view cimport View

cdef void* fresh(void* old, size_t size) except NULL


cdef class Nodes:
    cdef Space space
    cdef readonly Py_ssize_t max_dense
    cdef double patience               # observations by which a feature must lead before it replaces a node
    cdef double growth                 # of `unit` in a learn
    cdef double unit                   # what an observation of the latest learn counts
    cdef Py_ssize_t slots              # slots there is room for
    cdef Py_ssize_t room               # nodes there is room for
    cdef readonly Py_ssize_t nodes     # handed out, given-up ones included
    cdef readonly Py_ssize_t idle      # of these, given up
    cdef int32_t* node_of              # slot -> node + 1; 0 none; -1 the reference level of its column
    cdef int32_t* first_of             # column -> first indicator node + 1
    cdef int32_t* reference            # column -> slot of its reference level
    cdef int32_t* slot_of              # node -> slot, 0 given up
    cdef int32_t* next_of              # node -> next indicator node of its column + 1
    cdef double learned                # instances, the latest counting most
    cdef double* active                # by slot: observations, the latest counting most
    cdef double* held                  # by node: the activity that it is ordered by
    cdef Heap order                    # of the nodes, the weakest on top
    cdef int64_t version               # of which node is what, and of what hangs on it
    cdef int64_t tick                  # of anything that decides an answer

    cdef void joined(self, Py_ssize_t node, int32_t slot) noexcept nogil
    cdef void left(self, Py_ssize_t node) noexcept nogil
    cdef int grow_slots(self, Py_ssize_t slots) except -1
    cdef int grow_nodes(self, Py_ssize_t room) except -1
    cdef int64_t frequency(self, int32_t slot) noexcept nogil
    cdef void remember(self, double memory) noexcept nogil
    cdef void count(self, View* v) noexcept nogil
    cdef double rate(self, int32_t slot) noexcept nogil
    cdef void rank(self) noexcept nogil
    cdef Py_ssize_t weakest(self) noexcept nogil
    cdef int32_t leave(self, Py_ssize_t node) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil
    cdef void join(self, int32_t slot) noexcept nogil
    cdef int32_t admit(self, View* v) noexcept nogil
    cdef bint outdoes(self, int32_t slot) noexcept nogil
    cdef dict dump_nodes(self, Py_ssize_t size)
    cdef int fill_nodes(self, dict arrays) except -1

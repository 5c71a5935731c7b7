from libc.stdint cimport int32_t, int64_t

from varifold._numeric.heap cimport Heap
from varifold._engine.names.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View

# State per slot. Nodes are counted from 1 here, so that 0 means none.
cdef struct SlotEntry:
    int64_t node           # node + 1; 0 none; -1 the reference level of its column
    int64_t first          # of a column: its first indicator node + 1
    int64_t reference      # of a column: the slot of its reference level

# State per node.
cdef struct NodeEntry:
    int64_t slot           # 0 when the node is free
    int64_t next           # next indicator node of the same column + 1

# Exponential forgetting: instead of decaying old counts, new ones are scaled up.
cdef struct Clock:
    double unit            # weight of an observation in the latest learn
    double learned         # instances learned, weighted by `unit`


cdef class ActiveSet:
    cdef Space space
    cdef State slot_arrays             # one entry per slot
    cdef State node_arrays             # one entry per node
    cdef readonly Py_ssize_t max_dense
    cdef double patience               # observations by which a feature must lead before it replaces a node
    cdef double growth                 # factor of `unit` per learn
    cdef Clock* clock
    cdef Py_ssize_t slots              # slots with allocated memory
    cdef Py_ssize_t node_capacity      # nodes with allocated memory
    cdef readonly Py_ssize_t nodes     # in use, free ones among them included
    cdef readonly Py_ssize_t idle      # free ones among them
    cdef SlotEntry* by_slot
    cdef NodeEntry* by_node
    cdef double* active                # [slot]: observations, scaled by the clock
    cdef double* rank_key              # [node]: the activity by which the heap orders it; may lag behind
    cdef Heap order                    # the nodes, the least active on top
    cdef int64_t version               # version of the nodes and of everything that depends on them
    cdef int64_t tick                  # version of everything that a prediction depends on

    cdef void joined(self, Py_ssize_t node, int32_t slot) noexcept nogil
    cdef void left(self, Py_ssize_t node) noexcept nogil
    cdef int reserve_slots(self, Py_ssize_t slots) except -1
    cdef int reserve_nodes(self, Py_ssize_t nodes) except -1
    cdef int64_t frequency(self, int32_t slot) noexcept nogil
    cdef void set_memory(self, double memory) noexcept nogil
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
    cdef int check_links(self, nodes, slots, Py_ssize_t size) except -1

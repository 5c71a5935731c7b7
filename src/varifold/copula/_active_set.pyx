"""Nodes: the features under a dense model of at most `max_dense`, and how they join, leave and take one another's place.

Indicators of one column hang together, so that the levels that are not given can be observed zeros; the first level met
is the reference of its column and is no node.

When all room is taken, the features most active of late are the nodes. An observation counts 1 and fades by 1/e in
`memory` learns. Not the past is faded but the present raised (`unit`), so that a number changes only when its feature is
observed, and then it grows; the heap of nodes may therefore hold old numbers and set right the one on top when asked.
"""

import numpy as np

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from varifold._numeric.heap cimport heap_down, heap_drop, heap_order, heap_touch
from varifold._engine.names cimport INDICATOR
from varifold._engine.space cimport Space, seen_count
from varifold._engine.view cimport View

from varifold._engine.state import checked_array, check_chains

cdef double PATIENCE = 0.01        # lead that a swap needs, as a part of the memory
cdef double LARGEST_UNIT = 1e100   # beyond it all activities are scaled back


cdef void* fresh(void* old, size_t size) except NULL:
    """Memory of the size, holding what `old` held."""
    cdef void* new = realloc(old, size if size else 1)
    if new == NULL:
        raise MemoryError
    return new


cdef class Nodes:
    """Slots and nodes; a subclass keeps what belongs to a node."""

    def __dealloc__(self):
        free(self.active)
        free(self.held)
        free(self.order.item)
        free(self.order.place)
        free(self.node_of)
        free(self.first_of)
        free(self.reference)
        free(self.slot_of)
        free(self.next_of)

    cdef void joined(self, Py_ssize_t node, int32_t slot) noexcept nogil:
        """A feature became a node; called once it is one."""
        pass

    cdef void left(self, Py_ssize_t node) noexcept nogil:
        """A node was taken out."""
        pass

    cdef void remember(self, double memory) noexcept nogil:
        """Set how many learns an observation counts for."""
        self.unit = 1.0
        self.growth = exp(1.0 / memory)
        self.patience = PATIENCE * memory

    cdef int grow_slots(self, Py_ssize_t slots) except -1:
        cdef Py_ssize_t more = (slots - self.slots) * sizeof(int32_t)
        self.node_of = <int32_t*> fresh(self.node_of, slots * sizeof(int32_t))
        self.first_of = <int32_t*> fresh(self.first_of, slots * sizeof(int32_t))
        self.reference = <int32_t*> fresh(self.reference, slots * sizeof(int32_t))
        memset(self.node_of + self.slots, 0, more)
        memset(self.first_of + self.slots, 0, more)
        memset(self.reference + self.slots, 0, more)
        self.active = <double*> fresh(self.active, slots * sizeof(double))
        memset(self.active + self.slots, 0, (slots - self.slots) * sizeof(double))
        self.slots = slots
        return 0

    cdef int grow_nodes(self, Py_ssize_t room) except -1:
        cdef Py_ssize_t more = (room - self.room) * sizeof(int32_t)
        self.slot_of = <int32_t*> fresh(self.slot_of, room * sizeof(int32_t))
        self.next_of = <int32_t*> fresh(self.next_of, room * sizeof(int32_t))
        memset(self.slot_of + self.room, 0, more)
        memset(self.next_of + self.room, 0, more)
        self.held = <double*> fresh(self.held, room * sizeof(double))
        self.order.item = <int32_t*> fresh(self.order.item, room * sizeof(int32_t))
        self.order.place = <int32_t*> fresh(self.order.place, room * sizeof(int32_t))
        memset(self.order.place + self.room, 0, more)
        self.order.key = self.held
        self.order.stride = 1
        self.order.capacity = room
        self.room = room
        return 0

    cdef int64_t frequency(self, int32_t slot) noexcept nogil:
        """Learns that observed the feature; for an indicator those that observed its column."""
        return seen_count(&self.space.seen[self.space.column[slot]])

    cdef void count(self, View* v) noexcept nogil:
        """The features of an instance that is learned are active."""
        cdef Py_ssize_t i
        self.unit *= self.growth
        self.learned += self.unit
        for i in range(v.n):
            self.active[v.slot[i]] += self.unit
        if self.unit > LARGEST_UNIT:
            for i in range(self.slots):
                self.active[i] /= self.unit
            self.learned /= self.unit
            self.unit = 1.0
            self.rank()

    cdef double rate(self, int32_t slot) noexcept nogil:
        """Part of the instances of late that held the feature."""
        return self.active[slot] / self.learned if self.learned > 0.0 else 0.0

    cdef void rank(self) noexcept nogil:
        """Order the nodes anew by the activity of their features."""
        cdef Py_ssize_t i
        for i in range(self.order.n):
            self.held[self.order.item[i]] = self.active[self.slot_of[self.order.item[i]]]
        heap_order(&self.order)

    cdef Py_ssize_t weakest(self) noexcept nogil:
        """The node least active of late; among equals the latest. There is one."""
        cdef int32_t node = self.order.item[0]
        while self.held[node] != self.active[self.slot_of[node]]:
            self.held[node] = self.active[self.slot_of[node]]
            heap_down(&self.order, 0)
            node = self.order.item[0]
        return node

    cdef int32_t leave(self, Py_ssize_t node) noexcept nogil:
        """Take a node out; returns the slot that it stood for."""
        cdef int32_t slot = self.slot_of[node], column = self.space.column[slot]
        cdef int32_t* link
        if self.space.kind[slot] & INDICATOR:
            link = &self.first_of[column]
            while link[0] != node + 1:
                link = &self.next_of[link[0] - 1]
            link[0] = self.next_of[node]
        heap_drop(&self.order, <int32_t> node)
        self.next_of[node] = 0
        self.node_of[slot] = 0
        self.slot_of[node] = 0
        self.idle += 1
        self.left(node)
        self.version += 1
        self.tick += 1
        return slot

    cdef void forget(self, int32_t slot) noexcept nogil:
        """The slot is given up."""
        self.active[slot] = 0.0
        if self.node_of[slot] > 0:
            self.leave(self.node_of[slot] - 1)
        elif self.node_of[slot] < 0:
            self.reference[self.space.column[slot]] = 0
            self.node_of[slot] = 0

    cdef void join(self, int32_t slot) noexcept nogil:
        """Make a feature a node; there is room."""
        cdef Py_ssize_t node = self.nodes
        cdef int32_t column = self.space.column[slot]
        if self.idle:
            node = 0
            while self.slot_of[node] != 0:
                node += 1
            self.idle -= 1
        else:
            self.nodes += 1
        self.node_of[slot] = <int32_t> (node + 1)
        self.slot_of[node] = slot
        self.held[node] = self.active[slot]
        heap_touch(&self.order, <int32_t> node)
        if self.space.kind[slot] & INDICATOR:
            self.next_of[node] = self.first_of[column]
            self.first_of[column] = <int32_t> (node + 1)
        self.joined(node, slot)
        self.version += 1
        self.tick += 1

    cdef int32_t admit(self, View* v) noexcept nogil:
        """Let features that are no nodes yet join; when all room is taken, one an instance may replace a quieter one.

        Returns the slot that was replaced, 0 for none.
        """
        cdef Py_ssize_t i
        cdef int32_t slot, column, left = 0
        self.count(v)
        for i in range(v.n):
            slot = v.slot[i]
            if slot == 0 or self.node_of[slot] != 0:
                continue
            column = self.space.column[slot]
            if self.space.kind[slot] & INDICATOR and self.reference[column] == 0 and self.first_of[column] == 0:
                self.reference[column] = slot
                self.node_of[slot] = -1
                continue
            if self.idle or self.nodes < self.max_dense:
                self.join(slot)
                continue
            if left == 0 and self.outdoes(slot):
                left = self.leave(self.weakest())
                self.join(slot)
        return left

    cdef bint outdoes(self, int32_t slot) noexcept nogil:
        """Whether a feature is so much more active than the weakest node that a swap pays."""
        cdef double lead = self.active[slot] - 1.5 * self.active[self.slot_of[self.weakest()]]
        return lead > self.patience * self.unit

    def role(self, Py_ssize_t slot):
        """What a feature is here: 'latent', 'reference' (the level its column's others are told from) or ''."""
        return "latent" if self.node_of[slot] > 0 else "reference" if self.node_of[slot] < 0 else ""

    cdef dict dump_nodes(self, Py_ssize_t size):
        cdef Py_ssize_t i
        return {
            "nodes": np.array([[self.slot_of[i], self.next_of[i]] for i in range(self.nodes)],
                              dtype=np.int64).reshape(self.nodes, 2),
            "slots": np.array([[self.node_of[i], self.first_of[i], self.reference[i]] for i in range(size)],
                              dtype=np.int64).reshape(size, 3),
            "active": np.array([self.active[i] for i in range(size)], dtype=np.float64),
            "unit": np.array([self.unit, self.learned], dtype=np.float64),
        }

    cdef int fill_nodes(self, dict arrays) except -1:
        """Take what dump_nodes() gave; there is room."""
        cdef Py_ssize_t i
        count = len(arrays["nodes"])
        nodes, slots = checked_array(arrays, "nodes", "i", (None, 2), 0), checked_array(arrays, "slots", "i", (None, 3), -1)
        if count > self.room or len(slots) > self.slots:
            raise ValueError("the arrays do not belong to this copula")
        active = checked_array(arrays, "active", "f", (len(slots),), 0)
        checked_array(arrays, "unit", "f", (2,), 0)
        if not 1.0 <= arrays["unit"][0] <= LARGEST_UNIT:
            raise ValueError("unit is not what an observation can count")
        if not len(slots) or (count and (nodes[:, 0].max() >= len(slots) or nodes[:, 1].max() > count)):
            raise ValueError("nodes holds numbers of features or nodes that there are not")
        if slots[:, :2].max() > count or slots[:, 1:].min() < 0 or slots[:, 2].max() >= len(slots):
            raise ValueError("slots holds numbers of features or nodes that there are not")
        taken = {slot: node + 1 for node, slot in enumerate(nodes[:, 0].tolist()) if slot}
        if taken != {slot: node for slot, node in enumerate(slots[:, 0].tolist()) if node > 0}:
            raise ValueError("nodes and slots do not name each other")
        check_chains(slots[:, 1].tolist(), [0, *nodes[:, 1].tolist()],
                      {node: self.space.column[<Py_ssize_t> slot] for slot, node in taken.items()
                       if self.space.kind[<Py_ssize_t> slot] & INDICATOR})
        self.nodes = len(nodes)
        self.idle = int((nodes[:, 0] == 0).sum())
        self.unit, self.learned = arrays["unit"]
        for i in range(self.nodes):
            self.slot_of[i], self.next_of[i] = nodes[i]
        for i in range(len(slots)):
            self.node_of[i], self.first_of[i], self.reference[i] = slots[i]
            self.active[i] = active[i]
        while self.order.n:
            heap_drop(&self.order, self.order.item[0])
        for i in range(self.nodes):
            if self.slot_of[i] != 0:
                self.held[i] = self.active[self.slot_of[i]]
                heap_touch(&self.order, <int32_t> i)
        return 0

"""Nodes: the features under a dense model of at most `max_dense`, and how they join, leave and take one another's place.

Indicators of one column hang together, so that the levels that are not given can be observed zeros; the first level met
is the reference of its column and is no node.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from varifold._core.names cimport INDICATOR
from varifold._core.space cimport Space, seen_count
from varifold._core.view cimport View

from varifold._core.model import expect, expect_chains


cdef void* fresh(void* old, size_t size) except NULL:
    """Memory of the size, holding what `old` held."""
    cdef void* new = realloc(old, size if size else 1)
    if new == NULL:
        raise MemoryError
    return new


cdef class Nodes:
    """Slots and nodes; a subclass keeps what belongs to a node."""

    def __dealloc__(self):
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

    cdef int grow_slots(self, Py_ssize_t slots) except -1:
        cdef Py_ssize_t more = (slots - self.slots) * sizeof(int32_t)
        self.node_of = <int32_t*> fresh(self.node_of, slots * sizeof(int32_t))
        self.first_of = <int32_t*> fresh(self.first_of, slots * sizeof(int32_t))
        self.reference = <int32_t*> fresh(self.reference, slots * sizeof(int32_t))
        memset(self.node_of + self.slots, 0, more)
        memset(self.first_of + self.slots, 0, more)
        memset(self.reference + self.slots, 0, more)
        self.slots = slots
        return 0

    cdef int grow_nodes(self, Py_ssize_t room) except -1:
        cdef Py_ssize_t more = (room - self.room) * sizeof(int32_t)
        self.slot_of = <int32_t*> fresh(self.slot_of, room * sizeof(int32_t))
        self.next_of = <int32_t*> fresh(self.next_of, room * sizeof(int32_t))
        memset(self.slot_of + self.room, 0, more)
        memset(self.next_of + self.room, 0, more)
        self.room = room
        return 0

    cdef int64_t frequency(self, int32_t slot) noexcept nogil:
        """Learns that observed the feature; for an indicator those that observed its column."""
        return seen_count(&self.space.seen[self.space.column[slot]])

    cdef void find_weakest(self) noexcept nogil:
        """The node least often observed; among equals the latest."""
        cdef Py_ssize_t i
        self.weakest = -1
        for i in range(self.nodes):
            if self.slot_of[i] != 0 and (self.weakest < 0 or self.frequency(self.slot_of[i]) <=
                                         self.frequency(self.slot_of[self.weakest])):
                self.weakest = <int32_t> i

    cdef int32_t leave(self, Py_ssize_t node) noexcept nogil:
        """Take a node out; returns the slot that it stood for."""
        cdef int32_t slot = self.slot_of[node], column = self.space.column[slot]
        cdef int32_t* link
        if self.space.kind[slot] & INDICATOR:
            link = &self.first_of[column]
            while link[0] != node + 1:
                link = &self.next_of[link[0] - 1]
            link[0] = self.next_of[node]
        self.next_of[node] = 0
        self.node_of[slot] = 0
        self.slot_of[node] = 0
        self.idle += 1
        self.left(node)
        self.version += 1
        self.tick += 1
        if self.weakest == node:
            self.weakest = -1
        return slot

    cdef void forget(self, int32_t slot) noexcept nogil:
        """The slot is given up."""
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
        if self.space.kind[slot] & INDICATOR:
            self.next_of[node] = self.first_of[column]
            self.first_of[column] = <int32_t> (node + 1)
        self.joined(node, slot)
        self.version += 1
        self.tick += 1

    cdef int32_t admit(self, View* v) noexcept nogil:
        """Let features that are no nodes yet join; when all room is taken, one an instance may replace a rarer one.

        Returns the slot that was replaced, 0 for none.
        """
        cdef Py_ssize_t i
        cdef int32_t slot, column, left = 0
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
                self.find_weakest()
                if self.outdoes(slot):
                    left = self.leave(self.weakest)
                    self.join(slot)
        return left

    cdef bint outdoes(self, int32_t slot) noexcept nogil:
        """Whether a feature is so much more frequent than the weakest node that a swap pays."""
        if self.weakest < 0:
            self.find_weakest()
        return 2 * self.frequency(slot) > 3 * self.frequency(self.slot_of[self.weakest]) + 2 * self.patience

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
            "weakest": np.array([self.weakest], dtype=np.int64),
        }

    cdef int fill_nodes(self, dict arrays) except -1:
        """Take what dump_nodes() gave; there is room."""
        cdef Py_ssize_t i
        count = len(arrays["nodes"])
        nodes, slots = expect(arrays, "nodes", "i", (None, 2), 0), expect(arrays, "slots", "i", (None, 3), -1)
        if count > self.room or len(slots) > self.slots:
            raise ValueError("the arrays do not belong to this copula")
        expect(arrays, "weakest", "i", (1,), -1, count - 1)
        if not len(slots) or (count and (nodes[:, 0].max() >= len(slots) or nodes[:, 1].max() > count)):
            raise ValueError("nodes holds numbers of features or nodes that there are not")
        if slots[:, :2].max() > count or slots[:, 1:].min() < 0 or slots[:, 2].max() >= len(slots):
            raise ValueError("slots holds numbers of features or nodes that there are not")
        taken = {slot: node + 1 for node, slot in enumerate(nodes[:, 0].tolist()) if slot}
        if taken != {slot: node for slot, node in enumerate(slots[:, 0].tolist()) if node > 0}:
            raise ValueError("nodes and slots do not name each other")
        expect_chains(slots[:, 1].tolist(), [0, *nodes[:, 1].tolist()],
                      {node: self.space.column[<Py_ssize_t> slot] for slot, node in taken.items()
                       if self.space.kind[<Py_ssize_t> slot] & INDICATOR})
        self.nodes = len(nodes)
        self.idle = int((nodes[:, 0] == 0).sum())
        self.weakest = arrays["weakest"][0]
        for i in range(self.nodes):
            self.slot_of[i], self.next_of[i] = nodes[i]
        for i in range(len(slots)):
            self.node_of[i], self.first_of[i], self.reference[i] = slots[i]
        return 0

"""A pool of nodes for all trees of a forest: children are allocated in pairs, and freed pairs are reused."""

import numpy as np

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memset

from varifold._engine.state cimport State

from varifold._engine.state import checked_array, per_slot, per_slot_and_class


cdef class Nodes:
    """A pool of nodes; reserve_pairs() allocates the memory that take_pair() hands out.

    `least` is the smallest number that a node's counts may hold in files.
    """

    def __cinit__(self, double least=0.0):
        self.arrays = State()
        self.used = 2
        self.arrays.declare("node.key", &self.key, per_slot())
        self.arrays.declare("node.value", &self.value, per_slot())
        self.arrays.declare("node.way", &self.way, per_slot(low=0, high=3))
        self.arrays.declare("node.left", &self.left, per_slot(low=0))
        self.arrays.declare("node.counts", &self.counts, per_slot_and_class(low=least))
        self.arrays.reserve_slots(self.used)

    cdef int reserve_pairs(self, Py_ssize_t pairs) except -1:
        """Reserve memory for this many pairs beyond those in use."""
        cdef Py_ssize_t needed = self.used + 2 * max(0, pairs - self.n_free)
        if needed > self.arrays.slots:
            self.arrays.reserve_slots(max(needed, self.arrays.slots + self.arrays.slots // 4))
        return 0

    cdef Py_ssize_t free_pairs(self) noexcept nogil:
        """Return the number of pairs available now."""
        return self.n_free + (self.arrays.slots - self.used) // 2

    cdef int32_t take_pair(self) noexcept nogil:
        """Allocate two leaves without counts; return the first one's number, or 0 if the pool is exhausted."""
        cdef int32_t pair = self.free_pair
        if pair:
            self.free_pair = self.left[pair]
            self.left[pair] = 0
            self.n_free -= 1
            return pair
        if self.used + 2 > self.arrays.slots:
            return 0
        self.used += 2
        return <int32_t> (self.used - 2)

    cdef void release_pair(self, int32_t pair) noexcept nogil:
        """Free a pair of nodes."""
        memset(self.key + pair, 0, 2 * sizeof(int32_t))
        memset(self.value + pair, 0, 2 * sizeof(double))
        memset(self.way + pair, 0, 2 * sizeof(uint8_t))
        memset(self.left + pair, 0, 2 * sizeof(int32_t))
        memset(self.counts_of(pair), 0, 2 * self.arrays.classes * sizeof(double))
        self.left[pair] = self.free_pair
        self.free_pair = pair
        self.n_free += 1

    cdef void release_tree(self, int32_t root) noexcept nogil:
        """Free all nodes of a tree; the list of pairs to visit is chained through the right nodes' values."""
        cdef int32_t pair, child, pending = root
        self.value[root + 1] = 0.0
        while pending:
            pair = pending
            pending = <int32_t> self.value[pair + 1]
            for child in range(pair, pair + 2):
                if self.left[child]:
                    # read the right node's split before its value becomes the link
                    self.value[self.left[child] + 1] = pending
                    pending = self.left[child]
            self.release_pair(pair)

    cdef double* counts_of(self, int32_t node) noexcept nogil:
        """Return the weight by class at a node."""
        return self.counts + <Py_ssize_t> node * self.arrays.classes

    def check_trees(self, roots):
        """Reject nodes that do not occur exactly once, in a tree or in the free list."""
        left = [self.left[i] for i in range(self.used)]
        seen = set()
        pending = [int(root) for root in roots]
        while pending:
            pair = pending.pop()
            if pair % 2 or not 2 <= pair < self.used or pair in seen:
                raise ValueError(f"the nodes {pair} are in no tree, or in two")
            seen.add(pair)
            pending += [left[child] for child in (pair, pair + 1) if left[child]]
        at = self.free_pair
        for _ in range(self.n_free):
            if at % 2 or not 2 <= at < self.used or at in seen:
                raise ValueError(f"the free nodes {at} are in a tree too")
            seen.add(at)
            at = left[at]
        if at or len(seen) != self.used // 2 - 1:
            raise ValueError(f"{self.used // 2 - 1 - len(seen)} pairs of nodes are in no tree")

    def leaves_of(self, int32_t root):
        """Return the leaves of a tree whose nodes were checked."""
        found = []
        pending = [root]
        while pending:
            node = pending.pop()
            if not 2 <= node < self.used:
                raise IndexError(f"there is no node {node}")
            if self.left[node]:
                pending += [self.left[node], self.left[node] + 1]
            else:
                found.append(node)
        return found

    def dump(self, Py_ssize_t classes):
        """Return the nodes in use and the free list."""
        return {**self.arrays.dump(self.used, classes),
                "node.free": np.array([self.free_pair, self.n_free], dtype=np.int64)}

    def fill(self, dict arrays, Py_ssize_t capacity, Py_ssize_t classes, roots):
        """Restore the checked result of dump()."""
        self.used = len(checked_array(arrays, "node.key", "i", (None,), 0, 2 * capacity - 1))
        free_pair, n_free = checked_array(arrays, "node.free", "i", (2,), 0, max(self.used, 1)).tolist()
        if self.used < 2 or self.used % 2:
            raise ValueError(f"{self.used} nodes are no pairs")
        self.arrays.fill(arrays, self.used, self.used, classes)
        self.free_pair = free_pair
        self.n_free = n_free
        self.check_trees(roots)

    def nbytes(self):
        """Return the number of bytes held."""
        return self.arrays.nbytes()

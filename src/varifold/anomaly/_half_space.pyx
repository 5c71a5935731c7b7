"""Trees that halve the range of a random feature at each node, and how many instances of a window were in each node."""

import numpy as np

from libc.math cimport NAN, log2
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.view cimport View
from varifold._numeric.hashing cimport draw, mix, unit_interval

from varifold._engine.state import checked_array, fixed, per_slot

cdef enum:
    FIRST = 8          # instances of the first two windows; later ones are twice as long, up to `window`

cdef double LIMIT = 0.1        # share of a window below which a node has no children
cdef double LEAST = 0.125      # weight below which both sides of an absent feature are not followed
cdef double RANGE = 3.0        # a standardised value is expected within -RANGE and RANGE


cdef struct Tree:
    Py_ssize_t start           # of its nodes
    const int32_t* slots       # features of its splits
    uint64_t choices           # their number
    uint64_t node_key          # of the random numbers of its nodes
    uint64_t range_key         # of those of the ranges of features


cdef inline int32_t feature(const Tree* tree, Py_ssize_t node) noexcept nogil:
    """Return the feature by which a node splits: that of an instance of the window before, at random."""
    return tree.slots[mix(tree.node_key ^ <uint64_t> node) % tree.choices]


cdef class HalfSpaceModel(Model):
    """Trees of the last complete window, with its counts, and those of the present one.

    A tree is a function of the seed, the number of its window and a list of features: nothing of it is stored but the
    list and the counts. The children of node i are 2 i + 1 and 2 i + 2.
    """

    cdef readonly Py_ssize_t trees, depth, window, nodes
    cdef readonly uint64_t seed
    cdef int64_t* turned       # [1] complete windows
    cdef int64_t* held         # [1] instances of the present window
    cdef int32_t* next_slots   # [window] a feature of each instance of the present window: those of the next trees
    cdef int32_t* slots        # [window] features of the present trees; 0 for none
    cdef int32_t* old_slots    # [window] those of the last complete window
    cdef int32_t* count        # [tree, node] instances of the present window
    cdef int32_t* old_count    # of the last complete one
    # scratch
    cdef double* value         # [tree, node] expected logarithm of the mass of the last complete window
    cdef double* dense         # [slot] values of the instance at hand, NaN if absent
    cdef int32_t* path         # [level] feature of the node above, and the half of its range
    cdef double* low
    cdef double* high

    def __cinit__(self, Py_ssize_t trees, Py_ssize_t depth, Py_ssize_t window, uint64_t seed):
        self.trees, self.depth, self.window, self.seed = trees, depth, window, seed
        self.nodes = (<Py_ssize_t> 2 << depth) - 1
        self.arrays.declare("turned", &self.turned, fixed(1, low=0, high=1 << 50))
        self.arrays.declare("held", &self.held, fixed(1, low=0, high=window))
        # of these, dump() saves what is in use
        self.arrays.scratch(&self.next_slots, fixed(window))
        self.arrays.scratch(&self.slots, fixed(window))
        self.arrays.scratch(&self.old_slots, fixed(window))
        self.arrays.scratch(&self.count, fixed(trees * self.nodes))
        self.arrays.scratch(&self.old_count, fixed(trees * self.nodes))
        self.arrays.scratch(&self.value, fixed(trees * self.nodes))
        self.arrays.scratch(&self.dense, per_slot(first=NAN))
        self.arrays.scratch(&self.path, fixed(depth))
        self.arrays.scratch(&self.low, fixed(depth))
        self.arrays.scratch(&self.high, fixed(depth))

    cdef Py_ssize_t size(self, int64_t turn) noexcept nogil:
        """Return the number of instances of a window; none is before the first."""
        if turn < 0:
            return 0
        if turn > 40:
            return self.window
        return min(self.window, FIRST if turn == 0 else <Py_ssize_t> FIRST << (turn - 1))

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove the slot from the trees; where they split by it, it is absent."""
        cdef Py_ssize_t i
        for i in range(self.window):
            if self.next_slots[i] == slot:
                self.next_slots[i] = 0
            if self.slots[i] == slot:
                self.slots[i] = 0
            if self.old_slots[i] == slot:
                self.old_slots[i] = 0
        Model.forget(self, slot)

    cdef void set_dense(self, View* v) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(v.n):
            self.dense[v.slot[i]] = v.x[i]

    cdef void clear_dense(self, View* v) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(v.n):
            self.dense[v.slot[i]] = NAN

    # ---------------------------------------------------------------- trees

    cdef Tree tree(self, Py_ssize_t number, int64_t turn, const int32_t* slots) noexcept nogil:
        """Return a tree of a window."""
        cdef Tree tree
        tree.start = number * self.nodes
        tree.slots = slots
        tree.choices = self.size(turn - 1)
        tree.node_key = mix(mix(self.seed) ^ <uint64_t> (turn * self.trees + number))      # as in draw()
        tree.range_key = mix(mix(self.seed ^ 1) ^ <uint64_t> (turn * self.trees + number))
        return tree

    cdef int side(self, const Tree* tree, Py_ssize_t level, int32_t slot) noexcept nogil:
        """Return on which side of a node the instance at hand is: 1 below the middle of the range, 2 above it.

        Note the half on the path. At its first split, the range of a feature is the work space of the paper: a random
        centre within the usual values, and twice the larger distance to their ends on both sides.
        """
        cdef Py_ssize_t i
        cdef double u, reach, middle
        for i in range(level - 1, -1, -1):
            if self.path[i] == slot:
                self.low[level] = self.low[i]
                self.high[level] = self.high[i]
                break
        else:
            u = unit_interval(mix(tree.range_key ^ <uint64_t> slot))
            reach = 4.0 * RANGE * max(u, 1.0 - u)
            middle = RANGE * (2.0 * u - 1.0)
            self.low[level] = middle - reach
            self.high[level] = middle + reach
        self.path[level] = slot
        middle = 0.5 * (self.low[level] + self.high[level])
        if self.dense[slot] < middle:
            self.high[level] = middle
            return 1
        self.low[level] = middle
        return 2

    # ---------------------------------------------------------------- scoring

    cdef double descend(self, const Tree* tree, Py_ssize_t node, Py_ssize_t level, double w, View* v,
                        double* out) noexcept nogil:
        """Return w times the expected value of the instance at hand below a node of the last complete window.

        Unless `out` is NULL, add by how much each split by a present feature lowers it; at an absent feature the mean
        of both sides is what it was.
        """
        cdef Py_ssize_t start = tree.start, below, i
        cdef int32_t slot, left, right
        cdef int side
        while True:
            below = start + 2 * node + 1
            left = self.old_count[below] if level < self.depth else 0
            right = self.old_count[below + 1] if level < self.depth else 0
            if left + right == 0:
                return w * self.value[start + node]
            slot = feature(tree, node)
            if self.dense[slot] != self.dense[slot]:
                if w < LEAST:
                    return w * self.value[start + node]
                self.path[level] = 0
                return (self.descend(tree, 2 * node + 1, level + 1, w * left / (left + right), v, out)
                        + self.descend(tree, 2 * node + 2, level + 1, w * right / (left + right), v, out))
            side = self.side(tree, level, slot)
            if out != NULL:
                for i in range(v.n):
                    if v.slot[i] == slot:
                        out[i] += w * (self.value[start + node] - self.value[below + side - 1])
            node = 2 * node + side
            level += 1

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Compute by how much the logarithm of the mass is smaller than its mean in the last complete window."""
        cdef Py_ssize_t t
        cdef Tree tree
        out[0] = 0.0
        if self.turned[0] < 2:     # the first window has no trees
            return
        self.set_dense(v)
        for t in range(self.trees):
            tree = self.tree(t, self.turned[0] - 1, self.old_slots)
            out[0] += self.value[tree.start] - self.descend(&tree, 0, 0, 1.0, v, NULL)
        out[0] /= self.trees
        self.clear_dense(v)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i, t
        cdef Tree tree
        memset(out, 0, v.n * sizeof(double))
        if self.turned[0] < 2:
            return
        self.set_dense(v)
        for t in range(self.trees):
            tree = self.tree(t, self.turned[0] - 1, self.old_slots)
            self.descend(&tree, 0, 0, 1.0, v, out)
        for i in range(v.n):
            out[i] /= self.trees
        self.clear_dense(v)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t t
        cdef Tree tree
        cdef int64_t turn = self.turned[0], step = self.held[0]
        if turn > 0:
            self.set_dense(v)
            for t in range(self.trees):
                tree = self.tree(t, turn, self.slots)
                self.add(&tree, <int64_t> (<uint64_t> turn * <uint64_t> self.window + <uint64_t> step))
            self.clear_dense(v)
        self.next_slots[step] = self.any_slot(v, turn, step)
        self.held[0] += 1
        if self.held[0] == self.size(turn):
            self.turn()

    cdef int32_t any_slot(self, View* v, int64_t turn, int64_t step) noexcept nogil:
        """Return a feature of the instance at random, 0 if it has only strings."""
        cdef Py_ssize_t i, numbers = 0, chosen
        for i in range(v.n):
            numbers += not self.space.kind[v.slot[i]] & INDICATOR
        if numbers == 0:
            return 0
        chosen = draw(self.seed ^ 2, turn, step) % <uint64_t> numbers
        for i in range(v.n):
            if not self.space.kind[v.slot[i]] & INDICATOR:
                if chosen == 0:
                    return v.slot[i]
                chosen -= 1
        return 0

    cdef void add(self, const Tree* tree, int64_t instance) noexcept nogil:
        """Count the instance at hand in the nodes of a present tree.

        Without the feature of a node, it goes to a side at random, in proportion to those before it, and ends there if
        there were none.
        """
        cdef Py_ssize_t level, node = 0
        cdef int32_t* count = self.count + tree.start
        cdef int32_t slot, left, right
        count[0] += 1
        for level in range(self.depth):
            slot = feature(tree, node)
            if self.dense[slot] == self.dense[slot]:
                node = 2 * node + self.side(tree, level, slot)
            else:
                left = count[2 * node + 1]
                right = count[2 * node + 2]
                if left + right == 0:
                    return
                self.path[level] = 0
                node = 2 * node + (1 if draw(self.seed ^ 3, instance, tree.start + node) % <uint64_t> (left + right)
                                   < <uint64_t> left else 2)
            count[node] += 1

    cdef void turn(self) noexcept nogil:
        """Make the present window the last complete one."""
        memcpy(self.old_count, self.count, self.trees * self.nodes * sizeof(int32_t))
        memset(self.count, 0, self.trees * self.nodes * sizeof(int32_t))
        memcpy(self.old_slots, self.slots, self.window * sizeof(int32_t))
        memcpy(self.slots, self.next_slots, self.window * sizeof(int32_t))
        memset(self.next_slots, 0, self.window * sizeof(int32_t))
        self.turned[0] += 1
        self.held[0] = 0
        self.weigh()

    cdef void weigh(self) noexcept nogil:
        """Compute the values of the nodes of the last complete window, and end the trees where few instances are.

        The mass of a node is that of its parent times its share of the instances that went on from there.
        """
        cdef Py_ssize_t t, i, level, below, inner = self.nodes // 2
        cdef int32_t* count
        cdef double* value
        cdef double n = self.size(self.turned[0] - 1), share
        for t in range(self.trees):
            count = self.old_count + t * self.nodes
            value = self.value + t * self.nodes
            value[0] = n
            for i in range(inner):
                below = 2 * i + 1
                if value[i] < LIMIT * n:
                    count[below] = 0
                    count[below + 1] = 0
                share = <double> count[below] / max(count[below] + count[below + 1], 1)
                value[below] = value[i] * share
                value[below + 1] = value[i] * (1.0 - share)
            level = self.depth
            for i in range(self.nodes - 1, -1, -1):
                if i + 1 < <Py_ssize_t> 1 << level:
                    level -= 1
                below = 2 * i + 1
                if level == self.depth or count[below] + count[below + 1] == 0:
                    value[i] = log2(value[i] + 1.0) + level
                else:
                    share = <double> count[below] / (count[below] + count[below + 1])
                    value[i] = share * value[below] + (1.0 - share) * value[below + 1]

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return by how many instances the feature was chosen for the trees."""
        cdef Py_ssize_t i, n = 0
        for i in range(self.window):
            n += (self.slots[i] == slot) + (self.old_slots[i] == slot)
        return n

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef int64_t turn = self.turned[0]
        return {
            **Model.dump(self, size),
            "next_slots": self.slots_of(self.next_slots, self.held[0]),
            "slots": self.slots_of(self.slots, self.size(turn - 1)),
            "old_slots": self.slots_of(self.old_slots, self.size(turn - 2)),
            "count": self.nodes_of(self.count),
            "old_count": self.nodes_of(self.old_count),
        }

    cdef object slots_of(self, const int32_t* slots, Py_ssize_t n):
        cdef Py_ssize_t i
        return np.array([slots[i] for i in range(n)], dtype=np.int32)

    cdef object nodes_of(self, const int32_t* count):
        """Return the nodes that hold instances, and their counts: two rows, so that a list cut short is noticed."""
        cdef Py_ssize_t i
        held = [(i, count[i]) for i in range(self.trees * self.nodes) if count[i]]
        return np.ascontiguousarray(np.array(held, dtype=np.int32).reshape(-1, 2).T)

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int64_t turn
        Model.fill(self, arrays, capacity)
        turn = self.turned[0]
        if self.held[0] >= self.size(turn):
            raise ValueError(f"the window holds {self.held[0]} instances of at most {self.size(turn) - 1}")
        self.fill_slots("next_slots", arrays, self.next_slots, self.held[0], capacity)
        self.fill_slots("slots", arrays, self.slots, self.size(turn - 1), capacity)
        self.fill_slots("old_slots", arrays, self.old_slots, self.size(turn - 2), capacity)
        self.fill_nodes("count", arrays, self.count, self.held[0] if turn > 0 else 0)
        self.fill_nodes("old_count", arrays, self.old_count, self.size(turn - 1) if turn > 1 else 0)
        self.weigh()

    cdef int fill_slots(self, str name, dict arrays, int32_t* slots, Py_ssize_t n, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t i
        cdef const int32_t[::1] held = checked_array(arrays, name, "i", (n,), 0, capacity - 1).astype(np.int32)
        memset(slots, 0, self.window * sizeof(int32_t))
        for i in range(n):
            slots[i] = held[i]
        return 0

    cdef int fill_nodes(self, str name, dict arrays, int32_t* count, Py_ssize_t n) except -1:
        """Restore what nodes_of() returned: n instances at each root, below a node at most those that are in it."""
        cdef Py_ssize_t i, t, total = self.trees * self.nodes
        pairs = checked_array(arrays, name, "i", (2, None), 0, max(total, self.window))
        if pairs.size and (pairs[0].max() >= total or (np.diff(pairs[0]) <= 0).any()):
            raise ValueError(f"{name} holds nodes that do not exist, or are not in order")
        memset(count, 0, total * sizeof(int32_t))
        for node, instances in pairs.T.tolist():
            i = node
            count[i] = instances
        for t in range(0, total, self.nodes):
            if count[t] != n:
                raise ValueError(f"a tree of {name} does not hold {n} instances")
            for i in range(self.nodes // 2):
                if <int64_t> count[t + 2 * i + 1] + count[t + 2 * i + 2] > count[t + i]:
                    raise ValueError(f"below the node {i} of a tree of {name} are more instances than in it")
        return 0

"""Growing one tree over the rows of a window: random columns, the best of a few random thresholds."""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._numeric.hashing cimport mix
from varifold._numeric.kernels cimport count_below
from varifold.forest._window cimport ABSENT_RIGHT, PRESENCE, Row, place, side, side_of

from varifold._engine.state import checked_array

cdef double NONE = 1e999 - 1e999    # not a number


cdef class Growing(Model):
    """A model that keeps a window of rows and grows trees over it; the .pxd file describes their use."""

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.window.fit_table(capacity, self.window.capacity)
        return Model.grow(self, capacity)

    cdef Py_ssize_t pick(self, Py_ssize_t n) noexcept nogil:
        """Draw a number from 0 to n - 1: a hash of the seed, the tree and the number of its draws."""
        self.draws += 1
        return <Py_ssize_t> (mix(self.tree_hash ^ self.draws) % <uint64_t> n)

    cdef Py_ssize_t fewest(self) noexcept nogil:
        """Rows on either side of a split: with many labels more, as every node holds a count of each."""
        return max(self.min_leaf, <Py_ssize_t> (self.classes // LABELS_PER_ROW))

    # ---------------------------------------------------------------- a tree that grows

    cdef void begin(self, Py_ssize_t length, int trees) noexcept nogil:
        """Start a tree over the last `length` rows; requires reserve_pairs(length / fewest() + 1)."""
        cdef Py_ssize_t i
        cdef int32_t* order = self.window.order
        for i in range(self.space.size):
            self.importance[i] *= 1.0 - 1.0 / trees
        self.weight = 0.0
        for i in range(length):
            order[i] = <int32_t> ((self.window.taken - length + i) % self.window.most)
            self.weight += self.window.row[order[i]].w
        self.root_growing = self.nodes.take_pair()
        self.pending[0].node = self.root_growing
        self.pending[0].start = 0
        self.pending[0].stop = length
        self.pending[0].depth = 0
        self.n_pending = 1
        self.end = self.window.taken
        self.length_growing = length
        self.begun += 1
        self.draws = 0
        self.credit = 0

    cdef bint work(self, Py_ssize_t rows, int trees) noexcept nogil:
        """Grow the tree with a budget of this many rows; return whether it is complete.

        A node is looked at as a whole: what that takes beyond the rows given is made up for by later calls.
        """
        self.credit += rows
        while self.n_pending and self.credit > 0:
            self.n_pending -= 1
            self.credit -= self.pending[self.n_pending].stop - self.pending[self.n_pending].start
            self.grow_node(&self.pending[self.n_pending], trees)
        return self.n_pending == 0

    cdef void grow_node(self, Pending* p, int trees) noexcept nogil:
        """Evaluate a node and split it if worthwhile; its children replace it among the pending nodes."""
        cdef int32_t node = p.node, pair
        cdef Py_ssize_t middle, slot
        cdef int32_t* order = self.window.order + p.start
        cdef Split best
        if (not self.weigh_node(node, order, p.stop - p.start) or p.depth == DEEPEST
                or not self.find_split(order, p.stop - p.start, &best)):
            return
        middle = p.start + self.part(order, p.stop - p.start, &best)
        pair = self.nodes.take_pair() if min(middle - p.start, p.stop - middle) >= self.fewest() else 0
        if pair == 0:
            return
        self.nodes.key[node] = best.key
        self.nodes.value[node] = best.value
        self.nodes.way[node] = best.way
        self.nodes.left[node] = pair
        slot = best.key >> 1 if best.way & PRESENCE or not best.key & 1 else <Py_ssize_t> best.value
        best.gain *= max(1.0, (p.stop - p.start) / <double> SAMPLE)
        self.importance[slot] += self.importance_of(best.gain) / trees
        # the left child is on top: it is grown first
        p.depth += 1
        p[1] = p[0]
        p[1].node = pair
        p[1].stop = middle
        p.node = pair + 1
        p.start = middle
        self.n_pending += 2

    cdef void abandon(self) noexcept nogil:
        """Drop the growing tree."""
        if self.root_growing:
            self.nodes.release_tree(self.root_growing)
        self.root_growing = 0
        self.n_pending = 0

    # ---------------------------------------------------------------- one split

    cdef void add_row(self, double* sums, Row* r) noexcept nogil:
        """Add a row to the sums by which splits are evaluated."""
        pass

    cdef void count_row(self, int32_t node, Row* r) noexcept nogil:
        """Add a row to a node's statistics."""
        pass

    cdef bint weigh_node(self, int32_t node, int32_t* order, Py_ssize_t n) noexcept nogil:
        """Compute a node's statistics and `total` from its rows; return whether there is anything to split."""
        return False

    cdef double importance_of(self, double gain) noexcept nogil:
        """Convert a split's gain to the importance of its column."""
        return 0.0

    cdef bint find_split(self, int32_t* order, Py_ssize_t n, Split* best) noexcept nogil:
        """Find the best split over columns drawn from random rows; return whether there is any."""
        cdef int32_t[MOST_COLUMNS] tried
        cdef Row* r
        cdef int attempt, i, wanted, count = 0, useful = 0
        cdef int32_t key
        self.enough = self.fewest()
        self.tree_hash = mix(mix(self.seed) ^ <uint64_t> self.begun)
        if n > SAMPLE:
            self.enough = min(self.enough, max(2, self.enough * SAMPLE // n))
            order = self.sample(order, n)
            n = SAMPLE
        r = &self.window.row[order[self.pick(n)]]
        wanted = <int> min(<double> MOST_COLUMNS, self.columns * sqrt(<double> r.n) + 1.0)
        best.gain = 0.0
        best.key = 0
        for attempt in range(3 * wanted):
            if useful >= wanted or count == MOST_COLUMNS or (n == 2 and best.key):    # all splits of two rows are alike
                break
            r = &self.window.row[order[self.pick(n)]]
            if r.n == 0:
                continue
            key = r.key[self.pick(r.n)]
            i = 0
            while i < count and tried[i] != key:
                i += 1
            if i < count:
                continue
            tried[count] = key
            count += 1
            useful += self.try_column(order, n, key, best)
        return best.key != 0

    cdef int32_t* sample(self, int32_t* order, Py_ssize_t n) noexcept nogil:
        """Pick SAMPLE of n rows, evenly spaced, and sum them in `total`."""
        cdef Py_ssize_t i
        memset(self.total, 0, self.classes * sizeof(double))
        for i in range(SAMPLE):
            self.window.spare[i] = order[i * n // SAMPLE]
            self.add_row(self.total, &self.window.row[self.window.spare[i]])
        return self.window.spare

    cdef void gather(self, int32_t* order, Py_ssize_t n, int32_t key) noexcept nogil:
        """Collect the rows' values under a key in `value`, NaN if absent; at most SAMPLE rows."""
        cdef Py_ssize_t i, at
        cdef double* column = self.window.table + (key >> 1) * self.window.capacity
        cdef Row* r
        if not key & 1 and (key >> 1) < self.window.tabled:
            for i in range(n):
                self.value[i] = column[order[i]]
            return
        for i in range(n):
            r = &self.window.row[order[i]]
            at = place(r, key)
            self.value[i] = r.value[at] if at >= 0 else NONE

    cdef int draw_cuts(self, Py_ssize_t n, int32_t key) noexcept nogil:
        """Collect distinct values, ascending (of numbers, the midpoints); return their number.

        The values are those of random rows, or of all rows if there are at most half as many as are drawn.
        """
        cdef int i, j, at, m = 0
        cdef bint few = 2 * n <= self.cuts
        cdef double value
        for i in range(n if few else self.cuts):
            value = self.value[i if few else self.pick(n)]
            if value != value or (key & 1 and value == 0.0):
                continue
            j = m
            while j > 0 and self.cut[j - 1] > value:
                j -= 1
            if j > 0 and self.cut[j - 1] == value:
                continue
            at = m
            while at > j:
                self.cut[at] = self.cut[at - 1]
                at -= 1
            self.cut[j] = value
            m += 1
        if key & 1:
            return m
        for i in range(m - 1):
            self.cut[i] = self.cut[i] + 0.5 * (self.cut[i + 1] - self.cut[i])
        return max(0, m - 1)

    cdef void count_bins(self, int32_t* order, Py_ssize_t n, int32_t key, int m) noexcept nogil:
        """Sum rows by bin: m + 1 between thresholds, or one per level and one for the others; then absent ones."""
        cdef Py_ssize_t i
        cdef int low
        cdef Row* r
        memset(self.rows, 0, (m + 2) * sizeof(Py_ssize_t))
        memset(self.table, 0, (m + 2) * self.classes * sizeof(double))
        count_below(n, self.value, m, self.cut, self.bin)
        for i in range(n):
            r = &self.window.row[order[i]]
            low = self.bin[i]
            if self.value[i] != self.value[i]:
                low = m + 1 if not key & 1 or place(r, key - 1) < 0 else m
            elif key & 1 and low < m and self.cut[low] != self.value[i]:
                low = m
            self.rows[low] += 1
            self.add_row(self.table + low * self.classes, r)

    cdef bint try_column(self, int32_t* order, Py_ssize_t n, int32_t key, Split* best) noexcept nogil:
        """Try the splits on a column and on its presence; return whether any leaves enough rows on both sides."""
        cdef int c, j, b, m
        cdef Py_ssize_t left = 0, held
        cdef bint found = False
        cdef Split tried
        self.gather(order, n, key)
        m = self.draw_cuts(n, key)
        self.count_bins(order, n, key, m)
        held = n - self.rows[m + 1]
        if held == n and m == 0:
            return False
        memset(self.present, 0, self.classes * sizeof(double))
        for b in range(m + 1):
            for c in range(self.classes):
                self.present[c] += self.table[b * self.classes + c]
        tried.key = key
        if held < n:
            tried.value = 0.0
            tried.way = PRESENCE | ABSENT_RIGHT
            found = self.judge(self.present, NULL, held, n, &tried, best)
        memset(self.below, 0, self.classes * sizeof(double))
        for j in range(m):
            if key & 1:
                left = 0
                memset(self.below, 0, self.classes * sizeof(double))
            left += self.rows[j]
            for c in range(self.classes):
                self.below[c] += self.table[j * self.classes + c]
            tried.value = self.cut[j]
            found |= self.try_split(left, n, m, &tried, best)
        return found

    cdef bint try_split(self, Py_ssize_t left, Py_ssize_t n, int m, Split* tried, Split* best) noexcept nogil:
        """Try one threshold or level, with absent values left and right; return whether either leaves enough rows."""
        cdef Py_ssize_t absent = self.rows[m + 1]
        cdef bint found
        if absent == 0:
            # nothing was absent: future absent values follow the majority
            tried.way = 0 if 2 * left >= n else ABSENT_RIGHT
            return self.judge(self.below, NULL, left, n, tried, best)
        tried.way = ABSENT_RIGHT
        found = self.judge(self.below, NULL, left, n, tried, best)
        tried.way = 0
        found |= self.judge(self.below, self.table + (m + 1) * self.classes, left + absent, n, tried, best)
        return found

    cdef bint judge(self, double* left, double* more, Py_ssize_t rows, Py_ssize_t n, Split* tried,
                    Split* best) noexcept nogil:
        """Keep the split if it gains most. The sums of its left side are `left` and, unless NULL, `more`.

        Returns whether there is weight, and there are enough rows, on either side.
        """
        return False

    cdef Py_ssize_t part(self, int32_t* order, Py_ssize_t n, Split* split) noexcept nogil:
        """Partition the rows stably into those that go left and right; return the number on the left."""
        cdef Py_ssize_t i, left = 0, right = 0
        cdef bint tabled = not split.key & 1 and (split.key >> 1) < self.window.tabled
        cdef double* column = self.window.table + (split.key >> 1) * self.window.capacity
        for i in range(n):
            if (side_of(column[order[i]], split.value, split.way) if tabled
                    else side(&self.window.row[order[i]], split.key, split.value, split.way)):
                self.window.spare[right] = order[i]
                right += 1
            else:
                order[left] = order[i]
                left += 1
        memcpy(order + left, self.window.spare, right * sizeof(int32_t))
        return left

    # ---------------------------------------------------------------- files

    def dump_growth(self):
        """Return the growing tree: its counters, pending nodes and row order."""
        cdef Py_ssize_t i
        length = self.length_growing if self.root_growing else 0
        counters = [self.root_growing, length, self.end, self.begun, self.draws, self.credit]
        pending = [[self.pending[i].node, self.pending[i].start, self.pending[i].stop, self.pending[i].depth]
                   for i in range(self.n_pending)]
        return {"growth.counters": np.array(counters, dtype=np.int64), "growth.weight": np.array([self.weight]),
                "growth.pending": np.array(pending, dtype=np.int64).reshape(-1, 4),
                "growth.order": np.array([self.window.order[i] for i in range(length)], dtype=np.int32)}

    def fill_growth(self, dict arrays):
        """Restore the checked result of dump_growth(), after the window and before the nodes."""
        cdef Py_ssize_t i
        counters = checked_array(arrays, "growth.counters", "i", (6,), -(1 << 53), 1 << 53).tolist()
        held = min(self.window.taken, self.window.most)
        length = counters[1]
        order = checked_array(arrays, "growth.order", "i", (length,), 0, held - 1)
        pending = checked_array(arrays, "growth.pending", "i", (None, 4), 0)
        self.weight = checked_array(arrays, "growth.weight", "f", (1,), 0)[0]
        if min(counters[:5]) < 0 or counters[2] > self.window.taken or self.window.taken - counters[2] > held:
            raise ValueError("the tree that grows does not fit the window")
        some = bool(counters[0])
        if length > held or len(pending) > DEEPEST + 1 or bool(len(pending)) != some or bool(length) != some:
            raise ValueError("the nodes pending belong to no tree")
        self.root_growing, self.length_growing, self.end, self.begun, self.draws, self.credit = counters
        self.n_pending = <int> len(pending)
        for i in range(length):
            self.window.order[i] = order[i]
        for i, (node, start, stop, depth) in enumerate(pending.tolist()):
            if not start < stop <= length or not i <= depth <= DEEPEST:
                raise ValueError(f"node {node} of the tree that grows has no rows, or the wrong depth")
            self.pending[i].node, self.pending[i].depth = node, depth
            self.pending[i].start, self.pending[i].stop = start, stop

    def check_pending(self):
        """Reject pending nodes that are not, each exactly once, leaves of the growing tree."""
        cdef Py_ssize_t i
        pending = [self.pending[i].node for i in range(self.n_pending)]
        leaves = self.nodes.leaves_of(self.root_growing) if self.root_growing else []
        if len(set(pending)) != len(pending) or not set(pending) <= set(leaves):
            raise ValueError("the nodes pending are no leaves of the tree that grows")

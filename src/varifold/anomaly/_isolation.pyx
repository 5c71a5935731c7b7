"""Trees of random splits over the last instances: what few splits isolate is unusual."""

import numpy as np

from libc.math cimport NAN, log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.view cimport View
from varifold._numeric.hashing cimport draw, unit_interval
from varifold.neighbours._rows cimport Rows

from varifold._engine.state import checked_array, fixed, per_slot

cdef enum:
    TRIES = 16         # features tried for a split
    DRAWS = 32         # random numbers per node
    QUICK = 4          # instances between two trees until the window was filled twice
    TURNS = 8          # trees built per window afterwards
    DEEPEST = 20

cdef double LEAST = 0.125      # weight below which both sides of an absent feature are not followed


cdef double leaf_depth(Py_ssize_t n) noexcept nogil:
    """Return the mean depth of a random tree that isolates n instances (Liu et al. 2008, eq. 1)."""
    if n <= 1:
        return 0.0
    if n == 2:
        return 1.0
    return 2.0 * (log(n - 1.0) + 0.5772156649015329) - 2.0 * (n - 1.0) / n


cdef class IsolationModel(Model):
    """A forest over a ring of instances, of which one tree at a time is built again."""

    cdef readonly Py_ssize_t trees, window, deepest, nodes
    cdef readonly uint64_t seed
    cdef Rows rows
    # by tree and node; the children of node i are 2 i + 1 and 2 i + 2
    cdef int64_t* built        # [1] trees built so far
    cdef int32_t* feature      # slot of the split, 0 for a leaf
    cdef double* threshold     # smaller values are left of it
    cdef double* left          # share of the instances left of it
    cdef double* depth         # mean depth of the instances below it
    # scratch
    cdef int32_t* order        # [window] places of instances, those of a node together
    cdef int32_t* spare        # [window]
    cdef int32_t* first        # [node] position in `order`
    cdef int32_t* last
    cdef double* dense         # [slot] values of the instance at hand, NaN if absent

    def __cinit__(self, Py_ssize_t trees, Py_ssize_t window, uint64_t seed):
        self.trees = trees
        self.window = window
        self.seed = seed
        while (<Py_ssize_t> 1 << self.deepest) < window and self.deepest < DEEPEST:
            self.deepest += 1
        self.nodes = (2 << self.deepest) - 1
        self.rows = Rows(window)
        self.prepares = True
        self.arrays.declare("built", &self.built, fixed(1, low=0))
        # most nodes are not in use: dump() saves those that are
        self.arrays.scratch(&self.feature, fixed(trees * self.nodes))
        self.arrays.scratch(&self.threshold, fixed(trees * self.nodes))
        self.arrays.scratch(&self.left, fixed(trees * self.nodes))
        self.arrays.scratch(&self.depth, fixed(trees * self.nodes))
        self.arrays.scratch(&self.order, fixed(window))
        self.arrays.scratch(&self.spare, fixed(window))
        self.arrays.scratch(&self.first, fixed(self.nodes))
        self.arrays.scratch(&self.last, fixed(self.nodes))
        self.arrays.scratch(&self.dense, per_slot(first=NAN))

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        return self.rows.reserve_next(n + n_new)

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove the slot from the rows, and end the trees where they split by it."""
        cdef Py_ssize_t i
        self.rows.forget(slot)
        for i in range(self.trees * self.nodes):
            if self.feature[i] == slot:
                self.feature[i] = 0
        Model.forget(self, slot)

    # ---------------------------------------------------------------- scoring

    cdef double isolate(self, Py_ssize_t start, Py_ssize_t node, double w) noexcept nogil:
        """Return w times the depth at which the instance at hand ends below a node of the tree at `start`."""
        cdef double x
        cdef int32_t slot
        while True:
            slot = self.feature[start + node]
            if slot == 0:
                return w * self.depth[start + node]
            x = self.dense[slot]
            if x != x:
                if w < LEAST:
                    return w * self.depth[start + node]
                return (self.isolate(start, 2 * node + 1, w * self.left[start + node])
                        + self.isolate(start, 2 * node + 2, w * (1.0 - self.left[start + node])))
            node = 2 * node + (1 if x < self.threshold[start + node] else 2)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Compute by how much sooner than the mean of all instances this one is isolated, in splits."""
        cdef Py_ssize_t i, n = min(self.built[0], self.trees)
        for i in range(v.n):
            self.dense[v.slot[i]] = v.raw[i]
        out[0] = 0.0
        for i in range(n):
            out[0] += self.depth[i * self.nodes] - self.isolate(i * self.nodes, 0, 1.0)
        if n:
            out[0] /= n
        for i in range(v.n):
            self.dense[v.slot[i]] = NAN

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i, n = min(self.built[0], self.trees)
        memset(out, 0, v.n * sizeof(double))
        for i in range(v.n):
            self.dense[v.slot[i]] = v.raw[i]
        for i in range(n):
            self.explain(i * self.nodes, 0, 1.0, v, out)
        for i in range(v.n):
            out[i] /= max(1, n)
            self.dense[v.slot[i]] = NAN

    cdef void explain(self, Py_ssize_t start, Py_ssize_t node, double w, View* v, double* out) noexcept nogil:
        """Add the decrease of the expected depth by each split; at an absent feature the mean of both sides is 0."""
        cdef int32_t slot = self.feature[start + node]
        cdef double x
        cdef Py_ssize_t child, i
        if slot == 0:
            return
        x = self.dense[slot]
        if x != x:
            if w >= LEAST:
                self.explain(start, 2 * node + 1, w * self.left[start + node], v, out)
                self.explain(start, 2 * node + 2, w * (1.0 - self.left[start + node]), v, out)
            return
        child = 2 * node + (1 if x < self.threshold[start + node] else 2)
        for i in range(v.n):
            if v.slot[i] == slot:
                out[i] += w * (self.depth[start + node] - self.depth[start + child])
        self.explain(start, child, w, v, out)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t period
        self.rows.add(v.slot, v.raw, v.n)
        period = QUICK if self.rows.taken <= 2 * self.window else max(1, self.window // TURNS)
        if self.rows.taken % period == 0:
            self.build((self.built[0] % self.trees) * self.nodes)
            self.built[0] += 1

    cdef void build(self, Py_ssize_t start) noexcept nogil:
        """Build a tree from the rows, the oldest tree's memory being at `start`."""
        cdef Py_ssize_t i, n = self.rows.held(), below, level = 0
        for i in range(n):
            self.order[i] = <int32_t> i
        for i in range(self.nodes):
            self.first[i] = 0
            self.last[i] = 0
        self.last[0] = <int32_t> n
        for i in range(self.nodes):
            if i + 1 == <Py_ssize_t> 2 << level:
                level += 1
            self.feature[start + i] = 0
            self.threshold[start + i] = 0.0
            self.left[start + i] = 0.5
            n = self.last[i] - self.first[i]
            self.depth[start + i] = level + leaf_depth(n)
            if n > 1 and level < self.deepest:
                self.split(start, i)
        for i in range(self.nodes - 1, -1, -1):
            if self.feature[start + i]:
                below = start + 2 * i + 1
                self.depth[start + i] = (self.left[start + i] * self.depth[below]
                                         + (1.0 - self.left[start + i]) * self.depth[below + 1])

    cdef void split(self, Py_ssize_t start, Py_ssize_t node) noexcept nogil:
        """Choose a feature that varies among the instances of a node, and a threshold within its range."""
        cdef Py_ssize_t i, n = self.last[node] - self.first[node], lefts = 0, rights = 0, attempt, place
        cdef int32_t* order = self.order + self.first[node]
        cdef int32_t slot = 0
        cdef uint64_t r
        cdef double low = 0.0, high = 0.0, threshold
        cdef const double* x
        cdef bint goes_left
        for attempt in range(TRIES):
            r = draw(self.seed, self.built[0], node * DRAWS + attempt)
            place = order[(r & 0xFFFFFFFFULL) % <uint64_t> n]
            if self.rows.row[place].n == 0:
                continue
            slot = self.rows.row[place].slot[(r >> 32) % <uint64_t> self.rows.row[place].n]
            if self.space.kind[slot] & INDICATOR:
                continue
            low = self.rows.value(place, slot)[0]
            high = low
            for i in range(n):
                x = self.rows.value(order[i], slot)
                if x != NULL:
                    low = min(low, x[0])
                    high = max(high, x[0])
            if low < high:
                break
        if not low < high:
            return
        threshold = low + unit_interval(draw(self.seed, self.built[0], node * DRAWS + TRIES)) * (high - low)
        if threshold <= low:
            threshold = high
        for i in range(n):
            x = self.rows.value(order[i], slot)
            if x != NULL:
                if x[0] < threshold:
                    lefts += 1
                else:
                    rights += 1
        self.feature[start + node] = slot
        self.threshold[start + node] = threshold
        self.left[start + node] = <double> lefts / (lefts + rights)
        # an instance without the feature goes to a side at random, in proportion to the others
        lefts = 0
        rights = 0
        for i in range(n):
            x = self.rows.value(order[i], slot)
            if x != NULL:
                goes_left = x[0] < threshold
            else:
                goes_left = unit_interval(draw(self.seed ^ (<uint64_t> self.built[0] << 20), node, order[i])) < (
                    self.left[start + node])
            if goes_left:
                order[lefts] = order[i]
                lefts += 1
            else:
                self.spare[rights] = order[i]
                rights += 1
        for i in range(rights):
            order[lefts + i] = self.spare[i]
        self.first[2 * node + 1] = self.first[node]
        self.last[2 * node + 1] = <int32_t> (self.first[node] + lefts)
        self.first[2 * node + 2] = self.last[2 * node + 1]
        self.last[2 * node + 2] = self.last[node]

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return the number of splits by the feature."""
        cdef Py_ssize_t i, n = 0
        for i in range(self.trees * self.nodes):
            n += self.feature[i] == slot
        return n

    # ---------------------------------------------------------------- files

    cdef bint in_use(self, Py_ssize_t i) noexcept nogil:
        """Return whether a node is the root of its tree or below a split; i counts the nodes of all trees."""
        cdef Py_ssize_t start = i - i % self.nodes, node = i % self.nodes
        while node > 0:
            node = (node - 1) // 2
            if self.feature[start + node] == 0:
                return False
        return True

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t i, count = min(self.built[0], self.trees) * self.nodes
        used = [i for i in range(count) if self.in_use(i)]
        splits = [i for i in used if self.feature[<Py_ssize_t> i]]
        return {
            **Model.dump(self, size), **self.rows.dump("rows."),
            "node": np.array(splits, dtype=np.int32),
            "feature": np.array([self.feature[<Py_ssize_t> i] for i in splits], dtype=np.int32),
            "threshold": np.array([self.threshold[<Py_ssize_t> i] for i in splits], dtype=np.float64),
            "left": np.array([self.left[<Py_ssize_t> i] for i in splits], dtype=np.float64),
            "depth": np.array([self.depth[<Py_ssize_t> i] for i in used], dtype=np.float64),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t i
        Model.fill(self, arrays, capacity)
        self.rows.fill(arrays, capacity, "rows.")
        count = min(self.built[0], self.trees) * self.nodes
        splits = checked_array(arrays, "node", "i", (None,), 0, count - 1)
        feature = checked_array(arrays, "feature", "i", splits.shape, 1, capacity - 1)
        threshold = checked_array(arrays, "threshold", "f", splits.shape)
        left = checked_array(arrays, "left", "f", splits.shape, 0, 1)
        if (np.diff(splits) <= 0).any() or (splits % self.nodes >= self.nodes // 2).any():
            raise ValueError("the splits of a tree are out of order, or below its last level")
        for i in range(self.trees * self.nodes):
            self.feature[i] = 0
        for k in range(len(splits)):
            i = splits[k]
            if not self.in_use(i):
                raise ValueError(f"the split {i} is not below another")
            self.feature[i] = feature[k]
            self.threshold[i] = threshold[k]
            self.left[i] = left[k]
        used = [i for i in range(count) if self.in_use(i)]
        depth = checked_array(arrays, "depth", "f", (len(used),), 0, 1e3)
        for k in range(len(used)):
            self.depth[<Py_ssize_t> used[k]] = depth[k]

    def nbytes(self):
        return Model.nbytes(self) + self.rows.nbytes()

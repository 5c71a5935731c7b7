"""Trees over recent instances, regrown one at a time, for labels and for regression targets."""

import numpy as np

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport COLUMN, INDICATOR
from varifold._engine.view cimport View
from varifold.forest._growing cimport MOST_CUTS, Growing
from varifold.forest._nodes cimport Nodes
from varifold.forest._window cimport Row, Window, place, read_view, side

from varifold._engine.state import checked_array, fixed, per_class, per_slot

cdef double USUAL = 0.002      # rate of the running mean of the usual loss
cdef double SLACK = 0.1        # slack: losses may exceed the usual loss by this
cdef double DRIFT = 2.0        # threshold of the accumulated excess that signals drift,
cdef double SPREAD = 60.0      # plus this factor times the variance of a loss
cdef int64_t TRUSTED = 100     # instances before the usual loss is reliable
cdef Py_ssize_t FEWEST = 20    # minimum number of rows to learn from after drift
cdef Py_ssize_t TRIAL = 500    # rows for which trees from before a drift are kept, in case that it does not last
cdef double LEAD_MEMORY = 50.0 # rows over which losses of both kinds of trees are compared
cdef Py_ssize_t SHARE = 20     # rows processed per instance and tree: enough to grow trees of this mean depth in time
cdef Py_ssize_t ALL = 1 << 40  # more than a tree can use


cdef class WindowTrees(Growing):
    """Hold trees whose nodes keep counting, and the window that they are grown on.

    The window stops growing when it holds `numbers` values (0: no bound) in at least 1,000 rows of more than `narrow`
    values on average. A subclass reads an instance, predicts it, passes a loss from 0 to 1 to watch(), stores label or
    target and weight in `current`, and calls advance().

    After a drift, trees are grown on the rows since then. What looks like a drift may pass (a holiday, a fault), so the
    trees from before stay on trial for TRIAL rows. Both kinds predict, weighted by their recent losses, which the
    subclass passes to compare(); then those that are behind are dropped.
    """

    def __cinit__(self, int trees, Py_ssize_t window, double columns, int cuts, Py_ssize_t min_leaf, double smoothing,
                  uint64_t seed, Py_ssize_t numbers=0, bint numeric=False, double narrow=0.0):
        self.most = window
        # a growing tree needs its rows a while longer
        self.window = Window(window + window // trees + 1, numbers, numeric, narrow)
        self.nodes = Nodes(-1e150 if numeric else 0.0)
        self.trees = trees
        self.columns = columns
        self.cuts = cuts
        self.min_leaf = min_leaf
        self.smoothing = smoothing
        self.seed = seed
        self.sees_empty = True
        self.prepares = True
        self.arrays.declare("roots", &self.root, fixed(2 * trees))
        self.arrays.declare("importance", &self.importance, per_slot(low=0))
        self.arrays.scratch(&self.current_key, per_slot())
        self.arrays.scratch(&self.current_value, per_slot())
        self.arrays.scratch(&self.part_of, per_slot())
        self.arrays.scratch(&self.marked, per_slot(width=2))
        self.arrays.scratch(&self.table, per_class(width=MOST_CUTS + 2))
        self.arrays.scratch(&self.total, per_class())
        self.arrays.scratch(&self.present, per_class())
        self.arrays.scratch(&self.below, per_class())

    # ---------------------------------------------------------------- memory

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        self.nodes.arrays.reserve_classes(self.classes + 1)
        return 0

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Reserve memory for the row, and for all nodes of a tree if one may start."""
        cdef Py_ssize_t pairs = self.next_length() // self.fewest() + 1
        self.window.reserve(n + n_new)
        if self.root_growing == 0 and self.nodes.free_pairs() < pairs:
            with gil:
                self.nodes.reserve_pairs(pairs)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove a feature from rows and splits; a removed level leaves its column present.

        Features are evicted many at a time: those that are no levels are marked, and removed together before rows or
        nodes are next used.
        """
        self.arrays.forget(slot)
        if self.space.kind[slot] & INDICATOR:
            self.window.forget(2 * self.space.column[slot] + 1, slot)
            self.forget_nodes(2 * self.space.column[slot] + 1, slot)
            return
        self.marked[2 * slot] = 1
        self.marked[2 * slot + 1] |= not self.space.kind[slot] & COLUMN
        self.any_marked = True

    cdef void forget_marked(self) noexcept nogil:
        """Remove the marked features from rows and splits."""
        cdef Py_ssize_t i
        if not self.any_marked:
            return
        self.window.forget_marked(self.marked)
        for i in range(2, self.nodes.used):
            if self.marked[self.nodes.key[i]]:
                self.nodes.key[i] = 0
                self.nodes.value[i] = 0.0
        memset(self.marked, 0, 2 * self.capacity)
        self.any_marked = False

    cdef void forget_nodes(self, int32_t key, double level) noexcept nogil:
        """Disable splits with this key (and level, unless 0): every instance is treated as absent."""
        cdef Py_ssize_t i
        for i in range(2, self.nodes.used):
            if self.nodes.key[i] == key and (level == 0.0 or self.nodes.value[i] == level):
                self.nodes.key[i] = 0
                self.nodes.value[i] = 0.0

    # ---------------------------------------------------------------- iterating over the trees

    cdef int recent(self) noexcept nogil:
        """Return the number of recent trees: those that predict and are not on trial."""
        return <int> min(self.grown, <int64_t> self.trees)

    cdef int predicting(self) noexcept nogil:
        """Return the number of trees that predict, those on trial last."""
        return self.recent() + self.earlier

    cdef int32_t root_of(self, int t) noexcept nogil:
        """Return the root of one of the trees that predict."""
        return self.root[t if t < self.recent() else self.trees + t - self.recent()]

    cdef double weight_of(self, int t) noexcept nogil:
        """Return the weight of one of the trees that predict; all weights sum to 1.

        The recent trees share sigmoid(lead), those on trial the rest; `lead` is the log of the odds.
        """
        cdef int recent = self.recent()
        if recent == 0 or self.earlier == 0:
            return 1.0 / self.predicting()
        return 1.0 / (1.0 + exp(-self.lead)) / recent if t < recent else 1.0 / (1.0 + exp(self.lead)) / self.earlier

    cdef void read(self, View* v) noexcept nogil:
        """Read the instance by column; what was forgotten is removed first."""
        self.forget_marked()
        self.current.key = self.current_key
        self.current.value = self.current_value
        read_view(v, self.space, &self.current)

    cdef int32_t child_of(self, int32_t node, Row* r) noexcept nogil:
        """Return the child of a split node for a row."""
        return self.nodes.left[node] + side(r, self.nodes.key[node], self.nodes.value[node], self.nodes.way[node])

    # ---------------------------------------------------------------- learning

    cdef void advance(self, bint prepared) noexcept nogil:
        """Add the instance to the window and continue the growing tree.

        `prepared`: no tree was growing before this instance, so prepare() reserved memory for one to begin.
        """
        if self.root_growing and self.window.taken - self.window.most >= self.end - self.length_growing:
            self.work(ALL, self.trees)    # its oldest row is about to be overwritten
            self.plant()
        self.window.put(&self.current)
        self.length = self.next_length()
        self.since += 1
        if prepared and self.since * (self.trees + 1) >= self.length:
            self.begin(self.length, self.trees)
            self.since = 0
        if self.root_growing and self.work(SHARE * self.trees, self.trees):
            self.plant()
        if self.earlier:
            self.trial += 1
            if self.trial >= TRIAL and self.grown:
                self.end_trial()

    cdef Py_ssize_t next_length(self) noexcept nogil:
        """Return the number of rows to learn from after one more instance: one more, up to the window."""
        return min(self.length + 1, min(self.most, self.window.most - self.window.most // (self.trees + 1)))

    cdef void watch(self, double loss) noexcept nogil:
        """Accumulate the excess of losses over the usual (CUSUM); a large sum is drift, since the sum began to rise."""
        cdef double rate, spread
        self.judged += 1
        rate = max(USUAL, 1.0 / self.judged)
        self.excess += loss - self.usual - SLACK
        self.rising += 1
        if self.excess <= 0.0:
            self.excess = 0.0
            self.rising = 0
        self.usual += rate * (loss - self.usual)
        spread = self.times_variance(SPREAD, loss, rate)
        if self.judged > TRUSTED and self.excess > DRIFT + spread:
            if self.earlier == 0:
                self.begin_trial()
            self.length = min(self.length, max(self.rising, FEWEST) - 1)
            self.abandon()
            self.judged = 0
            self.rising = 0
            self.excess = 0.0

    cdef void begin_trial(self) noexcept nogil:
        """Put all trees on trial."""
        cdef int t
        self.earlier = self.recent()
        for t in range(self.earlier):
            self.root[self.trees + t] = self.root[t]
        self.earlier_length = self.length
        self.trial = 0
        self.lead = 0.0
        self.grown = 0

    cdef void compare(self, double recent_loss, double earlier_loss) noexcept nogil:
        """Update the odds of both kinds of trees with their losses, from 0 to 1."""
        self.lead += earlier_loss - recent_loss - self.lead / LEAD_MEMORY

    cdef void end_trial(self) noexcept nogil:
        """Drop the trees on trial, or those grown since the drift if these are behind."""
        cdef int t
        if self.lead < 0.0:
            self.abandon()
            for t in range(self.recent()):
                self.nodes.release_tree(self.root[t])
            for t in range(self.earlier):
                self.root[t] = self.root[self.trees + t]
            self.grown = self.earlier
            self.length = self.earlier_length + self.trial
            self.length = min(self.next_length(), self.length)
        else:
            for t in range(self.earlier):
                self.nodes.release_tree(self.root[self.trees + t])
        self.earlier = 0

    cdef double times_variance(self, double factor, double loss, double rate) noexcept nogil:
        """Return the factor times the variance of the losses, including the current one at this rate."""
        return 0.0

    cdef void plant(self) noexcept nogil:
        """Finish the growing tree: count the labels that arrived meanwhile, then replace the oldest tree."""
        cdef int t = <int> (self.grown % self.trees)
        cdef int64_t i
        cdef Row* r
        cdef int32_t node
        for i in range(self.end, self.window.taken):
            r = &self.window.row[i % self.window.most]
            node = self.root_growing
            self.count_row(node, r)
            while self.nodes.left[node]:
                node = self.child_of(node, r)
                self.count_row(node, r)
        if self.grown >= self.trees:
            self.nodes.release_tree(self.root[t])
        self.root[t] = self.root_growing
        self.root_growing = 0
        self.grown += 1

    # ---------------------------------------------------------------- explaining

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.importance[slot]

    cdef int32_t blamed(self, int32_t key) noexcept nogil:
        """Return the slot that a split is attributed to: the instance's level or number, or the absent column."""
        cdef Py_ssize_t i = place(&self.current, key | 1)
        return <int32_t> self.current.value[i] if i >= 0 and self.current.value[i] > 0.0 else key >> 1

    # ---------------------------------------------------------------- files

    def dump_trees(self):
        """Return window, nodes, the growing tree and counters."""
        self.forget_marked()
        counters = [self.grown, self.length, self.since, self.judged, self.rising, self.earlier, self.earlier_length,
                    self.trial]
        return {**self.window.dump(), **self.nodes.dump(self.classes), **self.dump_growth(),
                "counters": np.array(counters, dtype=np.int64), "errors": np.array([self.usual, self.excess, self.lead])}

    def fill_trees(self, dict arrays, Py_ssize_t capacity):
        """Restore the checked result of dump_trees(), after the declared arrays."""
        self.window.fit_table(capacity, self.window.capacity)
        self.window.fill(arrays, capacity, self.classes)
        counters = checked_array(arrays, "counters", "i", (8,), 0, 1 << 53).tolist()
        self.grown, self.length, self.since, self.judged, self.rising, earlier, self.earlier_length, self.trial = counters
        self.earlier = min(earlier, self.trees)
        most = min(self.window.taken, <int64_t> min(self.most, self.window.most))
        if max(self.length, self.earlier_length) > most:
            raise ValueError(f"trees of {max(self.length, self.earlier_length)} rows out of {self.window.taken}")
        self.usual, self.excess, self.lead = checked_array(arrays, "errors", "f", (3,)).tolist()
        if min(self.usual, self.excess) < 0.0:
            raise ValueError("errors holds numbers below 0")
        self.fill_growth(arrays)
        roots = [*arrays["roots"][:self.recent()], *arrays["roots"][self.trees:self.trees + self.earlier],
                 *([self.root_growing] if self.root_growing else [])]
        self.nodes.fill(arrays, capacity, self.classes, roots)
        self.check_pending()
        self.nodes.reserve_pairs(self.length_growing // self.fewest() + 1)

    def nbytes(self):
        return Model.nbytes(self) + self.window.nbytes() + self.nodes.nbytes()

"""A forest over the last labelled instances, one tree grown again at a time."""

import numpy as np

from libc.math cimport fabs, log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from varifold._engine.model cimport Model
from varifold._engine.names cimport COLUMN, INDICATOR
from varifold._engine.state cimport CLASS, FIXED, FLOAT64, INT32, SLOT
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax
from varifold.forest._growing cimport MOST_CUTS, Growing
from varifold.forest._window cimport Row, Window, place, read_view, side

from varifold._engine.state import checked_array

cdef double USUAL = 0.002      # rate at which the usual error is averaged
cdef double SLACK = 0.1        # by which errors may exceed it
cdef double DRIFT = 2.0        # what the sum of the excess must pass to be a drift,
cdef double SPREAD = 60.0      # and how much more by the variance of an error
cdef int64_t TRUSTED = 100     # instances before the usual error is known
cdef Py_ssize_t FEWEST = 20    # rows to learn from after a drift, at the least
cdef Py_ssize_t SHARE = 20     # rows looked at per instance and tree: trees of this mean depth are grown in time
cdef Py_ssize_t ALL = 1 << 40  # more than a tree can take


cdef class WindowForestModel(Growing):
    """Trees whose nodes go on counting labels; the answer is the mean of their smoothed probabilities.

    The window stops growing when it holds `numbers` values (0: no bound) in at least 1,000 rows of more than `narrow`
    values on average.
    """

    def __cinit__(self, int trees, Py_ssize_t window, double columns, int cuts, Py_ssize_t min_leaf, double smoothing,
                  uint64_t seed, Py_ssize_t numbers=0, double narrow=0.0):
        self.most = window
        # a tree that grows needs its rows a while longer
        self.window = Window(window + window // trees + 1, numbers, narrow)
        self.trees = trees
        self.columns = columns
        self.cuts = cuts
        self.min_leaf = min_leaf
        self.smoothing = smoothing
        self.seed = seed
        self.sees_empty = True
        self.prepares = True
        self.arrays.declare("roots", <void**> &self.root, FIXED, 1, INT32, True, trees)
        self.arrays.declare("importance", <void**> &self.importance, SLOT, 1, FLOAT64, True, 0, 0.0, 0.0)
        self.arrays.scratch(<void**> &self.asked_key, SLOT, 1, INT32)
        self.arrays.scratch(<void**> &self.asked_value, SLOT)
        self.arrays.scratch(<void**> &self.part_of, SLOT)
        self.arrays.scratch(<void**> &self.table, CLASS, MOST_CUTS + 2)
        self.arrays.scratch(<void**> &self.total, CLASS)
        self.arrays.scratch(<void**> &self.present, CLASS)
        self.arrays.scratch(<void**> &self.below, CLASS)
        self.arrays.scratch(<void**> &self.mean, CLASS)
        self.arrays.scratch(<void**> &self.chance, CLASS)

    # ---------------------------------------------------------------- memory

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        self.nodes.arrays.reserve_classes(self.classes + 1)
        return 0

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Room for the row, and for all nodes of a tree when one may begin."""
        cdef Py_ssize_t pairs = self.next_length() // self.fewest() + 1
        self.window.reserve(n + n_new)
        if self.root_growing == 0 and self.nodes.room_left() < pairs:
            with gil:
                self.nodes.reserve_pairs(pairs)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Take a feature out of rows and splits; a level that goes leaves its column present."""
        self.arrays.forget(slot)
        if self.space.kind[slot] & INDICATOR:
            self.window.forget(2 * self.space.column[slot] + 1, slot)
            self.forget_nodes(2 * self.space.column[slot] + 1, slot)
            return
        self.window.forget(2 * slot, 0.0)
        self.forget_nodes(2 * slot, 0.0)
        if not self.space.kind[slot] & COLUMN:
            self.window.forget(2 * slot + 1, 0.0)
            self.forget_nodes(2 * slot + 1, 0.0)

    cdef void forget_nodes(self, int32_t key, double level) noexcept nogil:
        """Splits with this key (and level, unless 0) ask no more: every instance goes the way of absent values."""
        cdef Py_ssize_t i
        for i in range(2, self.nodes.used):
            if self.nodes.key[i] == key and (level == 0.0 or self.nodes.value[i] == level):
                self.nodes.key[i] = 0
                self.nodes.value[i] = 0.0

    # ---------------------------------------------------------------- answering

    cdef void read(self, View* v) noexcept nogil:
        """Lay the instance out by column."""
        self.asked.key = self.asked_key
        self.asked.value = self.asked_value
        read_view(v, self.space, &self.asked)

    cdef void descend(self, int32_t node, int y, double w) noexcept nogil:
        """Probabilities by class at the leaf, smoothed at every node by its parent's; counts the label if w > 0."""
        cdef int c
        cdef double total
        cdef double* counts
        for c in range(self.classes):
            self.chance[c] = 1.0 / self.classes
        while True:
            counts = self.nodes.counts_of(node)
            total = self.smoothing
            for c in range(self.classes):
                total += counts[c]
            for c in range(self.classes):
                self.chance[c] = (counts[c] + self.smoothing * self.chance[c]) / total
            if w > 0.0:
                counts[y] += w
            if self.nodes.left[node] == 0:
                return
            node = self.nodes.left[node] + side(&self.asked, self.nodes.key[node], self.nodes.value[node],
                                                self.nodes.way[node])

    cdef void ask_trees(self, double* out, int y, double w) noexcept nogil:
        """Log of the trees' mean probability by class; counts the label in every tree if w > 0."""
        cdef int c, t, trees = <int> min(self.grown, <int64_t> self.trees)
        memset(out, 0, self.classes * sizeof(double))
        for t in range(trees):
            self.descend(self.root[t], y, w)
            for c in range(self.classes):
                out[c] += self.chance[c]
        for c in range(self.classes):
            out[c] = log(out[c] / trees) if trees else 0.0

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.read(v)
        self.ask_trees(out, 0, 0.0)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.absorb(v, y, w, self.mean)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        self.absorb(v, y, w, scores)
        if probs != NULL:
            self.proba(scores, probs)

    cdef void absorb(self, View* v, int y, double w, double* out) noexcept nogil:
        """Score the instance, count its label in every tree, put it into the window, work on the tree that grows."""
        cdef bint prepared = self.root_growing == 0    # prepare() made room for a tree to begin
        self.read(v)
        self.ask_trees(out, y, w)
        if self.grown and self.classes > 1:
            self.watch(argmax(self.classes, out) != y)
        self.asked.y = y
        self.asked.w = w
        if self.root_growing and self.window.taken - self.window.most >= self.end - self.length_growing:
            self.work(ALL, self.trees)    # its oldest row is about to be overwritten
            self.plant()
        self.window.put(&self.asked)
        self.length = self.next_length()
        self.since += 1
        if prepared and self.since * (self.trees + 1) >= self.length:
            self.begin(self.length, self.trees)
            self.since = 0
        if self.root_growing and self.work(SHARE * self.trees, self.trees):
            self.plant()

    cdef Py_ssize_t next_length(self) noexcept nogil:
        """Rows to learn from after one more instance: the window grows by one up to its bound."""
        return min(self.length + 1, min(self.most, self.window.most - self.window.most // (self.trees + 1)))

    cdef void watch(self, bint wrong) noexcept nogil:
        """Sum up by how much errors exceed the usual (CUSUM): a large sum is a drift, and it began when the sum did."""
        self.judged += 1
        self.excess += wrong - self.usual - SLACK
        self.rising += 1
        if self.excess <= 0.0:
            self.excess = 0.0
            self.rising = 0
        self.usual += max(USUAL, 1.0 / self.judged) * (wrong - self.usual)
        if self.judged > TRUSTED and self.excess > DRIFT + SPREAD * self.usual * (1.0 - self.usual):
            self.length = min(self.length, max(self.rising, FEWEST) - 1)
            self.abandon()
            self.judged = 0
            self.rising = 0
            self.excess = 0.0

    cdef void plant(self) noexcept nogil:
        """The tree is grown: count what came meanwhile, then put it in place of the oldest."""
        cdef int t = <int> (self.grown % self.trees)
        cdef int64_t i
        cdef Row* r
        cdef int32_t node
        for i in range(self.end, self.window.taken):
            r = &self.window.row[i % self.window.most]
            node = self.root_growing
            self.nodes.counts_of(node)[r.y] += r.w
            while self.nodes.left[node]:
                node = self.nodes.left[node] + side(r, self.nodes.key[node], self.nodes.value[node],
                                                    self.nodes.way[node])
                self.nodes.counts_of(node)[r.y] += r.w
        if self.grown >= self.trees:
            self.nodes.release_tree(self.root[t])
        self.root[t] = self.root_growing
        self.root_growing = 0
        self.grown += 1

    # ---------------------------------------------------------------- explaining

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.importance[slot]

    cdef int32_t blamed(self, int32_t key) noexcept nogil:
        """The slot that answers for a split: the instance's level or number of its column, or the absent column."""
        cdef Py_ssize_t i = place(&self.asked, key | 1)
        return <int32_t> self.asked.value[i] if i >= 0 and self.asked.value[i] > 0.0 else key >> 1

    cdef double follow(self, int32_t node, int label) noexcept nogil:
        """Note what each split on the path adds to the label's probability; returns that of the root."""
        cdef int c
        cdef int32_t slot = -1
        cdef double total, before, chance = 1.0 / self.classes, first = 0.0
        cdef double* counts
        while True:
            counts = self.nodes.counts_of(node)
            total = self.smoothing
            for c in range(self.classes):
                total += counts[c]
            before = chance
            chance = (counts[label] + self.smoothing * chance) / total
            if slot < 0:
                first = chance
            else:
                self.part_of[slot] += chance - before
            if self.nodes.left[node] == 0:
                return first
            slot = self.blamed(self.nodes.key[node])
            node = self.nodes.left[node] + side(&self.asked, self.nodes.key[node], self.nodes.value[node],
                                                self.nodes.way[node])

    cdef double share(self, View* v, int label) noexcept nogil:
        """Parts of the label's score by slot, in part_of; slot 0 has what splits that ask no more add. Its score."""
        cdef int t, trees = <int> min(self.grown, <int64_t> self.trees)
        cdef Py_ssize_t i
        cdef double base = 0.0, added = 0.0, scale
        memset(self.part_of, 0, self.space.size * sizeof(double))
        self.read(v)
        self.ask_trees(self.mean, 0, 0.0)
        for t in range(trees):
            base += self.follow(self.root[t], label) / trees
        for i in range(self.space.size):
            added += self.part_of[i] / trees
        # probabilities add up, logarithms do not: every part is stretched by the same factor
        scale = (self.mean[label] - log(base)) / added if fabs(added) > 1e-9 * base else 1.0 / base
        for i in range(self.space.size):
            self.part_of[i] *= scale / trees
        return self.mean[label]

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double rest
        memset(out, 0, v.n * sizeof(double))
        if self.grown == 0:
            return
        rest = self.share(v, label)
        for i in range(1, self.space.size):
            rest -= self.part_of[i]
        for i in range(v.n):
            out[i] = self.part_of[v.slot[i]] if v.slot[i] else rest

    cdef dict absent_contributions(self, View* v, int label):
        cdef Py_ssize_t i
        if self.grown == 0:
            return {}
        self.share(v, label)
        here = {v.slot[i] for i in range(v.n)}
        return {f"{self.space.name_of(i)} (absent)": self.part_of[i]
                for i in range(1, self.space.size) if self.part_of[i] != 0.0 and i not in here}

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        counters = [self.grown, self.length, self.since, self.judged, self.rising]
        return {**Model.dump(self, size), **self.window.dump(), **self.nodes.dump(self.classes),
                **self.dump_growth(),
                "counters": np.array(counters, dtype=np.int64), "errors": np.array([self.usual, self.excess])}

    def fill(self, dict arrays, Py_ssize_t capacity):
        Model.fill(self, arrays, capacity)
        self.window.fill(arrays, capacity, self.classes)
        counters = checked_array(arrays, "counters", "i", (5,), 0, 1 << 53).tolist()
        self.grown, self.length, self.since, self.judged, self.rising = counters
        if self.length > min(self.window.taken, <int64_t> min(self.most, self.window.most)):
            raise ValueError(f"trees of {self.length} rows out of {self.window.taken}")
        self.usual, self.excess = checked_array(arrays, "errors", "f", (2,), 0).tolist()
        self.fill_growth(arrays)
        roots = [*arrays["roots"][:min(self.grown, self.trees)], *([self.root_growing] if self.root_growing else [])]
        self.nodes.fill(arrays, capacity, self.classes, roots)
        self.check_pending()
        self.nodes.reserve_pairs(self.length_growing // self.fewest() + 1)

    def nbytes(self):
        return Model.nbytes(self) + self.window.nbytes() + self.nodes.nbytes()

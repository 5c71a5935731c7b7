"""A regression forest over recent instances: nodes average targets, splits maximise the decrease of their variance.

A node holds the weight and the mean of the targets that came by. To choose a split its targets are counted in units of the
largest deviation from their mean, z = (y - mean) / unit, so that neither the size nor the level of targets costs digits: the
decrease of the squared error is S_l^2 / W_l + S_r^2 / W_r - S^2 / W, with W the weights and S the weighted sums of z.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from varifold._engine.models.regression cimport RegressionModel, TargetStatistics
from varifold._engine.names.reading cimport LARGEST as LARGEST_TARGET
from varifold._engine.view cimport View
from varifold.forest._growing cimport Split
from varifold.forest._window cimport Row
from varifold.forest._window_trees cimport WindowTrees

from varifold._engine.state import checked_array

cdef double TIE = 1e-9       # smaller differences of gains, relative to the node's squared deviations, count as ties
cdef double WORST = 4.0      # typical errors at which a loss reaches its maximum
cdef double LARGEST = 10.0   # cap of an error, in typical errors, when the typical error is averaged
cdef double USUAL = 0.002    # rate of that average


cdef enum:
    WEIGHT = 0    # the numbers of a node or bin are stored in place of a classifier's label weights
    MEAN = 1      # of a node
    SUM = 1       # of a bin


cdef inline void add_target(double* held, double y, double w) noexcept nogil:
    """Add a target to the mean of a node, which rounding must not lead beyond the largest target."""
    held[WEIGHT] += w
    held[MEAN] = min(max(held[MEAN] + (y - held[MEAN]) * (w / held[WEIGHT]), -LARGEST_TARGET), LARGEST_TARGET)


cdef class RegressionTrees(WindowTrees):
    """Average the leaves' mean targets, each smoothed by its parents', over trees whose nodes keep averaging."""

    cdef TargetStatistics target   # statistics of all targets: their mean is the parent of every root
    cdef double typical            # absolute error, averaged as the losses are
    cdef double squares            # squared loss, averaged
    cdef double centre             # scratch: of the node that is split, its targets count as (target - centre) / unit
    cdef double unit
    cdef double mean_square        # scratch: of the targets so counted
    cdef double root_unit          # of the tree that grows: unit at its root,
    cdef double root_squares       # and weighted sum of squares there

    def __cinit__(self):
        self.reserve_class()
        self.add_class()
        self.reserve_class()
        self.add_class()

    # ---------------------------------------------------------------- predicting

    cdef double descend(self, int32_t node, double y, double w) noexcept nogil:
        """Return the prediction of the leaf, smoothed at every node by its parent; add the target y if w > 0."""
        cdef double prediction = self.target.mean
        cdef double* held
        while True:
            held = self.nodes.counts_of(node)
            prediction += (held[MEAN] - prediction) * (held[WEIGHT] / (held[WEIGHT] + self.smoothing))
            if w > 0.0:
                add_target(held, y, w)
            if self.nodes.left[node] == 0:
                return prediction
            node = self.child_of(node, &self.current)

    cdef double predict_and_count(self, double y, double w) noexcept nogil:
        """Return the trees' mean for the instance that was read; add the target y to their nodes if w > 0."""
        cdef int t, recent = self.recent()
        cdef double total = 0.0, deviation
        cdef double[2] mean = [0.0, 0.0]    # of the trees grown since the last drift, and of those on trial
        for t in range(self.predicting()):
            deviation = self.descend(self.root_of(t), y, w) - self.target.mean
            mean[t >= recent] += deviation / (recent if t < recent else self.earlier)
            total += self.weight_of(t) * deviation
        if w > 0.0 and recent and self.earlier:
            self.compare(self.loss_of(y - self.target.mean - mean[0]), self.loss_of(y - self.target.mean - mean[1]))
        return self.target.mean + total

    cdef double predict(self, View* v) noexcept nogil:
        self.read(v)
        return self.predict_and_count(0.0, 0.0)

    # ---------------------------------------------------------------- learning

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        """Predict the instance, average its target in every tree, add it to the window, continue the growing tree."""
        cdef bint prepared = self.root_growing == 0
        cdef double prediction
        self.read(v)
        prediction = self.predict_and_count(y, w)
        if self.predicting():
            self.monitor_error(fabs(y - prediction))
        self.current.target = y
        self.current.w = w
        self.advance(prepared)

    cdef double loss_of(self, double error) noexcept nogil:
        """Return the loss of an error, from 0 to 1."""
        return min(fabs(error) / (WORST * self.typical), 1.0) if self.typical > 0.0 else error != 0.0

    cdef void monitor_error(self, double error) noexcept nogil:
        """Monitor the error in units of the typical error, which is averaged robustly."""
        self.watch(self.loss_of(error))
        if self.judged > 1 and self.typical > 0.0:
            error = min(error, LARGEST * self.typical)
        self.typical += max(USUAL, 1.0 / max(self.judged, 1)) * (error - self.typical)

    cdef double times_variance(self, double factor, double loss, double rate) noexcept nogil:
        self.squares += rate * (loss * loss - self.squares)
        return factor * max(self.squares - self.usual * self.usual, 0.0)

    # ---------------------------------------------------------------- growing

    cdef void add_row(self, double* sums, Row* r) noexcept nogil:
        sums[WEIGHT] += r.w
        sums[SUM] += r.w * ((r.target - self.centre) / self.unit)

    cdef void count_row(self, int32_t node, Row* r) noexcept nogil:
        add_target(self.nodes.counts_of(node), r.target, r.w)

    cdef bint weigh_node(self, int32_t node, int32_t* order, Py_ssize_t n) noexcept nogil:
        """Average the targets of a node's rows and set their unit; return whether they can be split."""
        cdef Py_ssize_t i
        cdef Row* r
        cdef double z, squares = 0.0
        cdef double* held = self.nodes.counts_of(node)
        for i in range(n):
            self.count_row(node, &self.window.row[order[i]])
        self.centre = held[MEAN]
        self.unit = 0.0
        for i in range(n):
            self.unit = max(self.unit, fabs(self.window.row[order[i]].target - self.centre))
        if self.unit <= 0.0 or n < 2 * self.fewest():
            return False
        memset(self.total, 0, self.classes * sizeof(double))
        for i in range(n):
            r = &self.window.row[order[i]]
            self.add_row(self.total, r)
            z = (r.target - self.centre) / self.unit
            squares += r.w * z * z
        self.mean_square = squares / held[WEIGHT]
        if node == self.root_growing:
            self.root_unit = self.unit
            self.root_squares = squares
        return squares > 0.0

    cdef double importance_of(self, double gain) noexcept nogil:
        """Return the share of the squared deviations at the root that the split explains."""
        cdef double ratio = self.unit / self.root_unit
        return gain * ratio * ratio / self.root_squares

    cdef bint judge(self, double* left, double* more, Py_ssize_t rows, Py_ssize_t n, Split* tried,
                    Split* best) noexcept nogil:
        cdef double weight = left[WEIGHT], total = left[SUM], rest, others
        if rows < self.enough or n - rows < self.enough:
            return False
        if more != NULL:
            weight += more[WEIGHT]
            total += more[SUM]
        rest = self.total[WEIGHT] - weight
        others = self.total[SUM] - total
        if weight <= 0.0 or rest <= 0.0:
            return False
        tried.gain = (total * total / weight + others * others / rest
                      - self.total[SUM] * self.total[SUM] / self.total[WEIGHT])
        if tried.gain > best.gain + TIE * self.mean_square * self.total[WEIGHT]:
            best[0] = tried[0]
        return True

    # ---------------------------------------------------------------- explaining

    cdef void follow(self, int32_t node, double weight) noexcept nogil:
        """Record in part_of what each split on the path adds to the prediction of a tree of this weight."""
        cdef int32_t slot = -1
        cdef double before, prediction = self.target.mean
        cdef double* held
        while True:
            held = self.nodes.counts_of(node)
            before = prediction
            prediction += (held[MEAN] - prediction) * (held[WEIGHT] / (held[WEIGHT] + self.smoothing))
            if slot >= 0:
                self.part_of[slot] += weight * (prediction - before)
            if self.nodes.left[node] == 0:
                return
            slot = self.blamed(self.nodes.key[node])
            node = self.child_of(node, &self.current)

    cdef void share(self, View* v) noexcept nogil:
        """Compute contributions by slot in part_of; slot 0 has the rest of the deviation from the targets' mean."""
        cdef int t
        cdef Py_ssize_t i
        memset(self.part_of, 0, self.space.size * sizeof(double))
        self.read(v)
        for t in range(self.predicting()):
            self.follow(self.root_of(t), self.weight_of(t))
        self.part_of[0] = self.predict_and_count(0.0, 0.0) - self.target.mean
        for i in range(1, self.space.size):
            self.part_of[0] -= self.part_of[i]

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        self.share(v)
        for i in range(v.n):
            out[i] = self.part_of[v.slot[i]]

    cdef dict absent_contributions(self, View* v, int label):
        cdef Py_ssize_t i
        self.share(v)
        here = {v.slot[i] for i in range(v.n)}
        return {(i, "absent"): self.part_of[i]
                for i in range(1, self.space.size) if self.part_of[i] != 0.0 and i not in here}

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        scale = [self.typical, self.squares, self.root_unit, self.root_squares]
        return {**self.arrays.dump(size, self.classes), **self.dump_trees(), "scale": np.array(scale)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.arrays.fill(arrays, -1, capacity, self.classes)
        self.fill_trees(arrays, capacity)
        self.typical, self.squares, self.root_unit, self.root_squares = checked_array(
            arrays, "scale", "f", (4,), 0).tolist()
        if (arrays["node.counts"][:, WEIGHT] < 0.0).any():
            raise ValueError("node.counts holds weights below 0")
        if self.root_growing and self.n_pending and self.root_growing != self.pending[0].node and not (
                self.root_unit > 0.0 and self.root_squares > 0.0):
            raise ValueError("the tree that grows has no unit")
        self.grow(capacity)


cdef class WindowForestRegression(RegressionModel):
    """Run the forest as a regression model."""

    cdef readonly RegressionTrees forest

    def __cinit__(self, int trees, Py_ssize_t window, double columns, int cuts, Py_ssize_t min_leaf, double smoothing,
                  uint64_t seed, Py_ssize_t numbers=0):
        self.forest = RegressionTrees(trees, window, columns, cuts, min_leaf, smoothing, seed, numbers, True)
        self.hold("", self.forest)
        self.sees_empty = True

    cdef int attach_target(self, TargetStatistics target) except -1:
        self.forest.target = target
        return RegressionModel.attach_target(self, target)

    cdef double predict(self, View* v) noexcept nogil:
        return self.forest.predict(v)

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        self.forest.learn_target(v, y, w)

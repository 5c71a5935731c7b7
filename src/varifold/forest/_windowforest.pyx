"""A forest over recent labelled instances: nodes count labels, splits minimise Gini impurity."""

from libc.math cimport fabs, log
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax
from varifold.forest._growing cimport Split
from varifold.forest._window cimport Row
from varifold.forest._window_trees cimport WindowTrees

from varifold._engine.state import per_class

cdef double TIE = 1e-9    # smaller differences of gains, relative to the node's weight, count as ties


cdef class WindowForestModel(WindowTrees):
    """Average the smoothed probabilities of trees whose nodes keep counting labels."""

    cdef double* mean                  # scratch [class]
    cdef double* chance                # scratch [class]

    def __cinit__(self):
        self.arrays.scratch(&self.mean, per_class())
        self.arrays.scratch(&self.chance, per_class())

    # ---------------------------------------------------------------- predicting

    cdef void descend(self, int32_t node, int y, double w) noexcept nogil:
        """Compute the probabilities at the leaf, smoothed at every node by its parent's; count the label if w > 0."""
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
            node = self.child_of(node, &self.current)

    cdef void predict_trees(self, double* out, int y, double w) noexcept nogil:
        """Compute the log of the trees' mean probability by class; count the label in every tree if w > 0."""
        cdef int c, t, recent = self.recent(), trees = self.predicting()
        cdef double weight
        cdef double[2] right = [0.0, 0.0]    # probability of y: trees grown since the last drift, and those on trial
        memset(out, 0, self.classes * sizeof(double))
        for t in range(trees):
            self.descend(self.root_of(t), y, w)
            weight = self.weight_of(t)
            for c in range(self.classes):
                out[c] += weight * self.chance[c]
            right[t >= recent] += self.chance[y] / (recent if t < recent else self.earlier)
        for c in range(self.classes):
            out[c] = log(out[c]) if trees else 0.0
        if w > 0.0 and recent and self.earlier:
            self.compare(1.0 - right[0], 1.0 - right[1])

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.read(v)
        self.predict_trees(out, 0, 0.0)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.absorb(v, y, w, self.mean)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        self.absorb(v, y, w, scores)
        if probs != NULL:
            self.proba(scores, probs)

    cdef void absorb(self, View* v, int y, double w, double* out) noexcept nogil:
        """Score the instance, count its label in every tree, add it to the window, continue the growing tree."""
        cdef bint prepared = self.root_growing == 0
        self.read(v)
        self.predict_trees(out, y, w)
        if self.predicting() and self.classes > 1:
            self.watch(argmax(self.classes, out) != y)
        self.current.y = y
        self.current.w = w
        self.advance(prepared)

    cdef double times_variance(self, double factor, double loss, double rate) noexcept nogil:
        """Return the 0-1 loss."""
        return factor * self.usual * (1.0 - self.usual)

    # ---------------------------------------------------------------- growing

    cdef void add_row(self, double* sums, Row* r) noexcept nogil:
        sums[r.y] += r.w

    cdef void count_row(self, int32_t node, Row* r) noexcept nogil:
        self.nodes.counts_of(node)[r.y] += r.w

    cdef bint weigh_node(self, int32_t node, int32_t* order, Py_ssize_t n) noexcept nogil:
        """Count the labels of a node's rows; return whether there is anything to split."""
        cdef Py_ssize_t i
        cdef int c, labels = 0
        cdef double* counts = self.nodes.counts_of(node)
        for i in range(n):
            self.add_row(counts, &self.window.row[order[i]])
        for c in range(self.classes):
            labels += counts[c] > 0.0
        memcpy(self.total, counts, self.classes * sizeof(double))
        return labels > 1 and n >= 2 * self.fewest()

    cdef double importance_of(self, double gain) noexcept nogil:
        return gain / self.weight

    cdef bint judge(self, double* left, double* more, Py_ssize_t rows, Py_ssize_t n, Split* tried,
                    Split* best) noexcept nogil:
        """Keep the split if it decreases Gini impurity most; return whether either side has enough rows."""
        cdef int c
        cdef double a, b, t, squares_left = 0.0, squares_right = 0.0, squares = 0.0
        cdef double weight_left = 0.0, weight_right = 0.0, weight = 0.0
        if rows < self.enough or n - rows < self.enough:
            return False
        for c in range(self.classes):
            t = self.total[c]
            a = left[c] if more == NULL else left[c] + more[c]
            b = t - a
            squares_left += a * a
            squares_right += b * b
            squares += t * t
            weight_left += a
            weight_right += b
            weight += t
        if weight_left <= 0.0 or weight_right <= 0.0:
            return False
        tried.gain = squares_left / weight_left + squares_right / weight_right - squares / weight
        if tried.gain > best.gain + TIE * weight:
            best[0] = tried[0]
        return True

    # ---------------------------------------------------------------- explaining

    cdef double follow(self, int32_t node, int label, double weight) noexcept nogil:
        """Record what each split on the path of a tree of this weight adds to the probability; return the root's."""
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
                self.part_of[slot] += weight * (chance - before)
            if self.nodes.left[node] == 0:
                return first
            slot = self.blamed(self.nodes.key[node])
            node = self.child_of(node, &self.current)

    cdef double share(self, View* v, int label) noexcept nogil:
        """Compute the contributions by slot in part_of (slot 0: disabled splits) and return the label's score."""
        cdef int t
        cdef Py_ssize_t i
        cdef double base = 0.0, added = 0.0, scale
        memset(self.part_of, 0, self.space.size * sizeof(double))
        self.read(v)
        self.predict_trees(self.mean, 0, 0.0)
        for t in range(self.predicting()):
            base += self.weight_of(t) * self.follow(self.root_of(t), label, self.weight_of(t))
        for i in range(self.space.size):
            added += self.part_of[i]
        # probabilities are additive, logarithms are not: rescale all contributions by one factor
        scale = (self.mean[label] - log(base)) / added if fabs(added) > 1e-9 * base else 1.0 / base
        for i in range(self.space.size):
            self.part_of[i] *= scale
        return self.mean[label]

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double rest
        memset(out, 0, v.n * sizeof(double))
        if self.predicting() == 0:
            return
        rest = self.share(v, label)
        for i in range(1, self.space.size):
            rest -= self.part_of[i]
        for i in range(v.n):
            out[i] = self.part_of[v.slot[i]] if v.slot[i] else rest

    cdef dict absent_contributions(self, View* v, int label):
        cdef Py_ssize_t i
        if self.predicting() == 0:
            return {}
        self.share(v, label)
        here = {v.slot[i] for i in range(v.n)}
        return {(i, "absent"): self.part_of[i]
                for i in range(1, self.space.size) if self.part_of[i] != 0.0 and i not in here}

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {**Model.dump(self, size), **self.dump_trees()}

    def fill(self, dict arrays, Py_ssize_t capacity):
        Model.fill(self, arrays, capacity)
        self.fill_trees(arrays, capacity)

"""Nearest neighbours among the last instances, compared on the features that both have.

As long as it is small, a table also stores the instances' values by feature: distances to all of them are then summed
feature by feature, many instances at a time, in the order of an instance's own list.
"""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold._numeric.kernels cimport add_squares, divide_by
from varifold._numeric.largest cimport pick_largest
from varifold._numeric.memory cimport allocate, resize
from varifold.neighbours._rows cimport KeptRow, Rows

from varifold._engine.state import checked_array, per_class, per_slot

cdef enum:
    MOST_EXPLAINED = 512    # features of an instance that are left out in turn: each takes a prediction

cdef double UNLIKE = 2.0    # mean squared difference of two unrelated standardised values
cdef double DOUBT = 2.0     # number of unrelated features added to every comparison
cdef double ABSENT = 1e300  # marks an absent value in `dense`
cdef double ANY = 1e999
cdef double NONE = ANY - ANY    # NaN: marks an absent value in `table`
cdef Py_ssize_t MOST_CELLS = 1 << 18    # maximum size of the table
cdef double LARGEST_SINGLE = 3e38    # bound of values stored in single precision


cdef class NeighboursModel(Model):
    """Ring of instances (slots, scaled values, label); the k nearest vote, shrunk to the class frequencies.

    With `single` the values are rounded to single precision, which halves their size in files.
    """

    def __cinit__(self, int k, Py_ssize_t window, Py_ssize_t widest=512, bint single=False):
        if not 1 <= k <= MOST or window < 1 or widest < 1:
            raise ValueError(f"k={k} is 1 to {MOST}; window={window} and widest={widest} are at least 1")
        self.kept = Rows(window, widest)
        self.row = self.kept.row
        self.total = <double*> allocate(2 * window * sizeof(double))
        if self.total == NULL:
            raise MemoryError
        self.shared = self.total + window
        self.k = k
        self.window = window
        self.single = single
        self.prepares = True
        self.arrays.declare("counts", &self.counts, per_class(low=0))
        self.arrays.scratch(&self.dense, per_slot(first=ABSENT))
        self.arrays.scratch(&self.partial_scores, per_class())
        self.arrays.scratch(&self.partial_slot, per_slot())
        self.arrays.scratch(&self.partial_x, per_slot())
        self.arrays.scratch(&self.marked, per_slot())

    def __dealloc__(self):
        free(self.total)
        free(self.table)

    # ---------------------------------------------------------------- memory

    cdef int grow(self, Py_ssize_t capacity) except -1:
        """Reserve slots; drop a table that would become too large."""
        cdef Py_ssize_t i
        if capacity > MOST_CELLS // self.window:
            free(self.table)
            self.table = NULL
            self.tabled = 0
        elif capacity > self.tabled:
            if resize(<void**> &self.table, capacity * self.window * sizeof(double)) < 0:
                raise MemoryError
            for i in range(self.tabled * self.window, capacity * self.window):
                self.table[i] = NONE
            self.tabled = capacity
        return Model.grow(self, capacity)

    cdef void enter(self, Py_ssize_t place, bint take_out) noexcept nogil:
        """Write an instance of the ring into the table, or remove it."""
        cdef KeptRow* r = &self.row[place]
        cdef Py_ssize_t j
        for j in range(r.n if self.tabled else 0):
            self.table[r.slot[j] * self.window + place] = NONE if take_out else r.x[j]

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        return self.kept.reserve_next(n + n_new)

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Mark the slot, which may be reused for another feature; features are evicted many at a time."""
        self.marked[slot] = 1
        self.any_marked = True

    cdef void forget_marked(self) noexcept nogil:
        """Remove the marked slots from every stored instance; call it before instances are used."""
        cdef Py_ssize_t i, j, n
        cdef KeptRow* r
        if not self.any_marked:
            return
        for i in range(self.window):
            r = &self.row[i]
            n = 0
            for j in range(r.n):
                if not self.marked[r.slot[j]]:
                    r.slot[n], r.x[n] = r.slot[j], r.x[j]
                    n += 1
                elif self.tabled:
                    self.table[r.slot[j] * self.window + i] = NONE
            r.n = n
        memset(self.marked, 0, self.capacity)
        self.any_marked = False

    # ---------------------------------------------------------------- predicting

    cdef double distance(self, KeptRow* r) noexcept nogil:
        """Return the mean squared difference over the shared features, shrunk to that of unrelated ones."""
        cdef Py_ssize_t j
        cdef double d, total = UNLIKE * DOUBT, shared = DOUBT
        for j in range(r.n):
            d = self.dense[r.slot[j]]
            if d < 1e299:
                d -= r.x[j]
                total += d * d
                shared += 1.0
        return total / shared

    cdef void measure(self, View* v, Py_ssize_t held) noexcept nogil:
        """Compute the distances to the stored instances into `total`: by table, or one instance at a time."""
        cdef Py_ssize_t i
        self.forget_marked()
        if self.tabled == 0:
            for i in range(v.n):
                if v.slot[i] != 0:
                    self.dense[v.slot[i]] = v.x[i]
            for i in range(held):
                self.total[i] = self.distance(&self.row[i])
            for i in range(v.n):
                self.dense[v.slot[i]] = ABSENT
            return
        for i in range(held):
            self.total[i] = UNLIKE * DOUBT
            self.shared[i] = DOUBT
        for i in range(v.n):
            if v.slot[i] != 0 and v.x[i] < 1e299:
                add_squares(held, self.total, self.shared, v.x[i], self.table + v.slot[i] * self.window)
        divide_by(held, self.total, self.shared)

    cdef int neighbours_of(self, View* v, Py_ssize_t* place) noexcept nogil:
        """Write the ring positions of the k nearest instances to `place`, nearest first; return their number."""
        cdef double[MOST] near
        cdef Py_ssize_t i, held = self.kept.held()
        cdef int j, found = 0
        cdef double d
        self.measure(v, held)
        for i in range(held):
            d = self.total[i]
            if found == self.k and d >= near[found - 1]:
                continue
            j = found if found < self.k else found - 1
            while j > 0 and near[j - 1] > d:
                near[j] = near[j - 1]
                place[j] = place[j - 1]
                j -= 1
            near[j] = d
            place[j] = i
            if found < self.k:
                found += 1
        return found

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Compute the logarithms of the votes; the class frequencies count as one vote."""
        cdef Py_ssize_t[MOST] place
        cdef int c, j, found = self.neighbours_of(v, place)
        cdef double total = 0.0
        for c in range(self.classes):
            total += self.counts[c]
        for c in range(self.classes):
            out[c] = (self.counts[c] + 1e-9) / (total + 1e-9)
        for j in range(found):
            out[self.row[place[j]].y] += self.row[place[j]].w
        for c in range(self.classes):
            out[c] = log(out[c])

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Compute by how much the score falls without each feature, the largest of a wide instance; the
        intercept gets the rest."""
        cdef View part = v[0]
        cdef int32_t[MOST_EXPLAINED] picked
        cdef Py_ssize_t i, j, n = min(v.n - 1, <Py_ssize_t> MOST_EXPLAINED)
        cdef double whole, total = 0.0
        memset(out, 0, v.n * sizeof(double))
        if v.n == 0:
            return
        self.scores(v, self.partial_scores)
        whole = self.partial_scores[label]
        part.slot = self.partial_slot
        part.x = self.partial_x
        pick_largest(v.x, 1, v.n, n, picked)
        for j in range(n):
            i = picked[j]
            leave_out(v, i, &part)
            self.scores(&part, self.partial_scores)
            out[i] = whole - self.partial_scores[label]
            total += out[i]
        out[0] = whole - total

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        """Replace the oldest instance by this one; call prepare() first."""
        cdef KeptRow* r
        cdef Py_ssize_t i, first = 1 if v.n and v.slot[0] == 0 else 0, place = self.kept.taken % self.window
        self.forget_marked()
        self.counts[y] += w
        self.enter(place, True)
        r = self.kept.add(v.slot + first, v.x + first, v.n - first)
        for i in range(r.n if self.single else 0):
            r.x[i] = <float> min(max(r.x[i], -LARGEST_SINGLE), LARGEST_SINGLE)
        r.y = y
        r.w = w
        self.enter(place, False)

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t i, held = self.kept.held()
        self.forget_marked()
        return {
            **Model.dump(self, size), **self.kept.dump(),
            "y": np.array([self.row[i].y for i in range(held)], dtype=np.int64),
            "w": np.array([self.row[i].w for i in range(held)], dtype=np.float64),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t i
        Model.fill(self, arrays, capacity)
        self.kept.fill(arrays, capacity)
        y = checked_array(arrays, "y", "i", (self.kept.held(),), 0, self.classes - 1)
        w = checked_array(arrays, "w", "f", (self.kept.held(),), 0)
        for i in range(self.kept.held()):
            self.row[i].y = y[i]
            self.row[i].w = w[i]
            self.enter(i, False)

    def nbytes(self):
        return Model.nbytes(self) + self.kept.nbytes() + self.window * (2 + self.tabled) * sizeof(double)

"""Distance to the nearest of the last instances, over the features present."""

from libc.math cimport log2, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.names.table cimport INDICATOR
from varifold._engine.view cimport View
from varifold._numeric.kernels cimport add_squares
from varifold.neighbours._neighbours cimport MOST, NeighboursModel
from varifold.neighbours._rows cimport KeptRow

from varifold._engine.state import fixed, per_slot

cdef enum:
    LEVELS = 128               # classes of the number of compared features (`level_of`); class 0 holds all instances
cdef double UNLIKE = 2.0       # squared difference of two unrelated standardised values
cdef double RARE = 0.1         # features that fewer of the instances have are not compared
cdef double ABSENT = 1e300     # marks an absent value in `dense`
cdef double PRIOR = 5.0        # a class starts as if it had had this many instances like those of all classes
cdef double SLOWEST = 0.001    # rate at which mean and variance follow, at least


cdef inline Py_ssize_t level_of(Py_ssize_t n) noexcept nogil:
    """Return where the statistics of instances with n compared features are: one each up to 8, then four by doubling."""
    return n if n <= 8 else 8 + <Py_ssize_t> (4.0 * log2(n / 8.0))


cdef struct Usual:
    double count
    double mean
    double variance


cdef inline void follow(Usual* usual, double distance) noexcept nogil:
    """Add a distance to mean and variance."""
    cdef double rate, step = distance - usual.mean
    usual.count += 1.0
    rate = max(1.0 / usual.count, SLOWEST)
    usual.mean += rate * step
    usual.variance = (1.0 - rate) * (usual.variance + rate * step * step)


cdef class NeighboursDetectorModel(NeighboursModel):
    """Mean distance of the k nearest, standardised by that of instances with about as many features.

    A feature that only one of two instances has counts as unrelated values. So an instance with many features is
    farther from its neighbours than one with few, which differ in less; that is no evidence.
    """

    cdef double* holders      # scratch [slot] instances of the window that have the feature
    cdef double* any_level    # scratch [slot of a column] instances of the window that have any of its strings
    cdef Usual* usual         # [level] distances learned
    cdef Py_ssize_t compared  # features of the instance at hand that are compared

    def __cinit__(self, int k, Py_ssize_t window):
        self.arrays.declare("usual", <double**> &self.usual, fixed(LEVELS, width=3, low=0))
        self.arrays.scratch(&self.holders, per_slot())
        self.arrays.scratch(&self.any_level, per_slot())

    cdef void enter(self, Py_ssize_t place, bint take_out) noexcept nogil:
        cdef KeptRow* r = &self.row[place]
        cdef Py_ssize_t j
        cdef double change = -1.0 if take_out else 1.0
        for j in range(r.n):
            self.holders[r.slot[j]] += change
            if self.space.kind[r.slot[j]] & INDICATOR:
                self.any_level[self.space.column[r.slot[j]]] += change
        NeighboursModel.enter(self, place, take_out)

    cdef void forget(self, int32_t slot) noexcept nogil:
        if self.space.kind[slot] & INDICATOR:
            self.any_level[self.space.column[slot]] -= self.holders[slot]
        self.holders[slot] = 0.0
        NeighboursModel.forget(self, slot)

    cdef inline bint compares(self, View* v, Py_ssize_t i, Py_ssize_t held) noexcept nogil:
        """Return whether enough instances have the feature; of a string, the column."""
        cdef int32_t slot = v.slot[i]
        if v.is_new[i]:
            return False
        if self.space.kind[slot] & INDICATOR:
            return self.any_level[self.space.column[slot]] > RARE * held
        return self.holders[slot] > RARE * held

    cdef void measure(self, View* v, Py_ssize_t held) noexcept nogil:
        """Compute the mean squared differences to the stored instances into `total`."""
        cdef Py_ssize_t i, j
        cdef KeptRow* r
        cdef double d
        self.compared = 0
        memset(self.total, 0, held * sizeof(double))
        memset(self.shared, 0, held * sizeof(double))
        for i in range(v.n):
            if not self.compares(v, i, held):
                continue
            self.compared += 1
            if self.tabled:
                add_squares(held, self.total, self.shared, v.x[i], self.table + v.slot[i] * self.window)
            else:
                self.dense[v.slot[i]] = v.x[i]
        for i in range(held if self.tabled == 0 else 0):
            r = &self.row[i]
            for j in range(r.n):
                d = self.dense[r.slot[j]]
                if d < 1e299:
                    d -= r.x[j]
                    self.total[i] += d * d
                    self.shared[i] += 1.0
        for i in range(v.n if self.tabled == 0 else 0):
            self.dense[v.slot[i]] = ABSENT
        for i in range(held if self.compared else 0):
            self.total[i] = (self.total[i] + (self.compared - self.shared[i]) * UNLIKE) / self.compared

    cdef double distance_of(self, View* v) noexcept nogil:
        """Return the mean distance of the k nearest, 0 if nothing is compared."""
        cdef Py_ssize_t[MOST] place
        cdef int j, found = self.neighbours_of(v, place)
        cdef double total = 0.0
        for j in range(found if self.compared else 0):
            total += self.total[place[j]]
        return total / found if found else 0.0

    cdef double expected(self, double* deviation) noexcept nogil:
        """Return the mean distance of instances with as many compared features; write the deviation."""
        cdef Usual* one = &self.usual[level_of(self.compared)]
        cdef Usual* all = &self.usual[0]
        cdef double share = one.count / (one.count + PRIOR)
        deviation[0] = sqrt(all.variance + share * (one.variance - all.variance) + 1.0 / (all.count + 1.0))
        return all.mean + share * (one.mean - all.mean)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef double mean, deviation, distance = self.distance_of(v)
        out[0] = 0.0
        if self.compared:
            mean = self.expected(&deviation)
            out[0] = (distance - mean) / deviation

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef double score
        self.learn_scored(v, y, w, &score, NULL)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """Score the instance, then add its distance and keep it."""
        cdef double mean, deviation, distance = self.distance_of(v)
        scores[0] = 0.0
        if self.compared:
            mean = self.expected(&deviation)
            scores[0] = (distance - mean) / deviation
            follow(&self.usual[0], distance)
            follow(&self.usual[level_of(self.compared)], distance)
        NeighboursModel.learn(self, v, y, w)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Split the mean distance by feature, and what is usual evenly."""
        cdef Py_ssize_t[MOST] place
        cdef int j, found = self.neighbours_of(v, place)
        cdef Py_ssize_t i, a, held = self.kept.held()
        cdef KeptRow* r
        cdef double d, mean, deviation
        memset(out, 0, v.n * sizeof(double))
        if self.compared == 0:
            return
        mean = self.expected(&deviation)
        for j in range(found):
            r = &self.row[place[j]]
            a = 0
            for i in range(v.n):
                if not self.compares(v, i, held):
                    continue
                while a < r.n and r.slot[a] < v.slot[i]:
                    a += 1
                d = UNLIKE
                if a < r.n and r.slot[a] == v.slot[i]:
                    d = (v.x[i] - r.x[a]) * (v.x[i] - r.x[a])
                out[i] += d / self.compared / found
        for i in range(v.n):
            if self.compares(v, i, held):
                out[i] = (out[i] - mean / self.compared) / deviation

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.holders[slot]

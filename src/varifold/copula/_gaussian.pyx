"""A Gaussian a class, learned from instances that lack features.

The score of a class is its log share and the log density of the values present, whose covariance is the part of the
class's that belongs to them. A class's covariance is drawn to that of all by 15 instances. Learning is a step of online
expectation maximisation: the absent values are replaced by their expectation given those present, their conditional
covariance is added, and class and common covariance move towards the outcome at the rate (n + 3)^-0.7.
"""

import numpy as np

from libc.math cimport log, pow, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from varifold._engine.model cimport Model
from varifold._engine.names cimport INDICATOR
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

cdef double DRAWN = 15.0      # instances by which a class's covariance is drawn to the common one
cdef double RATE = 0.7
cdef double DELAY = 3.0
cdef double RIDGE = 0.05      # added to variances
cdef double MEMORY = 300.0    # values that a mean remembers
cdef double LARGEST = 10.0     # size beyond which a scaled value counts no more


cdef inline double pace(double n, double w) noexcept nogil:
    """The step that an instance of weight w makes after n."""
    return 1.0 - pow(1.0 - pow(n + DELAY, -RATE), w)


cdef class GaussianModel(Model):
    """Numbers in the first `most` slots, indicators and the intercept left out."""

    def __cinit__(self, Py_ssize_t most=65):
        self.most = most

    def __dealloc__(self):
        self.release()

    cdef void release(self) noexcept:
        free(self.counts)
        free(self.seen)
        free(self.mean)
        free(self.weight)
        free(self.cov)
        free(self.factor)
        free(self.value)
        free(self.far)
        free(self.who)

    # ---------------------------------------------------------------- room

    cdef int fit(self, Py_ssize_t room, int held) except -1:
        """Room for slots and classes, what is held laid out anew."""
        cdef double* counts = <double*> calloc(held, sizeof(double))
        cdef double* seen = <double*> calloc(room, sizeof(double))
        cdef double* mean = <double*> calloc(held * room, sizeof(double))
        cdef double* weight = <double*> calloc(held * room, sizeof(double))
        cdef double* cov = <double*> calloc((held + 1) * room * room, sizeof(double))
        cdef double* factor = <double*> calloc(room * room, sizeof(double))
        cdef double* value = <double*> calloc(room, sizeof(double))
        cdef double* far = <double*> calloc(room, sizeof(double))
        cdef int32_t* who = <int32_t*> calloc(room, sizeof(int32_t))
        cdef Py_ssize_t i, was = self.room
        cdef int c
        if (counts == NULL or seen == NULL or mean == NULL or weight == NULL or cov == NULL or factor == NULL
                or value == NULL or far == NULL or who == NULL):
            raise MemoryError
        if was:
            memcpy(counts, self.counts, self.held * sizeof(double))
            memcpy(seen, self.seen, was * sizeof(double))
        for c in range(held + 1):
            for i in range(room):
                if c <= self.held and i < was:
                    memcpy(cov + (c * room + i) * room, self.cov + (c * was + i) * was, was * sizeof(double))
                else:
                    cov[(c * room + i) * room + i] = 1.0
            if c < self.held and was:
                memcpy(mean + c * room, self.mean + c * was, was * sizeof(double))
                memcpy(weight + c * room, self.weight + c * was, was * sizeof(double))
        self.release()
        self.counts = counts
        self.seen = seen
        self.mean = mean
        self.weight = weight
        self.cov = cov
        self.factor = factor
        self.value = value
        self.far = far
        self.who = who
        self.room = room
        self.held = held
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if min(capacity, self.most) > self.room:
            self.fit(min(capacity, self.most), max(self.held, 2))
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        if self.classes + 1 > self.held:
            self.fit(max(self.room, 1), 2 * max(self.held, 1))
        Model.add_class(self)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t i, room = self.room
        cdef int c
        if slot >= room:
            return
        self.seen[slot] = 0.0
        for c in range(self.held + 1):
            for i in range(room):
                self.cov[(c * room + slot) * room + i] = 0.0
                self.cov[(c * room + i) * room + slot] = 0.0
            self.cov[(c * room + slot) * room + slot] = 1.0
            if c < self.held:
                self.mean[c * room + slot] = 0.0
                self.weight[c * room + slot] = 0.0

    # ---------------------------------------------------------------- asking

    cdef Py_ssize_t gather(self, View* v) noexcept nogil:
        """Lay out the values present of features met twice; how many."""
        cdef Py_ssize_t i, n = 0
        cdef int32_t s
        for i in range(v.n):
            s = v.slot[i]
            if s == 0 or s >= self.room or self.seen[s] < 2.0 or self.space.kind[s] & INDICATOR:
                continue
            self.who[n] = s
            self.value[n] = min(max(v.x[i], -LARGEST), LARGEST)
            n += 1
        return n

    cdef inline double spread(self, int c, int32_t a, int32_t b) noexcept nogil:
        """Covariance of two features in a class, drawn to that of all."""
        cdef Py_ssize_t at = a * self.room + b, block = self.room * self.room
        cdef double own = self.counts[c] / (self.counts[c] + DRAWN)
        return own * self.cov[(c + 1) * block + at] + (1.0 - own) * self.cov[at]

    cdef void factorise(self, int c, Py_ssize_t present, Py_ssize_t all) noexcept nogil:
        """Rows of the Cholesky factor of the present, and what it makes of the absent against them."""
        cdef Py_ssize_t i, j, h
        cdef double s
        cdef double* row
        cdef double* other
        for i in range(all):
            row = self.factor + i * self.room
            for j in range(min(i + 1, present)):
                other = self.factor + j * self.room
                s = self.spread(c, self.who[i], self.who[j])
                for h in range(j):
                    s -= row[h] * other[h]
                row[j] = sqrt(max(s, 0.0) + RIDGE) if i == j else s / other[j]

    cdef void centre(self, int c, Py_ssize_t present) noexcept nogil:
        """Distances from the class's means, made independent of each other by the factor."""
        cdef Py_ssize_t i, h
        cdef double s
        cdef double* row
        for i in range(present):
            row = self.factor + i * self.room
            s = self.value[i] - self.mean[c * self.room + self.who[i]]
            for h in range(i):
                s -= row[h] * self.far[h]
            self.far[i] = s / row[i]

    cdef inline double says(self, int c, Py_ssize_t i) noexcept nogil:
        """Log density of the i-th value present, given those before it."""
        return -0.5 * self.far[i] * self.far[i] - log(self.factor[i * self.room + i])

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i, present = self.gather(v)
        cdef int c
        for c in range(self.classes):
            self.factorise(c, present, present)
            self.centre(c, present)
            out[c] = log(self.counts[c] + 0.5)
            for i in range(present):
                out[c] += self.says(c, i)

    # ---------------------------------------------------------------- learning

    cdef Py_ssize_t absent(self, Py_ssize_t present) noexcept nogil:
        """Lay out the features that are not there after those that are; how many there are in all."""
        cdef Py_ssize_t i = 0, n = present
        cdef int32_t s
        for s in range(1, <int32_t> self.room):
            if i < present and self.who[i] == s:
                i += 1
            elif self.seen[s] >= 2.0 and not self.space.kind[s] & INDICATOR:
                self.who[n] = s
                n += 1
        return n

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i, h, present, all, at
        cdef double s
        for i in range(v.n):
            if v.slot[i] < self.room:
                self.seen[v.slot[i]] += 1.0
        present = self.gather(v)
        all = self.absent(present)
        self.factorise(y, present, all)
        self.centre(y, present)
        for i in range(present, all):
            s = 0.0
            for h in range(present):
                s += self.factor[i * self.room + h] * self.far[h]
            self.far[i] = s
        for i in range(present):
            self.far[i] = self.value[i] - self.mean[y * self.room + self.who[i]]
        self.move(y, present, all, pace(self.counts[y], w), pace(self.total, w))
        for i in range(present):
            at = y * self.room + self.who[i]
            self.weight[at] = min(self.weight[at], MEMORY) + w
            self.mean[at] += w * self.far[i] / (self.weight[at] + 1.0)
        self.counts[y] += w
        self.total += w

    cdef void move(self, int c, Py_ssize_t present, Py_ssize_t all, double own, double common) noexcept nogil:
        """Move the class's covariance and the common one towards the products of the distances.

        Of two absent features their conditional covariance joins in: what the present leave unexplained.
        """
        cdef Py_ssize_t i, j, h, at, back, block = (c + 1) * self.room * self.room
        cdef double goal
        cdef double* row
        cdef double* other
        for i in range(all):
            row = self.factor + i * self.room
            for j in range(i + 1):
                other = self.factor + j * self.room
                goal = self.far[i] * self.far[j]
                if j >= present:
                    goal += self.spread(c, self.who[i], self.who[j])
                    for h in range(present):
                        goal -= row[h] * other[h]
                at = self.who[i] * self.room + self.who[j]
                back = self.who[j] * self.room + self.who[i]
                self.cov[block + at] += own * (goal - self.cov[block + at])
                self.cov[at] += common * (goal - self.cov[at])
                self.cov[block + back] = self.cov[block + at]
                self.cov[back] = self.cov[at]

    # ---------------------------------------------------------------- explaining and keeping

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """How far apart the classes' means are."""
        cdef int c
        cdef double low = 0.0, high = 0.0, m
        if slot >= self.room:
            return 0.0
        for c in range(self.classes):
            m = self.mean[c * self.room + slot]
            low = m if c == 0 else min(low, m)
            high = m if c == 0 else max(high, m)
        return high - low

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Of each value the log density given those before it; the class's log share under the intercept."""
        cdef Py_ssize_t i, k = 0, present = self.gather(v)
        memset(out, 0, v.n * sizeof(double))
        self.factorise(label, present, present)
        self.centre(label, present)
        for i in range(v.n):
            if k < present and v.slot[i] == self.who[k]:
                out[i] = self.says(label, k)
                k += 1
        if v.n:
            out[0] += log(self.counts[label] + 0.5)

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t i, j, kept = min(size, self.room)
        cdef int c
        cdef double[:, :, ::1] cov = np.zeros((self.classes + 1, kept, kept))
        cdef double[:, :, ::1] means = np.zeros((self.classes, kept, 2))
        for c in range(self.classes + 1):
            for i in range(kept):
                for j in range(kept):
                    cov[c, i, j] = self.cov[(c * self.room + i) * self.room + j]
                if c < self.classes:
                    means[c, i, 0] = self.mean[c * self.room + i]
                    means[c, i, 1] = self.weight[c * self.room + i]
        return {
            **Model.dump(self, size),
            "cov": np.asarray(cov),
            "means": np.asarray(means),
            "seen": np.array([self.seen[i] for i in range(kept)], dtype=np.float64),
            "counts": np.array([self.counts[c] for c in range(self.classes)], dtype=np.float64),
            "total": np.array([self.total]),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t i, j, kept
        cdef int c
        cdef const double[:, :, ::1] cov
        Model.fill(self, arrays, capacity)
        seen = checked_array(arrays, "seen", "f", (None,), 0)
        kept = len(seen)
        if kept > min(capacity, self.most):
            raise ValueError("there are covariances of more features than are looked at")
        cov = np.ascontiguousarray(checked_array(arrays, "cov", "f", (self.classes + 1, kept, kept)))
        means = checked_array(arrays, "means", "f", (self.classes, kept, 2))
        checked_array(arrays, "counts", "f", (self.classes,), 0)
        self.total = checked_array(arrays, "total", "f", (1,), 0)[0]
        self.fit(max(min(capacity, self.most), 1), max(self.classes, 2))
        self.capacity = capacity
        for c in range(self.classes + 1):
            for i in range(kept):
                for j in range(kept):
                    self.cov[(c * self.room + i) * self.room + j] = cov[c, i, j]
                if c < self.classes:
                    self.mean[c * self.room + i], self.weight[c * self.room + i] = means[c, i]
        for i in range(kept):
            self.seen[i] = seen[i]
        for c in range(self.classes):
            self.counts[c] = arrays["counts"][c]

    def notes(self):
        if self.space.size > self.most:
            return [f"features beyond the first {self.most - 1} are not looked at"]
        return []

    def nbytes(self):
        return (self.held + 2) * self.room * self.room * sizeof(double)

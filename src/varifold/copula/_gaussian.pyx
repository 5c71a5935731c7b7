"""One Gaussian per class, learned from instances with absent features.

The score of a class is its log share plus the log density of the values present, under the part of its covariance that
belongs to them. The covariance of a class is shrunk towards that of all classes, which counts as PRIOR instances.
Learning is a step of online expectation maximisation: the absent values are replaced by their expectation given those
present, their conditional covariance is added, and the class's and the common covariance move towards the result at the
rate (n + 3)^-0.7.
"""

import numpy as np

from libc.math cimport log, pow, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR, NUMERIC
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax, softmax
from varifold._numeric.kernels cimport add_multiple, blend, divide_all, subtract_columns, subtract_multiple
from varifold._numeric.memory cimport allocate

from varifold._engine.state import checked_array, fixed, per_class, per_slot

# Arrays that grow with slots and classes at once.
cdef struct Matrices:
    Py_ssize_t stride    # allocated slots
    int classes          # allocated classes
    double* mean         # [class][slot]
    double* weight       # [class][slot]: weight behind the mean
    double* cov          # [1 + class][slot][slot]: of all classes, then of each
    double* factor       # scratch [slot][slot], by column

cdef double PRIOR = 15.0      # weight of the common covariance in that of a class, in instances
cdef double RATE = 0.7
cdef double DELAY = 3.0
cdef double RIDGE = 0.05      # ridge: added to variances
cdef double MEMORY = 300.0    # memory of a mean, in values
cdef double LARGEST = 10.0    # clip scaled values to this magnitude


cdef void release(Matrices* m) noexcept:
    """Free the matrices."""
    free(m.mean)
    free(m.weight)
    free(m.cov)
    free(m.factor)


cdef inline double pace(double n, double w) noexcept nogil:
    """Return the step size of an instance of weight w after n instances."""
    return 1.0 - pow(1.0 - pow(n + DELAY, -RATE), w)


cdef class GaussianModel(Model):
    """Model the numbers in the first `most` slots; indicators and the intercept are left out."""

    cdef Py_ssize_t most           # slots that are looked at
    cdef Matrices matrices         # owns the arrays below
    cdef Py_ssize_t stride         # allocated slots: entries per row of a matrix
    cdef double* mean
    cdef double* weight
    cdef double* cov
    cdef double* factor
    cdef double* total             # [1]: weight learned
    cdef double* counts            # [class]: weight learned
    cdef double* members           # [class]: the same, with instances that have no label and seem to belong to the class
    cdef double* probability       # scratch [class]
    cdef double* seen              # [slot]: instances
    cdef double* value             # scratch [slot]: values present
    cdef double* distance          # scratch [slot]
    cdef double* goal              # scratch [slot]: what covariances move towards
    cdef int32_t* order            # scratch [slot]: slots present, then slots absent

    def __cinit__(self, Py_ssize_t most=65):
        self.most = most
        self.arrays.declare("total", &self.total, fixed(1, low=0))
        self.arrays.declare("counts", &self.counts, per_class(low=0))
        self.arrays.declare("members", &self.members, per_class(low=0))
        self.arrays.scratch(&self.probability, per_class())
        self.learns_unlabelled = True
        self.arrays.declare("seen", &self.seen, per_slot(most=most, low=0))
        self.arrays.scratch(&self.value, per_slot(most=most))
        self.arrays.scratch(&self.distance, per_slot(most=most))
        self.arrays.scratch(&self.goal, per_slot(most=most))
        self.arrays.scratch(&self.order, per_slot(most=most))

    def __dealloc__(self):
        release(&self.matrices)

    # ---------------------------------------------------------------- memory

    cdef int fit(self, Py_ssize_t stride, int classes) except -1:
        """Reserve memory for slots and classes in the matrices: allocate, copy, free the old ones."""
        cdef Matrices new
        cdef Matrices* old = &self.matrices
        cdef Py_ssize_t i, was = old.stride
        cdef int c
        new.stride = stride
        new.classes = classes
        new.mean = <double*> allocate(classes * stride * sizeof(double))
        new.weight = <double*> allocate(classes * stride * sizeof(double))
        new.cov = <double*> allocate((classes + 1) * stride * stride * sizeof(double))
        new.factor = <double*> allocate(stride * stride * sizeof(double))
        if new.mean == NULL or new.weight == NULL or new.cov == NULL or new.factor == NULL:
            release(&new)
            raise MemoryError
        for c in range(classes + 1):
            for i in range(stride):
                if c <= old.classes and i < was:
                    memcpy(new.cov + (c * stride + i) * stride, old.cov + (c * was + i) * was, was * sizeof(double))
                else:
                    new.cov[(c * stride + i) * stride + i] = 1.0
            if c < old.classes and was:
                memcpy(new.mean + c * stride, old.mean + c * was, was * sizeof(double))
                memcpy(new.weight + c * stride, old.weight + c * was, was * sizeof(double))
        release(old)
        self.matrices = new
        self.stride = stride
        self.mean = new.mean
        self.weight = new.weight
        self.cov = new.cov
        self.factor = new.factor
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if min(capacity, self.most) > self.stride:
            self.fit(min(capacity, self.most), max(self.matrices.classes, 2))
        return Model.grow(self, capacity)    # last: a model whose capacity suffices does not grow again

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        if self.classes + 1 > self.matrices.classes:
            self.fit(max(self.stride, 1), 2 * max(self.matrices.classes, 1))
        return 0

    cdef int add_class(self) except -1:
        self.reserve_class()
        return Model.add_class(self)

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t i, stride = self.stride
        cdef int c
        Model.forget(self, slot)
        if slot >= stride:
            return
        for c in range(self.matrices.classes + 1):
            for i in range(stride):
                self.cov[(c * stride + slot) * stride + i] = 0.0
                self.cov[(c * stride + i) * stride + slot] = 0.0
            self.cov[(c * stride + slot) * stride + slot] = 1.0
            if c < self.matrices.classes:
                self.mean[c * stride + slot] = 0.0
                self.weight[c * stride + slot] = 0.0

    # ---------------------------------------------------------------- predicting

    cdef Py_ssize_t gather(self, View* v) noexcept nogil:
        """List the present values of features seen at least twice; return their number."""
        cdef Py_ssize_t i, n = 0
        cdef int32_t s
        for i in range(v.n):
            s = v.slot[i]
            if s == 0 or s >= self.stride or self.seen[s] < 2.0 or self.space.kind[s] & INDICATOR:
                continue
            self.order[n] = s
            self.value[n] = min(max(v.x[i], -LARGEST), LARGEST)
            n += 1
        return n

    cdef inline double own_part(self, int c) noexcept nogil:
        """Return the weight of a class's own covariance; the rest is that of all classes."""
        return self.counts[c] / (self.counts[c] + PRIOR)

    cdef void gather_covariances(self, int c, Py_ssize_t j, Py_ssize_t present, Py_ssize_t all,
                                 double* out) noexcept nogil:
        """Compute covariances of the j-th listed feature with those from it on, shrunk towards those of all classes."""
        cdef double own = self.own_part(c)
        cdef double* common = self.cov + self.order[j] * self.stride
        cdef double* line = common + (c + 1) * self.stride * self.stride
        cdef Py_ssize_t i, first = self.order[j]
        if self.order[all - 1] - first == all - 1 - j and present == all:    # side by side
            blend(all - j, out + j, own, line + first, common + first)
            return
        for i in range(j, all):
            out[i] = own * line[self.order[i]] + (1.0 - own) * common[self.order[i]]

    cdef void factorise(self, int c, Py_ssize_t present, Py_ssize_t all) noexcept nogil:
        """Compute the Cholesky factor of the present features' covariance, with rows for the absent ones against them.

        It is kept by column: that of the j-th feature starts at `factor` + j * stride.
        """
        cdef Py_ssize_t j
        cdef double* column
        for j in range(present):
            column = self.factor + j * self.stride
            self.gather_covariances(c, j, present, all, column)
            subtract_columns(all - j, column + j, j, self.factor + j, self.stride, self.factor + j, self.stride)
            column[j] = sqrt(max(column[j], 0.0) + RIDGE)
            divide_all(all - j - 1, column + j + 1, column[j])

    cdef void centre(self, int c, Py_ssize_t present) noexcept nogil:
        """Compute whitened distances from the class's means: the solution of factor * distance = value - mean."""
        cdef Py_ssize_t i
        cdef double* column
        for i in range(present):
            self.distance[i] = self.value[i] - self.mean[c * self.stride + self.order[i]]
        for i in range(present):
            column = self.factor + i * self.stride
            self.distance[i] /= column[i]
            subtract_multiple(present - i - 1, self.distance + i + 1, self.distance[i], column + i + 1)

    cdef inline double log_density(self, int c, Py_ssize_t i) noexcept nogil:
        """Return the log density of the i-th present value given those before it."""
        return -0.5 * self.distance[i] * self.distance[i] - log(self.factor[i * self.stride + i])

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i, present = self.gather(v)
        cdef int c
        for c in range(self.classes):
            self.factorise(c, present, present)
            self.centre(c, present)
            out[c] = log(self.counts[c] + 0.5)
            for i in range(present):
                out[c] += self.log_density(c, i)

    # ---------------------------------------------------------------- learning

    cdef Py_ssize_t absent(self, Py_ssize_t present) noexcept nogil:
        """Append the absent features to those present; return the total number."""
        cdef Py_ssize_t i = 0, n = present
        cdef int32_t s
        for s in range(1, <int32_t> self.stride):
            if i < present and self.order[i] == s:
                i += 1
            elif self.seen[s] >= 2.0 and not self.space.kind[s] & INDICATOR:
                self.order[n] = s
                n += 1
        return n

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.absorb(v, y, w, w, w)
        self.counts[y] += w

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Do a step of online classification EM: the most probable class learns, weighted by its probability.

        Labels decide where the means are: all instances without one together weigh about as much there as those with
        one, while both covariances learn them in full. The shares of the classes are those of the labels.
        """
        cdef int c, best
        cdef double labelled = 0.0, own
        for c in range(self.classes):
            labelled += self.counts[c]
        if self.classes < 2 or labelled <= 0.0:
            return
        self.scores(v, self.probability)
        softmax(self.classes, self.probability, self.probability)
        best = argmax(self.classes, self.probability)
        own = w * self.probability[best]
        self.absorb(v, best, own, w, own * min(labelled / (self.total[0] - labelled + 1.0), 1.0))

    cdef void absorb(self, View* v, int y, double w, double w_common, double w_mean) noexcept nogil:
        """Learn the instance as class y, with a weight in its covariance, in the common one and in its mean."""
        cdef Py_ssize_t i, present, all, at
        for i in range(v.n):
            if v.slot[i] < self.stride:
                self.seen[v.slot[i]] += 1.0
        present = self.gather(v)
        all = self.absent(present)
        self.factorise(y, present, all)
        self.centre(y, present)
        memset(self.distance + present, 0, (all - present) * sizeof(double))
        for i in range(present):
            add_multiple(all - present, self.distance + present, self.distance[i],
                         self.factor + i * self.stride + present)
        for i in range(present):
            self.distance[i] = self.value[i] - self.mean[y * self.stride + self.order[i]]
        self.move(y, present, all, pace(self.members[y], w), pace(self.total[0], w_common))
        for i in range(present):
            at = y * self.stride + self.order[i]
            self.weight[at] = min(self.weight[at], MEMORY) + w_mean
            self.mean[at] += w_mean * self.distance[i] / (self.weight[at] + 1.0)
        self.members[y] += w
        self.total[0] += w_common

    cdef void move(self, int c, Py_ssize_t present, Py_ssize_t all, double own, double common) noexcept nogil:
        """Move the class's covariance and the common one towards the products of the distances.

        For two absent features their conditional covariance given the present ones is added.
        """
        cdef Py_ssize_t i, j, at, back, block = (c + 1) * self.stride * self.stride
        cdef double* goal = self.goal
        for j in range(all):
            if j >= present:
                self.gather_covariances(c, j, present, all, goal)
                for i in range(j, all):
                    goal[i] = self.distance[i] * self.distance[j] + goal[i]
                subtract_columns(all - j, goal + j, present, self.factor + j, self.stride, self.factor + j, self.stride)
            else:
                for i in range(j, all):
                    goal[i] = self.distance[i] * self.distance[j]
            for i in range(j, all):
                at = self.order[i] * self.stride + self.order[j]
                back = self.order[j] * self.stride + self.order[i]
                self.cov[block + back] += own * (goal[i] - self.cov[block + back])
                self.cov[back] += common * (goal[i] - self.cov[back])
                self.cov[block + at] = self.cov[block + back]
                self.cov[at] = self.cov[back]

    # ---------------------------------------------------------------- explaining

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return the range of the classes' means."""
        cdef int c
        cdef double low = 0.0, high = 0.0, m
        if slot >= self.stride:
            return 0.0
        for c in range(self.classes):
            m = self.mean[c * self.stride + slot]
            low = m if c == 0 else min(low, m)
            high = m if c == 0 else max(high, m)
        return high - low

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Attribute the log density of each value given those before it; the class's log share to the intercept."""
        cdef Py_ssize_t i, k = 0, present = self.gather(v)
        memset(out, 0, v.n * sizeof(double))
        self.factorise(label, present, present)
        self.centre(label, present)
        for i in range(v.n):
            if k < present and v.slot[i] == self.order[k]:
                out[i] = self.log_density(label, k)
                k += 1
        if v.n:
            out[0] += log(self.counts[label] + 0.5)

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t i, j, kept = min(size, self.stride)
        cdef int c
        cdef double[:, :, ::1] cov = np.zeros((self.classes + 1, kept, kept))
        cdef double[:, :, ::1] means = np.zeros((self.classes, kept, 2))
        for c in range(self.classes + 1):
            for i in range(kept):
                for j in range(kept):
                    cov[c, i, j] = self.cov[(c * self.stride + i) * self.stride + j]
                if c < self.classes:
                    means[c, i, 0] = self.mean[c * self.stride + i]
                    means[c, i, 1] = self.weight[c * self.stride + i]
        return {**Model.dump(self, size), "cov": np.asarray(cov), "means": np.asarray(means)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t i, j, kept = len(arrays["seen"])
        cdef int c
        cdef const double[:, :, ::1] cov
        cdef const double[:, :, ::1] means
        Model.fill(self, arrays, capacity)
        if kept > min(capacity, self.most):
            raise ValueError(f"seen holds {kept} numbers; at most {min(capacity, self.most)} features are looked at")
        cov = checked_array(arrays, "cov", "f", (self.classes + 1, kept, kept))
        means = checked_array(arrays, "means", "f", (self.classes, kept, 2))
        self.fit(max(min(capacity, self.most), 1), max(self.classes, 2))
        for c in range(self.classes + 1):
            for i in range(kept):
                for j in range(kept):
                    self.cov[(c * self.stride + i) * self.stride + j] = cov[c, i, j]
                if c < self.classes:
                    self.mean[c * self.stride + i] = means[c, i, 0]
                    self.weight[c * self.stride + i] = means[c, i, 1]

    def notes(self):
        cdef Py_ssize_t slot
        if any(self.space.kind[slot] & NUMERIC for slot in range(self.most, self.space.size)):
            return [f"features beyond the first {self.most - 1} are not looked at"]
        return []

    def nbytes(self):
        cells = (self.matrices.classes + 2) * self.stride * self.stride + 2 * self.matrices.classes * self.stride
        return self.arrays.nbytes() + cells * sizeof(double)

"""Nearest neighbours for regression: the mean target of the most similar recent instances.

The distance is that of `Neighbours`. The prediction is the weighted mean of the k targets and, with weight 1, of the
mean of all targets.
"""

from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.regression cimport RegressionModel
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View
from varifold.neighbours._neighbours cimport MOST, NeighboursModel

from varifold._engine.state import fixed, per_slot


cdef class NeighboursRegression(RegressionModel):
    """Ring of instances with their targets."""

    cdef NeighboursModel ring      # the latest instances, all of one class
    cdef double* targets           # [window]: their targets, by position in the ring
    cdef int32_t* partial_slot     # scratch: slots of the instance without one feature
    cdef double* partial_x         # scratch: their values

    def __cinit__(self, int k, Py_ssize_t window, Py_ssize_t widest=512):
        self.ring = NeighboursModel(k, window, widest)
        self.prepares = True
        self.arrays.declare("targets", &self.targets, fixed(window, low=-1e150, high=1e150))
        self.arrays.scratch(&self.partial_slot, per_slot())
        self.arrays.scratch(&self.partial_x, per_slot())
        self.ring.reserve_class()
        self.ring.add_class()

    cdef int attach(self, Space space) except -1:
        self.ring.attach(space)
        return RegressionModel.attach(self, space)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if self.ring.capacity < capacity:
            self.ring.grow(capacity)
        return RegressionModel.grow(self, capacity)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        return self.ring.prepare(slots, n, n_new, 0)

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.ring.forget(slot)

    cdef double predict(self, View* v) noexcept nogil:
        cdef Py_ssize_t[MOST] place
        cdef int j, found = self.ring.neighbours_of(v, place)
        cdef double total = 1.0, off = 0.0, w
        for j in range(found):
            w = self.ring.row[place[j]].w
            total += w
            off += w * (self.targets[place[j]] - self.target.mean)
        return self.target.mean + off / total

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        self.targets[self.ring.taken % self.ring.window] = y
        self.ring.learn(v, 0, w)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Compute by how much the prediction falls without each feature; the intercept gets the rest."""
        cdef View part = v[0]
        cdef Py_ssize_t i
        cdef double whole = self.predict(v), total = 0.0
        memset(out, 0, v.n * sizeof(double))
        if v.n == 0:
            return
        part.slot = self.partial_slot
        part.x = self.partial_x
        part.n = v.n - 1
        for i in range(1, v.n):
            memcpy(part.slot, v.slot, i * sizeof(int32_t))
            memcpy(part.slot + i, v.slot + i + 1, (v.n - 1 - i) * sizeof(int32_t))
            memcpy(part.x, v.x, i * sizeof(double))
            memcpy(part.x + i, v.x + i + 1, (v.n - 1 - i) * sizeof(double))
            out[i] = whole - self.predict(&part)
            total += out[i]
        out[0] = whole - self.target.mean - total

    def dump(self, Py_ssize_t size):
        return {**RegressionModel.dump(self, size), **{f"ring.{key}": a for key, a in self.ring.dump(size).items()}}

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.arrays.fill({"targets": arrays["targets"]}, -1, capacity, 1)
        self.ring.fill({key[5:]: a for key, a in arrays.items() if key.startswith("ring.")}, capacity)
        self.grow(capacity)

    def nbytes(self):
        return self.arrays.nbytes() + self.ring.nbytes()

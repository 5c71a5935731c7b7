"""Nearest neighbours for regression: the mean target of the most similar recent instances.

The distance is that of `Neighbours`. The prediction is the weighted mean of the k targets and, with weight 1, of the
mean of all targets.
"""

from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.regression cimport RegressionModel
from varifold._engine.view cimport View
from varifold._numeric.largest cimport pick_largest
from varifold.neighbours._neighbours cimport MOST, NeighboursModel, leave_out

from varifold._engine.state import fixed, per_slot

cdef enum:
    MOST_EXPLAINED = 512    # features of an instance that are left out in turn: each takes a prediction


cdef class NeighboursRegression(RegressionModel):
    """Ring of instances with their targets."""

    cdef NeighboursModel ring      # the latest instances, all of one class
    cdef double* targets           # [window]: their targets, by position in the ring
    cdef int32_t* partial_slot     # scratch: slots of the instance without one feature
    cdef double* partial_x         # scratch: their values

    def __cinit__(self, int k, Py_ssize_t window):
        self.ring = NeighboursModel(k, window)
        self.hold("ring.", self.ring)
        self.arrays.declare("targets", &self.targets, fixed(window, low=-1e150, high=1e150))
        self.arrays.scratch(&self.partial_slot, per_slot())
        self.arrays.scratch(&self.partial_x, per_slot())
        self.ring.reserve_class()
        self.ring.add_class()

    cdef double predict(self, View* v) noexcept nogil:
        cdef Py_ssize_t[MOST] place
        cdef int j, n = self.ring.neighbours_of(v, place)
        cdef double total = 1.0, off = 0.0, w
        for j in range(n):
            w = self.ring.row[place[j]].w
            total += w
            off += w * (self.targets[place[j]] - self.target.mean)
        return self.target.mean + off / total

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        self.targets[self.ring.kept.taken % self.ring.window] = y    # the place that learn() is about to fill
        self.ring.learn(v, 0, w)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Compute by how much the prediction falls without each feature, the largest of a wide instance; the
        intercept gets the rest."""
        cdef View part = v[0]
        cdef int32_t[MOST_EXPLAINED] picked
        cdef Py_ssize_t i, j, n = min(v.n - 1, <Py_ssize_t> MOST_EXPLAINED)
        cdef double whole = self.predict(v), total = 0.0
        memset(out, 0, v.n * sizeof(double))
        if v.n == 0:
            return
        part.slot = self.partial_slot
        part.x = self.partial_x
        pick_largest(v.x, 1, v.n, n, picked)
        for j in range(n):
            i = picked[j]
            leave_out(v, i, &part)
            out[i] = whole - self.predict(&part)
            total += out[i]
        out[0] = whole - self.target.mean - total

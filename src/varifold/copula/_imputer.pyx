"""Copula without a classifier: a model that imputes the absent features of instances."""

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from varifold.copula._latent cimport Copula
from varifold.copula._marginals cimport normal_cdf
from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View

from varifold._engine.merging import APPROXIMATE

# Gauss-Hermite points and weights: the mean of a function of a standard normal is the weighted sum over the points
cdef double[7] POINT = [-3.7504397177257425, -2.366759410734541, -1.154405394739968, 0.0, 1.154405394739968,
                        2.366759410734541, 3.7504397177257425]
cdef double[7] WEIGHT = [0.000548268855972218, 0.030757123967586497, 0.24012317860501270, 0.45714285714285714,
                         0.24012317860501270, 0.030757123967586497, 0.000548268855972218]


cdef class ImputerModel(Model):
    """Learn instances without labels and impute their absent features."""

    cdef readonly Copula copula
    cdef double reach                  # half the width of the interval, in standard deviations
    cdef bint mean

    def __cinit__(self, Copula copula not None, double reach, bint mean):
        self.copula = copula
        self.reach = reach
        self.mean = mean

    cdef int attach(self, Space space) except -1:
        self.copula.attach(space)
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.copula.grow(capacity)
        return Model.grow(self, capacity)

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.copula.forget(slot)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.copula.learn(v, w)

    cdef double centre(self, Py_ssize_t node, double z, double sd) noexcept nogil:
        """Impute an absent feature: the most probable level, or the median or mean of a continuous one."""
        cdef int k
        cdef double total = 0.0
        if self.copula.marginals.ordinal(node):
            return self.copula.marginals.likeliest(node, z, sd)
        if not self.mean:
            return self.copula.marginals.value(node, z)
        for k in range(7):
            total += WEIGHT[k] * self.copula.marginals.value(node, z + sd * POINT[k])
        return total

    cdef void impute(self, View* v, double* value, double* low, double* high) noexcept nogil:
        """Impute absent features with an interval, for an indicator its probability; observed values stay as given."""
        cdef Py_ssize_t i
        cdef int32_t slot
        cdef double z, sd
        cdef double* inverse
        self.copula.observe(v)
        inverse = self.copula.invert()
        for i in range(self.copula.nodes):
            slot = <int32_t> self.copula.by_node[i].slot
            if slot == 0:
                continue
            z = self.copula.score[i]
            sd = sqrt(self.copula.absent_variance(i, inverse))
            if self.space.kind[slot] & INDICATOR:
                value[slot] = normal_cdf((z - self.copula.marginals.split(i, 0.0)) / sd)
                low[slot] = 0.0
                high[slot] = 1.0
            else:
                value[slot] = self.centre(i, z, sd)
                low[slot] = self.copula.marginals.value(i, z - self.reach * sd)
                high[slot] = self.copula.marginals.value(i, z + self.reach * sd)
        for i in range(self.copula.n):
            slot = <int32_t> self.copula.by_node[self.copula.node[i]].slot
            value[slot] = self.copula.given[i]
            low[slot] = self.copula.given[i]
            high[slot] = self.copula.given[i]

    def numbers(self):
        """Return the numeric features: name -> slot."""
        return {self.space.name_of(slot): slot for slot in self.space.live()
                if not self.space.kind[<Py_ssize_t> slot] & INDICATOR}

    def columns(self):
        """Return the string columns: name -> level -> (slot, whether it is the reference)."""
        found = {}
        for slot in self.space.live():
            if self.space.kind[<Py_ssize_t> slot] & INDICATOR:
                column = self.space.name_of(self.space.column[<Py_ssize_t> slot])
                level = self.space.name_of(slot)[len(str(column)) + 1:]
                found.setdefault(column, {})[level] = (slot, self.role(slot) == "reference")
        return found

    def role(self, Py_ssize_t slot):
        return self.copula.role(slot) or "outside"

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        return self.copula.merge(parts)

    def dump(self, Py_ssize_t size):
        return {**self.arrays.dump(size, 0), **self.copula.dump(size)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.arrays.fill(arrays, self.space.size if self.alone else -1, capacity, 0)
        self.grow(capacity)
        self.copula.fill(arrays, capacity)

    def nbytes(self):
        return self.copula.nbytes()

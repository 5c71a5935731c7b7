"""Half-space chains over random projections of the features."""

import numpy as np

from libc.math cimport floor, log2, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold._numeric.hashing cimport draw, mix, unit_interval
from varifold.anomaly._leave_out cimport LeaveOutModel

from varifold._engine.state import checked_array, fixed


cdef class XStreamModel(LeaveOutModel):
    """Counts of the cells of each chain and level, in the last complete window and in the present one."""

    cdef readonly Py_ssize_t projections, chains, depth, cells, window
    cdef readonly uint64_t seed
    cdef int64_t* learned          # [1]
    cdef double* moment            # [projection][weight, sum of squares], in the present window
    cdef double* width             # [projection] of the first cells of the present window
    cdef double* old_width         # of the last one
    cdef int32_t* count            # [chain, level, cell] in the present window
    cdef int32_t* old_count        # in the last one
    cdef double* sketch            # scratch [projection]
    cdef double* z                 # scratch [projection]

    def __cinit__(self, Py_ssize_t projections, Py_ssize_t chains, Py_ssize_t depth, Py_ssize_t window, Py_ssize_t cells,
                  uint64_t seed):
        self.projections, self.chains, self.depth = projections, chains, depth
        self.cells, self.window, self.seed = cells, window, seed
        self.arrays.declare("learned", &self.learned, fixed(1, low=0, high=1 << 53))
        self.arrays.declare("moment", &self.moment, fixed(projections, width=2, low=0))
        self.arrays.declare("width", &self.width, fixed(projections, first=1.0, low=1e-6))
        self.arrays.declare("old_width", &self.old_width, fixed(projections, first=1.0, low=1e-6))
        self.arrays.scratch(&self.count, fixed(chains * depth * cells))        # dump() saves those above 0
        self.arrays.scratch(&self.old_count, fixed(chains * depth * cells))
        self.arrays.scratch(&self.sketch, fixed(projections))
        self.arrays.scratch(&self.z, fixed(projections))

    cdef void project(self, View* v) noexcept nogil:
        """Sum the features by projection, each in one third of them, with a random sign (eq. 1)."""
        cdef Py_ssize_t i, k
        cdef uint64_t r
        memset(self.sketch, 0, self.projections * sizeof(double))
        for i in range(v.n):
            if v.is_new != NULL and v.is_new[i]:
                continue
            for k in range(self.projections):
                r = draw(self.seed, k, v.slot[i]) % 6
                if r < 2:
                    self.sketch[k] += v.x[i] if r == 0 else -v.x[i]

    cdef Py_ssize_t next_cell(self, Py_ssize_t chain, Py_ssize_t level, const double* width, uint64_t* path,
                              uint64_t* halved) noexcept nogil:
        """Halve the cells of a projection of the chain; return the cell of the instance at this level (eq. 4)."""
        cdef Py_ssize_t k = draw(self.seed ^ 1, chain, level) % <uint64_t> self.projections
        cdef double shift = unit_interval(draw(self.seed ^ 2, chain, k))
        if halved[0] >> k & 1:
            self.z[k] = 2.0 * self.z[k] - shift
        else:
            halved[0] |= <uint64_t> 1 << k
            self.z[k] = self.sketch[k] / width[k] + shift
        path[0] = mix(path[0] ^ <uint64_t> <int64_t> floor(min(max(self.z[k], -1e9), 1e9)))
        return (chain * self.depth + level) * self.cells + path[0] % <uint64_t> self.cells

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Average over the chains the smallest logarithm of a count times two to its level (eq. 5); subtract it from its
        largest value."""
        cdef Py_ssize_t c, d
        cdef uint64_t path, halved
        cdef double least
        cdef bint first = self.learned[0] < self.window
        cdef int32_t* count = self.count if first else self.old_count
        cdef double* width = self.width if first else self.old_width
        out[0] = 0.0
        if self.learned[0] == 0:
            return
        out[0] = log2(1.0 + min(self.learned[0], self.window)) + 1.0     # all instances in one cell
        self.project(v)
        for c in range(self.chains):
            path = c
            halved = 0
            least = 1e9
            for d in range(self.depth):
                least = min(least, log2(1.0 + count[self.next_cell(c, d, width, &path, &halved)]) + d + 1.0)
            out[0] -= least / self.chains

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t c, d, k
        cdef uint64_t path, halved
        if self.learned[0] > 0 and self.learned[0] % self.window == 0:
            self.turn()
        self.project(v)
        for k in range(self.projections):
            self.moment[2 * k] += 1.0
            self.moment[2 * k + 1] += min(self.sketch[k] * self.sketch[k], 1e12)
        for c in range(self.chains):
            path = c
            halved = 0
            for d in range(self.depth):
                self.count[self.next_cell(c, d, self.width, &path, &halved)] += 1
        self.learned[0] += 1

    cdef void turn(self) noexcept nogil:
        """Make the present window the last one; the cells of the next are twice the deviations of its projections wide."""
        cdef Py_ssize_t k, n = self.chains * self.depth * self.cells
        memcpy(self.old_count, self.count, n * sizeof(int32_t))
        memcpy(self.old_width, self.width, self.projections * sizeof(double))
        memset(self.count, 0, n * sizeof(int32_t))
        for k in range(self.projections):
            self.width[k] = max(2.0 * sqrt(self.moment[2 * k + 1] / max(self.moment[2 * k], 1.0)), 1e-3)
            self.moment[2 * k] = 0.0
            self.moment[2 * k + 1] = 0.0

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {**Model.dump(self, size), "count": self.cells_of(self.count), "old_count": self.cells_of(self.old_count)}

    cdef object cells_of(self, const int32_t* count):
        """Return the cells that hold instances, and their counts."""
        cdef Py_ssize_t i, n = self.chains * self.depth * self.cells
        return np.array([(i, count[i]) for i in range(n) if count[i]], dtype=np.int32).reshape(-1, 2)

    def fill(self, dict arrays, Py_ssize_t capacity):
        Model.fill(self, arrays, capacity)
        learned = self.learned[0]
        self.fill_cells("count", arrays, self.count, learned - max(0, learned - 1) // self.window * self.window)
        self.fill_cells("old_count", arrays, self.old_count, self.window if learned > self.window else 0)

    cdef int fill_cells(self, str name, dict arrays, int32_t* count, int64_t instances) except -1:
        """Restore what cells_of() returned, in which each instance is counted once per chain and level."""
        cdef Py_ssize_t i, n = self.chains * self.depth * self.cells
        pairs = checked_array(arrays, name, "i", (None, 2), 0, 1 << 30)
        if len(pairs) and (pairs[:, 0].max() >= n or (np.diff(pairs[:, 0]) <= 0).any() or pairs[:, 1].min() < 1):
            raise ValueError(f"{name} holds cells that do not exist, or are not in order or empty")
        if pairs[:, 1].sum() != instances * self.chains * self.depth:
            raise ValueError(f"{name} does not hold {instances} instances")
        memset(count, 0, n * sizeof(int32_t))
        for cell, held in pairs.tolist():
            i = cell
            count[i] = held
        return 0

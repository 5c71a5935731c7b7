"""One-dimensional histograms of random projections."""

from libc.math cimport floor, log, sqrt
from libc.stdint cimport int32_t, uint64_t

from varifold._engine.view cimport View
from varifold._numeric.hashing cimport draw
from varifold.anomaly._leave_out cimport LeaveOutModel

from varifold._engine.state import fixed

cdef enum:
    BINS = 66          # 64 of a quarter of a deviation around 0, and one beyond on each side

cdef double FADING = 0.9995    # of a count, by instance


cdef class LODAModel(LeaveOutModel):
    """Projections with weights -1, 0 and 1, drawn by slot; each sums what is present, divided by its deviation."""

    cdef readonly Py_ssize_t projections
    cdef readonly uint64_t seed
    cdef double* mass        # [projection][bin]
    cdef double* total       # [projection]
    cdef int32_t* bin        # scratch [projection]; -1 if no feature is present

    def __cinit__(self, Py_ssize_t projections, uint64_t seed):
        self.projections = projections
        self.seed = seed
        self.arrays.declare("mass", &self.mass, fixed(projections, width=BINS, low=0))
        self.arrays.declare("total", &self.total, fixed(projections, low=0))
        self.arrays.scratch(&self.bin, fixed(projections))

    cdef void project(self, View* v) noexcept nogil:
        """Compute the bin of the instance in each histogram."""
        cdef Py_ssize_t i, k, present
        cdef uint64_t r
        cdef double z
        for k in range(self.projections):
            z = 0.0
            present = 0
            for i in range(v.n):
                if v.is_new != NULL and v.is_new[i]:
                    continue
                r = draw(self.seed, k, v.slot[i]) % 6
                if r < 2:                      # one third of the features, with a random sign
                    z += v.x[i] if r == 0 else -v.x[i]
                    present += 1
            self.bin[k] = -1
            if present:
                z = floor(4.0 * z / sqrt(<double> present))
                self.bin[k] = <int32_t> (0 if z < -32.0 else BINS - 1 if z >= 32.0 else z + 33.0)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Average minus the logarithm of the density, in instances per bin, over the projections that see any feature."""
        cdef Py_ssize_t k, n = 0
        out[0] = 0.0
        self.project(v)
        for k in range(self.projections):
            if self.bin[k] >= 0 and self.total[k] > 0.0:
                n += 1
                out[0] -= log((self.mass[k * BINS + self.bin[k]] + 0.5) / (self.total[k] + 0.5 * BINS))
        if n:
            out[0] /= n

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t k, b
        self.project(v)
        for k in range(self.projections):
            if self.bin[k] < 0:
                continue
            for b in range(BINS):
                self.mass[k * BINS + b] *= FADING
            self.mass[k * BINS + self.bin[k]] += 1.0
            self.total[k] = FADING * self.total[k] + 1.0

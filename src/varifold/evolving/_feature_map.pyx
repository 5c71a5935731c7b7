"""Linear map from new features to old ones, learned while both are present (CWFE, eq. 6).

Eq. 6 inverts a matrix that is singular for short overlaps. ``FeatureMap.solve`` computes the least-squares
solution of least norm, as the pseudo-inverse would.
"""

import numpy as np

from libc.math cimport fabs, hypot, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset
from scipy.linalg.cython_lapack cimport dgelsy

from varifold._numeric.memory cimport out_of_memory, resize
from varifold.evolving._overlap cimport Overlap, clear_slot

from varifold._engine.state import checked_array

cdef double RCOND = 1e-11     # singular values below this share of the largest count as zero
cdef double STEEPEST = 1e50   # larger coefficients result from values that differ by hundreds of orders of magnitude
cdef double STILL = 1e-9      # an input that varies by less than this share of its mean is constant


cdef inline double finite_or_zero(double x) noexcept nogil:
    """Return x, or 0 if it is NaN or its size is not below STEEPEST."""
    return x if -STEEPEST < x < STEEPEST else 0.0


cdef class FeatureMap:
    def __cinit__(self, double ridge=0.0, bint spread=False):
        self.ridge = ridge
        self.spread = spread

    def __dealloc__(self):
        free(self.input)
        free(self.output)
        free(self.mean)
        free(self.unit)
        free(self.base)
        free(self.matrix)
        self.release_solve()

    cdef void clear(self) noexcept nogil:
        """Drop the map; the memory stays allocated."""
        self.inputs = 0
        self.outputs = 0

    # ---------------------------------------------------------------- memory

    cdef int reserve(self, Py_ssize_t inputs, Py_ssize_t outputs) except -1 nogil:
        """Reserve memory for a map of this size; the current map is kept."""
        if inputs <= self.capacity_in and outputs <= self.capacity_out:
            return 0
        inputs = max(inputs, self.capacity_in)
        outputs = max(outputs, self.capacity_out)
        if (resize(<void**> &self.input, inputs * sizeof(int32_t)) < 0
                or resize(<void**> &self.output, outputs * sizeof(int32_t)) < 0
                or resize(<void**> &self.mean, inputs * sizeof(double)) < 0
                or resize(<void**> &self.unit, inputs * sizeof(double)) < 0
                or resize(<void**> &self.base, outputs * sizeof(double)) < 0
                or resize(<void**> &self.matrix, inputs * outputs * sizeof(double)) < 0):
            return out_of_memory()
        self.capacity_in = inputs
        self.capacity_out = outputs
        return 0

    cdef int reserve_solve(self, Py_ssize_t inputs, Py_ssize_t outputs) except -1 nogil:
        """Reserve memory for solve() on an overlap with this many columns, and for the resulting map."""
        cdef Py_ssize_t high = 2 * inputs if self.ridge > 0.0 else inputs
        cdef int m = <int> high, n = <int> inputs, rhs = <int> outputs, found = 0, info = 0, query = -1
        cdef double need = 0.0, rcond = RCOND
        self.reserve(inputs, outputs)
        if inputs <= self.solve_in and outputs <= self.solve_out:
            return 0
        dgelsy(&m, &n, &rhs, NULL, &m, NULL, &m, NULL, &rcond, &found, &need, &query, &info)
        if (resize(<void**> &self.left, high * inputs * sizeof(double)) < 0
                or resize(<void**> &self.right, high * outputs * sizeof(double)) < 0
                or resize(<void**> &self.pivot, inputs * sizeof(int)) < 0
                or resize(<void**> &self.work, <size_t> need * sizeof(double)) < 0):
            return out_of_memory()
        self.work_size = <int> need
        self.solve_in = inputs
        self.solve_out = outputs
        return 0

    cdef void release_solve(self) noexcept nogil:
        """Free the workspace of solve()."""
        free(self.left)
        free(self.right)
        free(self.pivot)
        free(self.work)
        self.left = self.right = self.work = NULL
        self.pivot = NULL
        self.solve_in = self.solve_out = self.work_size = 0

    # ---------------------------------------------------------------- solving

    cdef bint solve(self, Overlap o) noexcept nogil:
        """Solve for the map of least norm that fits the overlap (eq. 6); return False if there is none.

        Call reserve_solve() first.
        """
        cdef Py_ssize_t j, p, first, fixed = -1
        self.clear()
        if o.full or o.rank == 0 or o.outputs == 0:
            return False
        first = 1 if o.inputs and o.input[0] == 0 else 0
        if first:
            fixed = o.lead[0]
        memcpy(self.output, o.output, o.outputs * sizeof(int32_t))
        for j in range(o.outputs):
            self.base[j] = o.y[fixed * o.capacity_out + j] / o.a[fixed * o.capacity_in] if fixed >= 0 else 0.0
        p = self.measure_inputs(o, first, fixed)
        self.least_squares(o, first, fixed, p)
        self.inputs = p
        self.outputs = o.outputs
        return True

    cdef Py_ssize_t measure_inputs(self, Overlap o, Py_ssize_t first, Py_ssize_t fixed) noexcept nogil:
        """Compute slot, mean and unit of the inputs that are not evicted; return their number.

        `fixed` is the row that starts with the constant, -1 without one. It holds the means.
        """
        cdef Py_ssize_t j, r, p = 0
        cdef double total, norm
        total = o.a[fixed * o.capacity_in] if fixed >= 0 else sqrt(<double> o.rows)
        for j in range(first, o.inputs):
            if o.input[j] < 0:
                continue
            self.input[p] = o.input[j]
            self.mean[p] = o.a[fixed * o.capacity_in + j] / total if fixed >= 0 else 0.0
            norm = 0.0
            for r in range(o.rank):
                if r != fixed:
                    norm = hypot(norm, o.a[r * o.capacity_in + j])
            norm /= fabs(total)
            if norm <= STILL * fabs(self.mean[p]):
                norm = 0.0
            self.unit[p] = norm if self.spread or norm == 0.0 else 1.0
            p += 1
        return p

    cdef void least_squares(self, Overlap o, Py_ssize_t first, Py_ssize_t fixed, Py_ssize_t p) noexcept nogil:
        """Solve for the matrix rows of the p inputs; an input without spread gets zeros. Ridge adds a row per input."""
        cdef Py_ssize_t q = o.outputs, k = o.rank - (fixed >= 0), i, j, r = 0, c
        cdef Py_ssize_t high = k + (p if self.ridge > 0.0 else 0)
        cdef int m = <int> high, n = <int> p, rhs = <int> q, ldb = <int> max(high, p), found = 0, info = 0, size = -1
        cdef double need = 0.0, rcond = RCOND
        cdef double* a = self.left
        cdef double* b = self.right
        memset(self.matrix, 0, p * q * sizeof(double))
        if high == 0 or p == 0:
            return
        memset(a, 0, high * p * sizeof(double))
        memset(b, 0, ldb * q * sizeof(double))
        memset(self.pivot, 0, p * sizeof(int))
        for i in range(o.rank):
            if i == fixed:
                continue
            c = 0
            for j in range(first, o.inputs):
                if o.input[j] >= 0:
                    a[c * high + r] = o.a[i * o.capacity_in + j] / self.unit[c] if self.unit[c] > 0.0 else 0.0
                    c += 1
            for j in range(q):
                b[j * ldb + r] = o.y[i * o.capacity_out + j]
            r += 1
        for c in range(high - k):
            a[c * high + k + c] = sqrt(self.ridge)
        dgelsy(&m, &n, &rhs, a, &m, b, &ldb, self.pivot, &rcond, &found, &need, &size, &info)
        size = min(<int> need, self.work_size)
        dgelsy(&m, &n, &rhs, a, &m, b, &ldb, self.pivot, &rcond, &found, self.work, &size, &info)
        for c in range(p):
            if self.unit[c] > 0.0:
                for j in range(q):
                    self.matrix[c * q + j] = finite_or_zero(b[j * ldb + c] / self.unit[c])
            else:
                self.unit[c] = 1.0

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Clear the slot of an evicted feature; its columns stay."""
        clear_slot(self.input, self.inputs, slot)
        clear_slot(self.output, self.outputs, slot)

    # ---------------------------------------------------------------- files

    def dump(self):
        """Return the state as a dict of arrays."""
        cdef Py_ssize_t j, n = self.inputs, m = self.outputs
        return {
            "map.input": np.array([self.input[j] for j in range(n)], dtype=np.int32),
            "map.output": np.array([self.output[j] for j in range(m)], dtype=np.int32),
            "map.mean": np.array([self.mean[j] for j in range(n)], dtype=np.float64),
            "map.unit": np.array([self.unit[j] for j in range(n)], dtype=np.float64),
            "map.base": np.array([self.base[j] for j in range(m)], dtype=np.float64),
            "map.matrix": np.array([self.matrix[j] for j in range(n * m)], dtype=np.float64).reshape(n, m),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Restore the state from dump(); slots must be below `capacity`, and there are at most `capacity` outputs."""
        cdef Py_ssize_t i, j
        inputs = checked_array(arrays, "map.input", "i", (None,), -1, capacity - 1)
        outputs = checked_array(arrays, "map.output", "i", (None,), -1, capacity - 1)
        n, m = len(inputs), len(outputs)
        if m > capacity:
            raise ValueError(f"a map to {m} features does not belong to this model")
        matrix, base = checked_array(arrays, "map.matrix", "f", (n, m)), checked_array(arrays, "map.base", "f", (m,))
        mean, unit = checked_array(arrays, "map.mean", "f", (n,)), checked_array(arrays, "map.unit", "f", (n,))
        self.reserve(n, m)
        self.inputs = n
        self.outputs = m
        for i in range(self.inputs):
            self.input[i] = inputs[i]
            self.mean[i] = mean[i]
            self.unit[i] = unit[i]
            for j in range(self.outputs):
                self.matrix[i * self.outputs + j] = matrix[i, j]
        for j in range(self.outputs):
            self.output[j] = outputs[j]
            self.base[j] = base[j]

    def nbytes(self):
        """Return the allocated bytes."""
        return ((self.capacity_in + 2) * (self.capacity_out + 2) + self.solve_in * (self.solve_in + self.solve_out)
                + self.work_size) * sizeof(double)

"""The map from new features to old ones, learned while both are seen.

``Overlap`` turns each row [A Y] into the triangular factor of those before it by plane rotations and keeps at most one
row an input, so its size does not depend on the length of the overlap. The factor has the rows' Gram matrix, hence
their least-squares solutions: ``FeatureMap.solve`` takes the one of least norm, equal to the pseudo-inverse's.
"""

import numpy as np

from libc.math cimport fabs, hypot, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_lapack cimport dgelsy

cdef double RCOND = 1e-11     # singular values below this share of the largest count as zero
cdef double STEEPEST = 1e50   # a map beyond it fits nothing that a sensor says
cdef double STILL = 1e-9      # an input that moves less than this share of its mean is a constant


def checked(dict arrays, str key, Py_ssize_t size, low, high):
    """The whole numbers of a saved array of this size (-1: any), each at least `low` and below `high`."""
    found = np.asarray(arrays[key])
    if (found.dtype.kind not in "iu" or found.ndim != 1 or (size >= 0 and len(found) != size)
            or (len(found) and not (low <= int(found.min()) and int(found.max()) < high))):
        raise ValueError(f"the array {key!r} does not belong to this model")
    return found


def reals(dict arrays, str key, tuple shape):
    """A saved array of numbers that must have this shape."""
    found = np.asarray(arrays[key], dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"the array {key!r} has the shape {found.shape}, not {shape}")
    return found


cdef class Overlap:
    def __cinit__(self, Py_ssize_t most):
        self.most = most

    def __dealloc__(self):
        self.release()

    cdef void release(self) noexcept nogil:
        free(self.input)
        free(self.output)
        free(self.lead)
        free(self.a)
        free(self.y)
        free(self.row_a)
        free(self.row_y)
        self.input = self.output = self.lead = NULL
        self.a = self.y = self.row_a = self.row_y = NULL
        self.room_in = self.room_out = 0

    cdef void clear(self) noexcept nogil:
        self.inputs = self.outputs = self.rank = self.rows = 0
        self.full = False

    cdef void mark_evicted(self) noexcept nogil:
        self.clear()
        self.full = True

    cdef bint widen(self, Py_ssize_t room_in, Py_ssize_t room_out) noexcept nogil:
        """Room for this many columns; there are as many rows as inputs."""
        cdef double* a = <double*> calloc(room_in * room_in, sizeof(double))
        cdef double* y = <double*> calloc(room_in * room_out, sizeof(double))
        cdef Py_ssize_t i
        self.input = <int32_t*> realloc(self.input, room_in * sizeof(int32_t))
        self.lead = <int32_t*> realloc(self.lead, room_in * sizeof(int32_t))
        self.output = <int32_t*> realloc(self.output, room_out * sizeof(int32_t))
        self.row_a = <double*> realloc(self.row_a, room_in * sizeof(double))
        self.row_y = <double*> realloc(self.row_y, room_out * sizeof(double))
        if (a == NULL or y == NULL or self.input == NULL or self.lead == NULL or self.output == NULL
                or self.row_a == NULL or self.row_y == NULL):
            free(a)
            free(y)
            self.release()
            return False
        for i in range(self.rank):
            memcpy(a + i * room_in, self.a + i * self.room_in, self.inputs * sizeof(double))
            memcpy(y + i * room_out, self.y + i * self.room_out, self.outputs * sizeof(double))
        free(self.a)
        free(self.y)
        self.a = a
        self.y = y
        self.room_in = room_in
        self.room_out = room_out
        return True

    cdef bint reserve(self, Py_ssize_t inputs, Py_ssize_t outputs) noexcept nogil:
        cdef Py_ssize_t room_in = self.room_in, room_out = self.room_out
        if self.full:
            return False
        if inputs > self.most + 1 or outputs > self.most + 1:
            self.mark_evicted()
            return False
        while room_in < inputs or room_in == 0:
            room_in = 2 * room_in + 8
        while room_out < outputs or room_out == 0:
            room_out = 2 * room_out + 8
        if (room_in != self.room_in or room_out != self.room_out) and not self.widen(room_in, room_out):
            self.mark_evicted()
            return False
        return True

    cdef int32_t add_input(self, int32_t slot, double first) noexcept nogil:
        """The column of a new input, -1 when there is no room.

        In the rows so far it is as if it had had its first value always (0 where there is no constant).
        """
        cdef Py_ssize_t i, j = self.inputs
        if not self.reserve(j + 1, self.outputs):
            return -1
        for i in range(self.rank):
            self.a[i * self.room_in + j] = 0.0
        if j and self.rank and self.input[0] == 0:
            self.a[j] = first * self.a[0]
        self.input[j] = slot
        self.lead[j] = -1
        self.inputs = j + 1
        return <int32_t> j

    cdef int32_t add_output(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t i, j = self.outputs
        if not self.reserve(self.inputs, j + 1):
            return -1
        for i in range(self.rank):
            self.y[i * self.room_out + j] = 0.0
        self.output[j] = slot
        self.outputs = j + 1
        return <int32_t> j

    cdef void blank(self) noexcept nogil:
        """Lay out a row of absent values: means where there is a constant, else zeros."""
        cdef Py_ssize_t j
        if self.full:
            return
        memset(self.row_a, 0, self.inputs * sizeof(double))
        memset(self.row_y, 0, self.outputs * sizeof(double))
        if self.rank and self.input[0] == 0:
            for j in range(1, self.inputs):
                self.row_a[j] = self.a[j] / self.a[0]
            for j in range(self.outputs):
                self.row_y[j] = self.y[j] / self.a[0]

    cdef void take(self, double w) noexcept nogil:
        """Rotate the row laid out into the factor, with weight w."""
        cdef Py_ssize_t c, j, n = self.inputs, m = self.outputs
        cdef double* r
        cdef double* s
        cdef double root = sqrt(w), h, cs, sn, t
        if self.full:
            return
        self.rows += 1
        for j in range(n):
            self.row_a[j] *= root
        for j in range(m):
            self.row_y[j] *= root
        for c in range(n):
            if self.row_a[c] == 0.0:
                continue
            if self.lead[c] < 0:
                memcpy(self.a + self.rank * self.room_in, self.row_a, n * sizeof(double))
                memcpy(self.y + self.rank * self.room_out, self.row_y, m * sizeof(double))
                self.lead[c] = <int32_t> self.rank
                self.rank += 1
                return
            r = self.a + self.lead[c] * self.room_in
            s = self.y + self.lead[c] * self.room_out
            h = hypot(r[c], self.row_a[c])
            cs = r[c] / h
            sn = self.row_a[c] / h
            for j in range(c, n):
                t = cs * r[j] + sn * self.row_a[j]
                self.row_a[j] = cs * self.row_a[j] - sn * r[j]
                r[j] = t
            self.row_a[c] = 0.0
            for j in range(m):
                t = cs * s[j] + sn * self.row_y[j]
                self.row_y[j] = cs * self.row_y[j] - sn * s[j]
                s[j] = t

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.inputs):
            if self.input[j] == slot:
                self.input[j] = -1
        for j in range(self.outputs):
            if self.output[j] == slot:
                self.output[j] = -1

    def dump(self):
        """The state as a dict of arrays."""
        cdef Py_ssize_t i, j
        a = np.zeros((self.rank, self.inputs))
        y = np.zeros((self.rank, self.outputs))
        for i in range(self.rank):
            for j in range(self.inputs):
                a[i, j] = self.a[i * self.room_in + j]
            for j in range(self.outputs):
                y[i, j] = self.y[i * self.room_out + j]
        return {
            "overlap.a": a, "overlap.y": y,
            "overlap.input": np.array([self.input[j] for j in range(self.inputs)], dtype=np.int32),
            "overlap.lead": np.array([self.lead[j] for j in range(self.inputs)], dtype=np.int32),
            "overlap.output": np.array([self.output[j] for j in range(self.outputs)], dtype=np.int32),
            "overlap.count": np.array([self.rows, self.full], dtype=np.int64),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Take what dump() gave; its slots must be below `capacity`."""
        cdef Py_ssize_t i, j
        inputs = checked(arrays, "overlap.input", -1, -1, capacity)
        outputs = checked(arrays, "overlap.output", -1, -1, capacity)
        rank = len(arrays["overlap.a"])
        if len(inputs) > self.most + 1 or len(outputs) > self.most + 1 or rank > len(inputs):
            raise ValueError(f"an overlap of {rank} x {len(inputs)} and {len(outputs)} does not belong to this model")
        a = reals(arrays, "overlap.a", (rank, len(inputs)))
        y = reals(arrays, "overlap.y", (rank, len(outputs)))
        lead = checked(arrays, "overlap.lead", len(inputs), -1, rank)
        count = checked(arrays, "overlap.count", 2, 0, 2**62)
        self.clear()
        for j in range(a.shape[1]):
            self.add_input(inputs[j], 0.0)
        for j in range(y.shape[1]):
            self.add_output(outputs[j])
        if self.full:
            raise MemoryError
        for j in range(self.inputs):
            self.lead[j] = lead[j]
        self.rank = rank
        for i in range(self.rank):
            for j in range(self.inputs):
                self.a[i * self.room_in + j] = a[i, j]
            for j in range(self.outputs):
                self.y[i * self.room_out + j] = y[i, j]
        self.rows = int(count[0])
        self.full = bool(count[1])

    def nbytes(self):
        """Bytes held."""
        return self.room_in * (self.room_in + self.room_out) * sizeof(double)


cdef inline double sober(double x) noexcept nogil:
    """A number of the map; what is beyond reason, or none at all, came of values that differ by hundreds of digits."""
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

    cdef void clear(self) noexcept nogil:
        self.inputs = 0
        self.outputs = 0

    cdef int reserve(self, Py_ssize_t inputs, Py_ssize_t outputs) noexcept nogil:
        """Room for a map of this size; 0 when there is no memory."""
        self.clear()
        self.input = <int32_t*> realloc(self.input, (inputs + 1) * sizeof(int32_t))
        self.output = <int32_t*> realloc(self.output, (outputs + 1) * sizeof(int32_t))
        self.mean = <double*> realloc(self.mean, (inputs + 1) * sizeof(double))
        self.unit = <double*> realloc(self.unit, (inputs + 1) * sizeof(double))
        self.base = <double*> realloc(self.base, (outputs + 1) * sizeof(double))
        self.matrix = <double*> realloc(self.matrix, (inputs * outputs + 1) * sizeof(double))
        return (self.input != NULL and self.output != NULL and self.mean != NULL and self.unit != NULL
                and self.base != NULL and self.matrix != NULL)

    cdef bint solve(self, Overlap o) noexcept nogil:
        """The map of least norm that fits the overlap; False (and no map) when there is none."""
        cdef Py_ssize_t i, j, r, p, first, fixed = -1
        cdef double total = 0.0, norm
        self.clear()
        if o.full or o.rank == 0 or o.outputs == 0:
            return False
        first = 1 if o.inputs and o.input[0] == 0 else 0
        if first:
            fixed = o.lead[0]
        if not self.reserve(o.inputs - first, o.outputs):
            return False
        memcpy(self.output, o.output, o.outputs * sizeof(int32_t))
        for j in range(o.outputs):
            self.base[j] = o.y[fixed * o.room_out + j] / o.a[fixed * o.room_in] if fixed >= 0 else 0.0
        total = o.a[fixed * o.room_in] if fixed >= 0 else sqrt(<double> o.rows)
        p = 0
        for j in range(first, o.inputs):
            if o.input[j] < 0:
                continue
            self.input[p] = o.input[j]
            self.mean[p] = o.a[fixed * o.room_in + j] / total if fixed >= 0 else 0.0
            norm = 0.0
            for r in range(o.rank):
                if r != fixed:
                    norm = hypot(norm, o.a[r * o.room_in + j])
            norm /= fabs(total)
            if norm <= STILL * fabs(self.mean[p]):
                norm = 0.0
            self.unit[p] = norm if self.spread or norm == 0.0 else 1.0
            p += 1
        if not self.least_squares(o, first, fixed, p):
            return False
        self.inputs = p
        self.outputs = o.outputs
        return True

    cdef bint least_squares(self, Overlap o, Py_ssize_t first, Py_ssize_t fixed, Py_ssize_t p) noexcept nogil:
        """Matrix rows of the p inputs; an input without spread gets none."""
        cdef Py_ssize_t q = o.outputs, k = o.rank - (fixed >= 0), i, j, r, c
        cdef Py_ssize_t high = k + (p if self.ridge > 0.0 else 0)
        cdef int m = <int> high, n = <int> p, rhs = <int> q, ldb = <int> max(high, p), found = 0, info = 0, size = -1
        cdef double need = 0.0, rcond = RCOND
        cdef double* a = <double*> calloc(high * p + 1, sizeof(double))
        cdef double* b = <double*> calloc(ldb * q + 1, sizeof(double))
        cdef int* pivot = <int*> calloc(p + 1, sizeof(int))
        cdef double* work = NULL
        memset(self.matrix, 0, p * q * sizeof(double))
        if a != NULL and b != NULL and pivot != NULL and high > 0 and p > 0:
            r = 0
            for i in range(o.rank):
                if i == fixed:
                    continue
                c = 0
                for j in range(first, o.inputs):
                    if o.input[j] >= 0:
                        a[c * high + r] = o.a[i * o.room_in + j] / self.unit[c] if self.unit[c] > 0.0 else 0.0
                        c += 1
                for j in range(q):
                    b[j * ldb + r] = o.y[i * o.room_out + j]
                r += 1
            for c in range(high - k):
                a[c * high + k + c] = sqrt(self.ridge)
            dgelsy(&m, &n, &rhs, a, &m, b, &ldb, pivot, &rcond, &found, &need, &size, &info)
            size = <int> need
            work = <double*> calloc(size, sizeof(double))
            if work != NULL:
                dgelsy(&m, &n, &rhs, a, &m, b, &ldb, pivot, &rcond, &found, work, &size, &info)
                for c in range(p):
                    if self.unit[c] > 0.0:
                        for j in range(q):
                            self.matrix[c * q + j] = sober(b[j * ldb + c] / self.unit[c])
                    else:
                        self.unit[c] = 1.0
        free(a)
        free(b)
        free(pivot)
        free(work)
        return work != NULL or high == 0 or p == 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.inputs):
            if self.input[j] == slot:
                self.input[j] = -1
        for j in range(self.outputs):
            if self.output[j] == slot:
                self.output[j] = -1

    def dump(self):
        """The state as a dict of arrays."""
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
        """Take what dump() gave; its slots must be below `capacity`, and no more of them be recovered."""
        cdef Py_ssize_t i, j
        inputs = checked(arrays, "map.input", -1, -1, capacity)
        outputs = checked(arrays, "map.output", -1, -1, capacity)
        n, m = len(inputs), len(outputs)
        if m > capacity:
            raise ValueError(f"a map to {m} features does not belong to this model")
        matrix, base = reals(arrays, "map.matrix", (n, m)), reals(arrays, "map.base", (m,))
        mean, unit = reals(arrays, "map.mean", (n,)), reals(arrays, "map.unit", (n,))
        if not self.reserve(n, m):
            raise MemoryError
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
        """Bytes held."""
        return (self.inputs + 2) * (self.outputs + 2) * sizeof(double)

"""Overlap of old and new features: rows that have both, stored as a triangular factor.

Each row [A Y] is rotated into the factor of the earlier ones (Givens). At most one row per input is kept, so
its size does not depend on the length of the overlap. The factor has the rows' Gram matrix, hence their least-squares
solutions.
"""

import numpy as np

from libc.math cimport hypot, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._numeric.memory cimport allocate, out_of_memory, resize

from varifold._engine.state import checked_array


cdef class Overlap:
    def __cinit__(self, Py_ssize_t most):
        self.most = most

    def __dealloc__(self):
        free(self.input)
        free(self.output)
        free(self.lead)
        free(self.a)
        free(self.y)
        free(self.row_a)
        free(self.row_y)

    cdef void clear(self) noexcept nogil:
        """Remove all rows and columns; the memory stays allocated."""
        self.inputs = self.outputs = self.rank = self.rows = 0
        self.full = False

    cdef int reserve(self, Py_ssize_t inputs, Py_ssize_t outputs) except -1 nogil:
        """Reserve this many columns on each side, up to `most`."""
        cdef Py_ssize_t capacity_in = self.capacity_in, capacity_out = self.capacity_out
        inputs = min(inputs, self.most + 1)
        outputs = min(outputs, self.most + 1)
        while capacity_in < inputs or capacity_in == 0:
            capacity_in = 2 * capacity_in + 8
        while capacity_out < outputs or capacity_out == 0:
            capacity_out = 2 * capacity_out + 8
        if capacity_in != self.capacity_in or capacity_out != self.capacity_out:
            self.widen(capacity_in, capacity_out)
        return 0

    cdef int widen(self, Py_ssize_t capacity_in, Py_ssize_t capacity_out) except -1 nogil:
        """Reallocate the factor for this many columns; it has one row per input."""
        cdef Py_ssize_t i
        cdef double* a
        cdef double* y
        if (resize(<void**> &self.input, capacity_in * sizeof(int32_t)) < 0
                or resize(<void**> &self.lead, capacity_in * sizeof(int32_t)) < 0
                or resize(<void**> &self.output, capacity_out * sizeof(int32_t)) < 0
                or resize(<void**> &self.row_a, capacity_in * sizeof(double)) < 0
                or resize(<void**> &self.row_y, capacity_out * sizeof(double)) < 0):
            return out_of_memory()
        a = <double*> allocate(capacity_in * capacity_in * sizeof(double))
        y = <double*> allocate(capacity_in * capacity_out * sizeof(double))
        if a == NULL or y == NULL:
            free(a)
            free(y)
            return out_of_memory()
        for i in range(self.rank):
            memcpy(a + i * capacity_in, self.a + i * self.capacity_in, self.inputs * sizeof(double))
            memcpy(y + i * capacity_out, self.y + i * self.capacity_out, self.outputs * sizeof(double))
        free(self.a)
        free(self.y)
        self.a = a
        self.y = y
        self.capacity_in = capacity_in
        self.capacity_out = capacity_out
        return 0

    cdef bint fits(self, Py_ssize_t inputs, Py_ssize_t outputs) noexcept nogil:
        """Test whether this many columns are allowed; if not, drop all rows and learn no map."""
        if self.full:
            return False
        if inputs > min(self.most + 1, self.capacity_in) or outputs > min(self.most + 1, self.capacity_out):
            self.clear()
            self.full = True
            return False
        return True

    cdef int32_t add_input(self, int32_t slot, double first) noexcept nogil:
        """Add an input and return its column, or -1 when there are too many; call reserve() first.

        In the rows so far it is as if it had had its first value always (0 where there is no constant).
        """
        cdef Py_ssize_t i, j = self.inputs
        if not self.fits(j + 1, self.outputs):
            return -1
        for i in range(self.rank):
            self.a[i * self.capacity_in + j] = 0.0
        if j and self.rank and self.input[0] == 0:
            self.a[j] = first * self.a[0]
        self.input[j] = slot
        self.lead[j] = -1
        self.inputs = j + 1
        return <int32_t> j

    cdef int32_t add_output(self, int32_t slot) noexcept nogil:
        """Add an output and return its column, or -1 when there are too many; it is 0 in all earlier rows."""
        cdef Py_ssize_t i, j = self.outputs
        if not self.fits(self.inputs, j + 1):
            return -1
        for i in range(self.rank):
            self.y[i * self.capacity_out + j] = 0.0
        self.output[j] = slot
        self.outputs = j + 1
        return <int32_t> j

    cdef void blank(self) noexcept nogil:
        """Initialise the row with absent values: means if there is a constant, else zeros."""
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

    cdef void add_row(self, double w) noexcept nogil:
        """Rotate the current row into the factor (Givens rotations), with weight w."""
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
                memcpy(self.a + self.rank * self.capacity_in, self.row_a, n * sizeof(double))
                memcpy(self.y + self.rank * self.capacity_out, self.row_y, m * sizeof(double))
                self.lead[c] = <int32_t> self.rank
                self.rank += 1
                return
            r = self.a + self.lead[c] * self.capacity_in
            s = self.y + self.lead[c] * self.capacity_out
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
        """Clear the slot of an evicted feature; its columns stay."""
        clear_slot(self.input, self.inputs, slot)
        clear_slot(self.output, self.outputs, slot)

    def dump(self):
        """Return the state as a dict of arrays."""
        cdef Py_ssize_t i, j
        a = np.zeros((self.rank, self.inputs))
        y = np.zeros((self.rank, self.outputs))
        for i in range(self.rank):
            for j in range(self.inputs):
                a[i, j] = self.a[i * self.capacity_in + j]
            for j in range(self.outputs):
                y[i, j] = self.y[i * self.capacity_out + j]
        return {
            "overlap.a": a, "overlap.y": y,
            "overlap.input": np.array([self.input[j] for j in range(self.inputs)], dtype=np.int32),
            "overlap.lead": np.array([self.lead[j] for j in range(self.inputs)], dtype=np.int32),
            "overlap.output": np.array([self.output[j] for j in range(self.outputs)], dtype=np.int32),
            "overlap.count": np.array([self.rows, self.full], dtype=np.int64),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Restore the state from dump(); slots must be below `capacity`."""
        cdef Py_ssize_t i, j
        inputs = checked_array(arrays, "overlap.input", "i", (None,), -1, capacity - 1)
        outputs = checked_array(arrays, "overlap.output", "i", (None,), -1, capacity - 1)
        rank = len(arrays["overlap.a"])
        if len(inputs) > self.most + 1 or len(outputs) > self.most + 1 or rank > len(inputs):
            raise ValueError(f"an overlap of {rank} x {len(inputs)} and {len(outputs)} does not belong to this model")
        a = checked_array(arrays, "overlap.a", "f", (rank, len(inputs)))
        y = checked_array(arrays, "overlap.y", "f", (rank, len(outputs)))
        lead = checked_array(arrays, "overlap.lead", "i", (len(inputs),), -1, rank - 1)
        count = checked_array(arrays, "overlap.count", "i", (2,), 0, 2**62)
        self.clear()
        self.reserve(len(inputs), len(outputs))
        for j in range(a.shape[1]):
            self.add_input(inputs[j], 0.0)
        for j in range(y.shape[1]):
            self.add_output(outputs[j])
        for j in range(self.inputs):
            self.lead[j] = lead[j]
        self.rank = rank
        for i in range(self.rank):
            for j in range(self.inputs):
                self.a[i * self.capacity_in + j] = a[i, j]
            for j in range(self.outputs):
                self.y[i * self.capacity_out + j] = y[i, j]
        self.rows = int(count[0])
        self.full = bool(count[1])

    def nbytes(self):
        """Return the allocated bytes."""
        return self.capacity_in * (self.capacity_in + self.capacity_out) * sizeof(double)

"""One square matrix per problem over the first slots, initially the identity (covariances, feature graphs)."""

import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._numeric.memory cimport allocate, resize_zeroed


cdef class ProblemMatrices:
    """Square matrices that grow with problems and slots; a failed allocation changes nothing."""

    def __dealloc__(self):
        free(self.data)

    cdef int reserve(self, Py_ssize_t problems, Py_ssize_t side) except -1:
        """Reserve at least this many matrices with at least this many rows; new entries are those of the identity."""
        self.add_rows(side)
        self.add_problems(problems)
        return 0

    cdef int add_problems(self, Py_ssize_t problems) except -1:
        """Add matrices, growing by at least half so that adding one at a time is cheap."""
        cdef Py_ssize_t capacity = max(problems, self.problems + self.problems // 2)
        cdef Py_ssize_t whole = self.side * self.side, bytes = whole * sizeof(double), c, i
        if problems <= self.problems:
            return 0
        if resize_zeroed(<void**> &self.data, self.problems * bytes, capacity * bytes) < 0:
            raise MemoryError
        for c in range(self.problems, capacity):
            for i in range(self.side):
                self.data[c * whole + i * self.side + i] = 1.0
        self.problems = capacity
        return 0

    cdef int add_rows(self, Py_ssize_t side) except -1:
        """Add rows and columns to every matrix, in newly allocated memory."""
        cdef Py_ssize_t c, i
        cdef double* data
        if side <= self.side:
            return 0
        data = <double*> allocate(self.problems * side * side * sizeof(double))
        if data == NULL:
            raise MemoryError
        for c in range(self.problems):
            for i in range(side):
                if i < self.side:
                    memcpy(data + (c * side + i) * side, matrix_of(self, c) + i * self.side, self.side * sizeof(double))
                else:
                    data[(c * side + i) * side + i] = 1.0
        free(self.data)
        self.data = data
        self.side = side
        return 0

    cdef void copy_problem(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        memcpy(matrix_of(self, target), matrix_of(self, source), self.side * self.side * sizeof(double))

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Set a slot's row and column to those of the identity."""
        cdef Py_ssize_t c, i
        cdef double* m
        if slot >= self.side:
            return
        for c in range(self.problems):
            m = matrix_of(self, c)
            memset(m + slot * self.side, 0, self.side * sizeof(double))
            for i in range(self.side):
                m[i * self.side + slot] = 0.0
            m[slot * self.side + slot] = 1.0

    cdef void release(self) noexcept nogil:
        """Free all matrices."""
        free(self.data)
        self.data = NULL
        self.problems = 0
        self.side = 0

    def dump(self, Py_ssize_t problems, Py_ssize_t size):
        """Return the first matrices, cut to the first `size` slots, as an array."""
        cdef Py_ssize_t cut = min(size, self.side), c, i
        cdef double[:, :, ::1] out = np.zeros((problems, cut, cut))
        if problems > self.problems:
            raise ValueError(f"there are {self.problems} matrices, not {problems}")
        for c in range(problems if cut else 0):
            for i in range(cut):
                memcpy(&out[c, i, 0], matrix_of(self, c) + i * self.side, cut * sizeof(double))
        return np.asarray(out)

    def fill(self, const double[:, :, ::1] given not None, Py_ssize_t problems):
        """Restore the matrices from dump(); call reserve() first."""
        cdef Py_ssize_t cut = given.shape[1], c, i
        if given.shape[0] != problems or cut != given.shape[2] or cut > self.side or problems > self.problems:
            raise ValueError(f"matrices of the shape {tuple(given.shape)} for {problems} problems of {self.side} slots")
        for c in range(problems if cut else 0):
            for i in range(cut):
                memcpy(matrix_of(self, c) + i * self.side, &given[c, i, 0], cut * sizeof(double))

    def nbytes(self):
        """Return the allocated bytes."""
        return self.problems * self.side * self.side * sizeof(double)

"""Weights of a mixture's experts over the stream, for reports."""

import numpy as np

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from varifold._numeric.memory cimport allocate

from varifold._engine.state import checked_array

cdef enum:
    ROWS = 64    # when there are as many, every other one is dropped


cdef class WeightHistory:
    """At most ROWS rows of weights, spread evenly over the stream."""

    def __cinit__(self, int width):
        self.width = width
        self.every = 1
        self.weights = <double*> allocate(ROWS * width * sizeof(double))
        self.step = <int64_t*> allocate(ROWS * sizeof(int64_t))
        if self.weights == NULL or self.step == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.weights)
        free(self.step)

    cdef double* next_row(self, int64_t step) noexcept nogil:
        """Return where to write the weights after this step; NULL if it gets no row."""
        cdef int64_t i
        if step % self.every:
            return NULL
        if self.count == ROWS:
            for i in range(ROWS // 2):
                self.step[i] = self.step[2 * i]
                memcpy(self.weights + i * self.width, self.weights + 2 * i * self.width, self.width * sizeof(double))
            self.count = ROWS // 2
            self.every *= 2
            if step % self.every:
                return NULL
        self.step[self.count] = step + 1
        self.count += 1
        return self.weights + (self.count - 1) * self.width

    def rows(self):
        """Return (steps, weights after each of them)."""
        cdef Py_ssize_t i
        cdef int e
        steps = np.array([self.step[i] for i in range(self.count)], dtype=np.int64)
        weights = np.array([[self.weights[i * self.width + e] for e in range(self.width)] for i in range(self.count)])
        return steps, weights.reshape(len(steps), self.width)

    def dump(self):
        """Return the rows as arrays of a file."""
        steps, weights = self.rows()
        return {"history.step": steps, "history.weights": weights,
                "history.every": np.array([self.every], dtype=np.int64)}

    def fill(self, dict arrays):
        """Restore what dump() returned."""
        cdef Py_ssize_t i
        cdef int e
        steps = checked_array(arrays, "history.step", "i", (None,), 0).tolist()
        if len(steps) > ROWS:
            raise ValueError(f"a history of {len(steps)} rows; there are at most {ROWS}")
        weights = checked_array(arrays, "history.weights", "f", (len(steps), self.width))
        self.every = checked_array(arrays, "history.every", "i", (1,), 1, 1 << 53)[0]
        self.count = len(steps)
        for i in range(self.count):
            self.step[i] = steps[i]
            for e in range(self.width):
                self.weights[i * self.width + e] = weights[i, e]

"""Target of an imputer, which learns without labels: its prediction is the absent values."""

cimport cython
import numpy as np

from libc.math cimport NAN
from libc.string cimport memcpy

from varifold._engine.data.block cimport Block
from varifold._engine.targets.target cimport Target


@cython.final
cdef class NoTarget(Target):
    """No truth. The prediction is what the model imputes by slot: value, low and high, NaN where it has no estimate."""

    # the instance at hand, by slot
    cdef object imputed          # array [value, low, high][slot]
    cdef double* value
    cdef double* low
    cdef double* high
    # the block at hand
    cdef Py_ssize_t width
    cdef double* out             # [row][slot] imputed values

    cdef int begin(self, bint probabilities, bint bounds) except -1:
        cdef double[:, ::1] view
        self.imputed = np.full((3, self.instance.space.size), np.nan)
        view = self.imputed
        self.width = view.shape[1]
        self.value = &view[0, 0]
        self.low = &view[1, 0]
        self.high = &view[2, 0]
        return 0

    cdef void predict(self) noexcept nogil:
        self.model.impute(&self.instance.view, self.value, self.low, self.high)

    cdef void learn(self, double w) noexcept nogil:
        if self.sees_instance():
            self.model.learn(&self.instance.view, 0, w)

    # ---------------------------------------------------------------- the rows of a block

    cdef int begin_block(self, Block block, bint learn, bint predict, bint probabilities, bint bounds) except -1:
        cdef double[:, ::1] out
        cdef Py_ssize_t n = len(block)
        if learn and predict:
            raise NotImplementedError("values are imputed between blocks, not while a block is learned")
        self.begin(False, False)
        values = np.full((max(1, n if predict else 0), self.width), np.nan)
        out = values
        self.out = &out[0, 0]
        self.outputs = (block, values[:n] if predict else None)
        return 0

    cdef void write_row(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t i
        memcpy(self.out + row * self.width, self.value, self.width * sizeof(double))
        for i in range(self.width):
            self.value[i] = NAN    # the model writes only the values that it can estimate for the next row

    cdef object end_block(self):
        """Return the imputed values, rows x slots."""
        if self.outputs is None:
            return None
        _, values = self.outputs
        self.outputs = None
        return values

    cdef object prediction(self):
        return self.imputed

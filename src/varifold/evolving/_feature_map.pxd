from libc.stdint cimport int32_t

from varifold.evolving._overlap cimport Overlap


cdef class FeatureMap:
    """Linear map from new to old features: base + sum over inputs of (value - mean) * matrix row."""
    cdef readonly Py_ssize_t inputs, outputs    # 0 outputs: no map
    cdef readonly double ridge
    cdef readonly bint spread                   # inputs measured in units of their spread in the overlap
    cdef Py_ssize_t capacity_in, capacity_out   # allocated inputs and outputs
    cdef int32_t* input
    cdef int32_t* output
    cdef double* mean                           # of an input; 0 without a constant
    cdef double* unit                           # spread of an input; 1 when not measured
    cdef double* base                           # of an output
    cdef double* matrix                         # [input][output]
    # workspace of solve(), allocated while an overlap runs
    cdef Py_ssize_t solve_in, solve_out
    cdef double* left                           # the overlap's inputs, column by column
    cdef double* right                          # its outputs, then the solution
    cdef int* pivot
    cdef double* work
    cdef int work_size

    cdef void clear(self) noexcept nogil
    cdef int reserve(self, Py_ssize_t inputs, Py_ssize_t outputs) except -1 nogil
    cdef int reserve_solve(self, Py_ssize_t inputs, Py_ssize_t outputs) except -1 nogil
    cdef void release_solve(self) noexcept nogil
    cdef bint solve(self, Overlap o) noexcept nogil
    cdef Py_ssize_t measure_inputs(self, Overlap o, Py_ssize_t first, Py_ssize_t fixed) noexcept nogil
    cdef void least_squares(self, Overlap o, Py_ssize_t first, Py_ssize_t fixed, Py_ssize_t p) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil

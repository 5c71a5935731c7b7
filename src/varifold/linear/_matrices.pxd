from libc.stdint cimport int32_t

cdef class ProblemMatrices:
    cdef double* data              # [problem][side][side]
    cdef Py_ssize_t side           # rows and columns of each matrix
    cdef Py_ssize_t problems       # allocated matrices

    cdef int reserve(self, Py_ssize_t problems, Py_ssize_t side) except -1
    cdef int add_problems(self, Py_ssize_t problems) except -1
    cdef int add_rows(self, Py_ssize_t side) except -1
    cdef void copy_problem(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil
    cdef void release(self) noexcept nogil


cdef inline double* matrix_of(ProblemMatrices m, Py_ssize_t problem) noexcept nogil:
    """Return the matrix of a problem, in row-major order."""
    return m.data + problem * m.side * m.side

cimport cython

from varifold._engine.targets.target cimport Target


@cython.final
cdef class NoTarget(Target):
    # the instance at hand, by slot
    cdef object imputed          # array [value, low, high][slot]
    cdef double* value
    cdef double* low
    cdef double* high
    # the block at hand
    cdef Py_ssize_t width
    cdef double* out             # [row][slot] imputed values

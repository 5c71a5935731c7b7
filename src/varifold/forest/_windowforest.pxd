from libc.stdint cimport int32_t

from varifold._engine.view cimport View
from varifold.forest._window_trees cimport WindowTrees

cdef class WindowForestModel(WindowTrees):
    cdef double* mean                  # scratch [class]
    cdef double* chance                # scratch [class]

    cdef void ask_trees(self, double* out, int y, double w) noexcept nogil
    cdef void descend(self, int32_t node, int y, double w) noexcept nogil
    cdef void absorb(self, View* v, int y, double w, double* out) noexcept nogil
    cdef double share(self, View* v, int label) noexcept nogil
    cdef double follow(self, int32_t node, int label) noexcept nogil

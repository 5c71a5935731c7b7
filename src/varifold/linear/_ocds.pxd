from libc.stdint cimport int32_t

from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class OCDSRule(BinaryRule):
    cdef readonly double alpha, beta1, beta2, gamma
    cdef readonly Py_ssize_t T, max_dense
    cdef Py_ssize_t side                 # slots in the graph
    cdef double* graph                   # [problem][side][side]: from an observed feature to one reconstructed
    cdef double* psi                     # scratch, [side]
    cdef double* pull                    # scratch, [side]
    cdef double* order                   # scratch, [capacity]

    cdef int grow_graph(self, int problems, Py_ssize_t side) except -1
    cdef inline Py_ssize_t held(self) noexcept nogil
    cdef void reconstruct(self, View* v, int c) noexcept nogil
    cdef void partial(self, View* v, int c, double* seen, double* rebuilt) noexcept nogil
    cdef void smooth(self, int c) noexcept nogil
    cdef void truncate(self, View* v, int c) noexcept nogil

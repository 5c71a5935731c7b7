from libc.stdint cimport int32_t, uint8_t

from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View
from varifold.linear._matrices cimport ProblemMatrices

cdef class OCDSRule(BinaryRule):
    cdef readonly double alpha, beta1, beta2, gamma
    cdef readonly Py_ssize_t T, max_dense
    cdef ProblemMatrices graph           # G by problem: from a feature present to one reconstructed
    cdef double* psi                     # scratch, by slot of the graph: the reconstruction
    cdef double* gradient                # scratch, by slot of the graph
    cdef double* scaled                  # scratch, by entry of the view: value over n, or times the step
    cdef int32_t* absent                 # scratch, by slot of the graph: those that the instance lacks
    cdef uint8_t* is_present             # scratch, by slot of the graph, all zero
    cdef double* order                   # scratch, by slot: the Laplacian times w, or weights to be sorted

    cdef inline Py_ssize_t in_use(self) noexcept nogil
    cdef Py_ssize_t in_graph(self, View* v) noexcept nogil
    cdef void reconstruct(self, View* v, int c) noexcept nogil
    cdef void partial(self, View* v, int c, double* seen, double* reconstructed) noexcept nogil
    cdef double update(self, View* v, int c, double y, double w) noexcept nogil
    cdef void set_gradient(self, View* v, int c, double error) noexcept nogil
    cdef void descend(self, View* v, int c, double error, double eta, double step) noexcept nogil
    cdef void smooth(self, int c) noexcept nogil
    cdef void truncate(self, View* v, int c) noexcept nogil

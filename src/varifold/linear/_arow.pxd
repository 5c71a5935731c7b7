
from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View
from varifold.linear._matrices cimport ProblemMatrices

cdef class AROWRule(BinaryRule):
    cdef readonly double r
    cdef readonly Py_ssize_t max_dense   # 0: diagonal from the start
    cdef readonly bint diagonal
    cdef ProblemMatrices covariance      # Sigma by problem; empty when diagonal
    cdef double* sigma_x                 # scratch: Sigma x, by slot

    cdef void become_diagonal(self) noexcept nogil
    cdef void keep_dense(self, View* v) noexcept nogil
    cdef void correct(self, View* v, int c, double error, double w) noexcept nogil
    cdef double largest_term(self, View* v) noexcept nogil
    cdef void correct_full(self, View* v, int c, double error, double w) noexcept nogil
    cdef double multiply(self, View* v, double* cov, Py_ssize_t side) noexcept nogil
    cdef bint stays_positive(self, double* cov, double confidence, double beta, Py_ssize_t side) noexcept nogil
    cdef void drop_covariances(self, View* v, double* cov) noexcept nogil

# Dense algebra on column-major matrices, in tiles small enough that the BLAS stays on the calling thread.
cdef enum:
    TILE = 60       # rows and columns of a tile at most

cdef void multiply(char left, char right, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha,
                   const double* a, Py_ssize_t lda, const double* b, Py_ssize_t ldb, double beta,
                   double* c, Py_ssize_t ldc) noexcept nogil
cdef void multiply_upper(char left, char right, Py_ssize_t n, Py_ssize_t k, const double* a, Py_ssize_t lda,
                         const double* b, Py_ssize_t ldb, double beta, double* c, Py_ssize_t ldc) noexcept nogil
cdef bint invert_spd(Py_ssize_t n, double* a, Py_ssize_t ld, double* scratch) noexcept nogil

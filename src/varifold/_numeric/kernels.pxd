"""Loops over contiguous numbers, also compiled for the wider registers of newer processors.

Each number is computed by the same operations in the same order whatever the width, so that results are identical
to the bit on every processor.
"""

cdef extern from "varifold/_numeric/kernels.h":
    # out += x a, and out -= x a
    void add_multiple "varifold_add"(Py_ssize_t n, double* out, double x, const double* a) noexcept nogil
    void subtract_multiple "varifold_subtract"(Py_ssize_t n, double* out, double x, const double* a) noexcept nogil
    # out += (x a + b)
    void add_scaled_sum "varifold_add_scaled_sum"(Py_ssize_t n, double* out, double x, const double* a,
                                                  const double* b) noexcept nogil
    # out += x[0] a + x[1] b + x[2] c + x[3] d, added in this order
    void add_four "varifold_add_four"(Py_ssize_t n, double* out, const double* x, const double* a, const double* b,
                                      const double* c, const double* d) noexcept nogil
    # out -= x[0] a[0] + x[every] a[1] + ..., one of the m terms at a time; a[h] starts at a + h * stride
    void subtract_columns "varifold_subtract_columns"(Py_ssize_t n, double* out, Py_ssize_t m, const double* x,
                                                      Py_ssize_t every, const double* a, Py_ssize_t stride) noexcept nogil
    # where a is a number: total += (x - a)^2, shared += 1
    void add_squares "varifold_add_squares"(Py_ssize_t n, double* total, double* shared, double x,
                                            const double* a) noexcept nogil
    # out /= a
    void divide_by "varifold_divide"(Py_ssize_t n, double* out, const double* a) noexcept nogil
    # out = number of the m cuts below each x
    void count_below "varifold_count_below"(Py_ssize_t n, const double* x, int m, const double* cut,
                                            int* out) noexcept nogil
    # out -= x a / by
    void subtract_quotients "varifold_subtract_quotients"(Py_ssize_t n, double* out, double x, const double* a,
                                                          double by) noexcept nogil
    # out = x a + (1 - x) b
    void blend "varifold_blend"(Py_ssize_t n, double* out, double x, const double* a, const double* b) noexcept nogil
    # out /= by
    void divide_all "varifold_divide_all"(Py_ssize_t n, double* out, double by) noexcept nogil

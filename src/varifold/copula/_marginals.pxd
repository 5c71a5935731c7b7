from libc.math cimport M_2_SQRTPI, M_SQRT1_2, erfc, exp
from libc.stdint cimport int32_t

from varifold._engine.state cimport State

# The normal score of one value given its window: a point, or an interval for an ordinal feature.
cdef struct Place:
    double z           # point, or the mean of the standard normal within (low, high]
    double low
    double high
    bint interval

# The last values of one feature; `sorted` holds the same values in ascending order.
cdef struct Window:
    int32_t n
    int32_t head       # where the oldest value is once the window is full
    int32_t levels     # distinct values
    double* ring
    double* sorted


cdef class Marginals:
    cdef State arrays
    cdef readonly Py_ssize_t size       # values a window holds
    cdef readonly Py_ssize_t levels     # maximum number of distinct values of an ordinal feature
    cdef Py_ssize_t capacity            # capacity for windows
    cdef Window* window
    cdef double* values                 # rings and sorted copies, window by window
    cdef double* quantile               # normal quantiles of i / (2 (size + 1)), for full windows

    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef int check_window(self, Py_ssize_t j) except -1
    cdef void clear(self, Py_ssize_t j) noexcept nogil
    cdef void start_at_zero(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil
    cdef double normal_quantile(self, Py_ssize_t twice, Py_ssize_t n) noexcept nogil
    cdef void place(self, Py_ssize_t j, double x, Place* out) noexcept nogil
    cdef void commit(self, Py_ssize_t j, double x) noexcept nogil
    cdef bint ordinal(self, Py_ssize_t j) noexcept nogil
    cdef double value(self, Py_ssize_t j, double z) noexcept nogil
    cdef double likeliest(self, Py_ssize_t j, double z, double sd) noexcept nogil
    cdef double split(self, Py_ssize_t j, double x) noexcept nogil


cdef inline double normal_cdf(double x) noexcept nogil:
    """Return the distribution function of the standard normal at x."""
    return 0.5 * erfc(-x * M_SQRT1_2)


cdef inline double normal_density(double x) noexcept nogil:
    """Return the density of the standard normal at x."""
    return 0.5 * M_SQRT1_2 * M_2_SQRTPI * exp(-0.5 * x * x)


cdef inline double normal_mass(double low, double high) noexcept nogil:
    """Return the probability of (low, high], computed in the tail on which the difference does not cancel."""
    if low > 0.0:
        return 0.5 * (erfc(low * M_SQRT1_2) - erfc(high * M_SQRT1_2))
    return 0.5 * (erfc(-high * M_SQRT1_2) - erfc(-low * M_SQRT1_2))

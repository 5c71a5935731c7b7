from libc.math cimport sqrt
from libc.stdint cimport int32_t

cdef enum ScaleKind:
    NONE = 0
    STANDARD = 1
    MINMAX = 2

# standard: weight, mean, sum of squared deviations; minmax: weight, smallest, largest.
cdef struct Stat:
    double weight
    double a
    double b

cdef class Scaler:
    cdef Stat* stat
    cdef Py_ssize_t capacity
    cdef readonly int kind
    cdef readonly double clip

    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef void forget(self, int32_t slot) noexcept nogil


cdef inline double absorb(Stat* s, double x, double w, int kind, double clip) noexcept nogil:
    """Let x join the statistics, then scale it by them."""
    cdef double d, z
    if kind == STANDARD:
        s.weight += w
        d = x - s.a
        s.a += d * (w / s.weight)
        d *= w
        s.b += d * (x - s.a)
        if s.b > 1e300:
            s.b = 1e300
        if s.b <= 0.0:
            return 0.0
        z = (x - s.a) * sqrt(s.weight / s.b)
        if z > clip:
            return clip
        if z < -clip:
            return -clip
        return z
    if kind == MINMAX:
        if s.weight == 0.0:
            s.a = x
            s.b = x
        elif x < s.a:
            s.a = x
        elif x > s.b:
            s.b = x
        s.weight += w
        return (x - s.a) / (s.b - s.a) if s.b > s.a else 0.0
    return x

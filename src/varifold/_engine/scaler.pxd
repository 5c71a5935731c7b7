from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.robust cimport STRIP, RobustStat
from varifold._numeric.bits cimport bits_of

cdef enum ScaleKind:
    NONE = 0
    STANDARD = 1
    MINMAX = 2
    ROBUST = 3

# standard: weight, mean, sum of squared deviations; minmax: weight, smallest, largest.
cdef struct Stat:
    double weight
    double a
    double b

cdef class Scaler:
    cdef Stat* stat              # of the other kinds
    cdef RobustStat* robust      # of the robust kind
    cdef Py_ssize_t capacity
    cdef readonly int kind
    cdef readonly double clip

    cdef char* rows(self) noexcept nogil
    cdef Py_ssize_t row_bytes(self) noexcept nogil
    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef void forget(self, int32_t slot) noexcept nogil


cdef inline double absorb_standard(Stat* s, double x, double w, double clip) noexcept nogil:
    """Update mean and deviation with x (Welford), then standardise it by them."""
    cdef double weight = s.weight + w
    cdef double d = x - s.a
    cdef double mean = s.a + d * (w / weight)
    cdef double left = x - mean
    cdef double gain = d * w * left
    cdef double m2 = s.b + (gain if gain > 0.0 else 0.0)  # below 0 if a mean of tiny weight is rounded past x
    cdef double z
    m2 = m2 if m2 < 1e300 else 1e300
    s.weight = weight
    s.a = mean
    s.b = m2
    if m2 <= 0.0:
        return 0.0
    z = left * sqrt(weight / m2)
    z = z if z < clip else clip
    return z if z > -clip else -clip


cdef inline void absorb_strip(Stat* stat, Py_ssize_t n, const int32_t* slot, const double* x, double w, double clip,
                              bint keep, double* out) noexcept nogil:
    """Do absorb_standard() for up to STRIP slots: gathered, so that the compiler vectorises divisions and roots."""
    cdef Stat* s
    cdef Py_ssize_t i, n_varied
    cdef double weight, mean, left, d, gain, m2, z
    cdef double weights[STRIP]
    cdef double means[STRIP]
    cdef double squares[STRIP]
    for i in range(n):
        # values that equal their means, such as words coded 1.0: mean and deviation stay, nothing is divided
        s = stat + slot[i]
        if bits_of(x[i]) != bits_of(s.a):
            break
        out[i] = 0.0
        if keep:
            s.weight += w
    else:
        return
    slot += i
    x += i
    out += i
    n -= i
    n_varied = n
    for i in range(n):
        s = stat + slot[i]
        weights[i] = s.weight
        means[i] = s.a
        squares[i] = s.b
    for i in range(n):
        weight = weights[i] + w
        d = x[i] - means[i]
        mean = means[i] + d * (w / weight)
        left = x[i] - mean
        gain = d * w * left
        m2 = squares[i] + (gain if gain > 0.0 else 0.0)
        weights[i] = weight
        means[i] = mean
        squares[i] = m2 if m2 < 1e300 else 1e300
        out[i] = left
    for i in range(n):
        if squares[i] > 0.0:
            break
    else:
        memset(out, 0, n * sizeof(double))  # none of them ever varied
        n_varied = 0
    for i in range(n_varied):
        z = out[i] * sqrt(weights[i] / squares[i])
        z = z if z < clip else clip
        z = z if z > -clip else -clip
        out[i] = z if squares[i] > 0.0 else 0.0
    if keep:
        for i in range(n):
            s = stat + slot[i]
            s.weight = weights[i]
            s.a = means[i]
            s.b = squares[i]


cdef inline double absorb_minmax(Stat* s, double x, double w) noexcept nogil:
    """Update the range with x, then return the position of x in it."""
    if s.weight == 0.0:
        s.a = x
        s.b = x
    elif x < s.a:
        s.a = x
    elif x > s.b:
        s.b = x
    s.weight += w
    return (x - s.a) / (s.b - s.a) if s.b > s.a else 0.0


cdef inline double absorb(Stat* s, double x, double w, int kind, double clip) noexcept nogil:
    """Update the statistics with x, then scale x by them."""
    if kind == STANDARD:
        return absorb_standard(s, x, w, clip)
    if kind == MINMAX:
        return absorb_minmax(s, x, w)
    return x

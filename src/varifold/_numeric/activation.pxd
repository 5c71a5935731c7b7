"""Sigmoid, softmax and the logistic loss, each without overflow."""

from libc.math cimport exp, fabs, log1p

cdef inline double sigmoid(double f) noexcept nogil:
    """Return 1 / (1 + e^-f)."""
    cdef double e
    if f >= 0.0:
        return 1.0 / (1.0 + exp(-f))
    e = exp(f)
    return e / (1.0 + e)

cdef inline void sigmoids(Py_ssize_t n, const double* f, double* out) noexcept nogil:
    """Compute sigmoid() of n numbers into another array, without branching on signs so that the loop vectorises."""
    cdef Py_ssize_t c
    for c in range(n):
        out[c] = exp(-fabs(f[c]))
    for c in range(n):
        out[c] = (1.0 if f[c] >= 0.0 else out[c]) / (1.0 + out[c])

cdef inline double log_loss(double f) noexcept nogil:
    """Return log(1 + e^-f), the logistic loss of a signed margin f."""
    return log1p(exp(-f)) if f > 0.0 else log1p(exp(f)) - f

cdef inline void softmax(int k, const double* z, double* out) noexcept nogil:
    """Compute out_c = e^z_c / sum of e^z; z and out may be the same array."""
    cdef int c
    cdef double top = z[0], total = 0.0
    for c in range(1, k):
        if z[c] > top:
            top = z[c]
    for c in range(k):
        out[c] = exp(z[c] - top)
        total += out[c]
    for c in range(k):
        out[c] /= total

cdef inline int argmax(int k, const double* z) noexcept nogil:
    """Return the index of the largest number, the first among equals."""
    cdef int c = 1, best = 0
    cdef double top = z[0]
    while c + 8 <= k:  # compare the maximum of eight first: a new maximum is rare
        if max(max(max(z[c], z[c + 1]), max(z[c + 2], z[c + 3])),
               max(max(z[c + 4], z[c + 5]), max(z[c + 6], z[c + 7]))) > top:
            for best in range(c, c + 8):
                top = max(top, z[best])
            best = c
            while z[best] != top:
                best += 1
        c += 8
    while c < k:
        if z[c] > top:
            top = z[c]
            best = c
        c += 1
    return best

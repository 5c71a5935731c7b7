from libc.math cimport copysign, fabs, sqrt
from libc.stdint cimport int32_t

from varifold._engine.models.one_vs_rest cimport BinaryRule

# A coordinate of FTRL-Proximal has three numbers, `plane` apart: z, the root of the summed squared gradients, and the
# weight that follows from both.

cdef struct Penalty:
    double slowness   # 1 / alpha
    double beta
    double l1
    double l2

cdef inline void proximal_step(double* s, Py_ssize_t plane, Penalty* p, double l1, double gradient) noexcept nogil:
    """Add a gradient: z += g - sigma w with sigma = (root' - root) / alpha, then the weight, 0 where |z| <= l1."""
    cdef double before = s[plane], root = sqrt(before * before + gradient * gradient)
    cdef double z = s[0] + (gradient - (root - before) * p.slowness * s[2 * plane])
    s[0] = z
    s[plane] = root
    if fabs(z) <= l1:
        s[2 * plane] = 0.0
    else:
        s[2 * plane] = -(z - l1 if z > 0.0 else z + l1) / ((p.beta + root) * p.slowness + p.l2)

cdef enum:
    STRIP = 64   # coordinates of one step_together()

cdef inline void step_together(Py_ssize_t n, double** at, Py_ssize_t plane, const double* gradient, Penalty* p,
                               double l1) noexcept nogil:
    """As proximal_step(), for up to STRIP coordinates that all differ.

    They are gathered and the cases written without branches, so that the compiler takes roots and divides in pairs.
    """
    cdef Py_ssize_t i
    cdef double z[STRIP]
    cdef double root[STRIP]
    cdef double w[STRIP]
    cdef double grown, beyond
    for i in range(n):
        z[i] = at[i][0]
        root[i] = at[i][plane]
        w[i] = at[i][2 * plane]
    for i in range(n):
        grown = sqrt(root[i] * root[i] + gradient[i] * gradient[i])
        z[i] += gradient[i] - (grown - root[i]) * p.slowness * w[i]
        root[i] = grown
        beyond = fabs(z[i]) - l1
        grown = copysign(beyond, -z[i]) / ((p.beta + grown) * p.slowness + p.l2)
        w[i] = 0.0 if beyond <= 0.0 else grown
    for i in range(n):
        at[i][0] = z[i]
        at[i][plane] = root[i]
        at[i][2 * plane] = w[i]

cdef class FTRLProximalRule(BinaryRule):
    cdef Penalty penalty

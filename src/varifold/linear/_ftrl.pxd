from libc.math cimport copysign, fabs, sqrt

from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._numeric.wide cimport inlined

# A coordinate of FTRL-Proximal has three numbers, `plane` apart: z, the root of the summed squared gradients, and the
# weight that follows from both.

cdef struct Penalty:
    double slowness   # 1 / alpha
    double beta
    double l1
    double l2

cdef enum:
    STRIP = 64   # coordinates of one step_scattered()


cdef inline inlined proximal_step(Py_ssize_t n, double* z, double* root, double* weight, const double* gradient,
                                  Penalty* p, double l1) noexcept nogil:
    """Add a gradient to each of n neighbouring coordinates (algorithm 1 of the paper).

    z += g - sigma w with sigma = (root' - root) / alpha, then w = -(z - sign(z) l1) / ((beta + root') / alpha + l2), or
    0 where |z| <= l1. The cases are written without branches, so that several roots and quotients are computed at once.
    """
    cdef Py_ssize_t i
    cdef double grown, moved, beyond, w
    cdef double slowness = p.slowness, beta = p.beta, l2 = p.l2
    for i in range(n):
        grown = sqrt(root[i] * root[i] + gradient[i] * gradient[i])
        moved = z[i] + (gradient[i] - (grown - root[i]) * slowness * weight[i])
        beyond = fabs(moved) - l1
        w = copysign(beyond, -moved) / ((beta + grown) * slowness + l2)
        z[i] = moved
        root[i] = grown
        weight[i] = 0.0 if beyond <= 0.0 else w


cdef inline void step_scattered(Py_ssize_t n, double** at, Py_ssize_t plane, const double* gradient, Penalty* p,
                                double l1) noexcept nogil:
    """Apply proximal_step() to up to STRIP distinct coordinates at arbitrary positions."""
    cdef Py_ssize_t i
    cdef double z[STRIP]
    cdef double root[STRIP]
    cdef double w[STRIP]
    for i in range(n):
        z[i] = at[i][0]
        root[i] = at[i][plane]
        w[i] = at[i][2 * plane]
    proximal_step(n, z, root, w, gradient, p, l1)
    for i in range(n):
        at[i][0] = z[i]
        at[i][plane] = root[i]
        at[i][2 * plane] = w[i]


cdef class FTRLProximalRule(BinaryRule):
    cdef Penalty penalty

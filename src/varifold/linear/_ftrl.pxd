from libc.math cimport copysign, fabs, sqrt
from libc.stdint cimport int32_t

from varifold._engine.one_vs_rest cimport BinaryRule

# A coordinate of FTRL-Proximal: z, the root of the summed squared gradients, and the weight that follows from both.
cdef struct Proximal:
    double z
    double root
    double w

cdef struct Penalty:
    double slowness   # 1 / alpha
    double beta
    double l1
    double l2

cdef inline void proximal_set(Proximal* s, Penalty* p, double l1) noexcept nogil:
    """The weight for z and root, in closed form: 0 where |z| <= l1."""
    if fabs(s.z) <= l1:
        s.w = 0.0
    else:
        s.w = -(s.z - l1 if s.z > 0.0 else s.z + l1) / ((p.beta + s.root) * p.slowness + p.l2)

cdef inline void proximal_step(Proximal* s, Penalty* p, double l1, double gradient) noexcept nogil:
    """Add a gradient: z += g - sigma w with sigma = (root' - root) / alpha, then the weight."""
    cdef double root = sqrt(s.root * s.root + gradient * gradient)
    s.z += gradient - (root - s.root) * p.slowness * s.w
    s.root = root
    proximal_set(s, p, l1)

cdef enum:
    TOGETHER = 64   # coordinates of one step_together()

cdef inline void step_together(Py_ssize_t n, Proximal** at, const double* gradient, Penalty* p, double l1) noexcept nogil:
    """As proximal_step(), for up to TOGETHER coordinates that all differ.

    They are gathered and the cases written without branches, so that the compiler takes roots and divides in pairs.
    """
    cdef Py_ssize_t i
    cdef double z[TOGETHER]
    cdef double root[TOGETHER]
    cdef double w[TOGETHER]
    cdef double grown, beyond
    for i in range(n):
        z[i] = at[i].z
        root[i] = at[i].root
        w[i] = at[i].w
    for i in range(n):
        grown = sqrt(root[i] * root[i] + gradient[i] * gradient[i])
        z[i] += gradient[i] - (grown - root[i]) * p.slowness * w[i]
        root[i] = grown
        beyond = fabs(z[i]) - l1
        grown = copysign(beyond, -z[i]) / ((p.beta + grown) * p.slowness + p.l2)
        w[i] = 0.0 if beyond <= 0.0 else grown
    for i in range(n):
        at[i].z = z[i]
        at[i].root = root[i]
        at[i].w = w[i]

cdef class FTRLProximalRule(BinaryRule):
    cdef Penalty penalty

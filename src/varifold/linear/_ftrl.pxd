from libc.math cimport fabs, sqrt
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

cdef class FTRLProximalRule(BinaryRule):
    cdef Penalty penalty

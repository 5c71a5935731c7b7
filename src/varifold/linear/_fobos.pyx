"""FOBOS: a gradient step, then every weight drawn to zero; for absent features that waits until they are looked at."""

from libc.math cimport copysign, fabs, sqrt
from libc.stdint cimport int32_t

from varifold._numeric.activation cimport sigmoid
from varifold._engine.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View

# shared numbers of a problem
cdef enum:
    T = 0        # rounds
    PULL = 1     # sum of all thresholds so far


cdef inline double drawn(double w, double by) noexcept nogil:
    cdef double left = fabs(w) - by
    return copysign(left if left > 0.0 else 0.0, w)


cdef class FOBOSRule(BinaryRule):
    """Per slot: the weight when last touched, and PULL then. The intercept is not drawn."""

    def __cinit__(self, double eta, double lam, bint hinge):
        self.declare_rule(2, 2)
        self.eta = eta
        self.lam = lam
        self.hinge = hinge

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        cdef double* s = at(self, slot, c)
        return drawn(s[0], self.shared[c * 2 + PULL] - s[1]) if slot != 0 else s[0]

    cdef double score(self, View* v, int c) noexcept nogil:
        cdef double* first = self.state + c * 2
        cdef double* s
        cdef double f = 0.0, pull = self.shared[c * 2 + PULL]
        cdef Py_ssize_t i = 0, stride = self.stride
        if v.n and v.slot[0] == 0:
            f = first[0] * v.x[0]
            i = 1
        while i < v.n:
            s = first + v.slot[i] * stride
            f += drawn(s[0], pull - s[1]) * v.x[i]
            i += 1
        return f

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        cdef double* g = self.shared + c * 2
        cdef double* first = self.state + c * 2
        cdef double* s
        cdef double f = self.score(v, c), margin = y * f, eta, step, before = g[PULL], after, pull
        cdef double* x = v.x
        cdef int32_t* slot = v.slot
        cdef Py_ssize_t i = 0, n = v.n, stride = self.stride
        g[T] += 1.0
        eta = self.eta / sqrt(g[T])
        if self.hinge:
            step = eta * w * y if margin < 1.0 else 0.0
        else:
            step = eta * w * y * sigmoid(-margin)
        g[PULL] += eta * self.lam
        pull = eta * self.lam
        after = g[PULL]
        if n and slot[0] == 0:
            first[0] += step * x[0]
            i = 1
        while i < n:
            s = first + slot[i] * stride
            s[0] = drawn(drawn(s[0], before - s[1]) + step * x[i], pull)
            s[1] = after
            i += 1
        return f

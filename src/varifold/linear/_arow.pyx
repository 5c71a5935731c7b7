"""AROW: a Gaussian over weight vectors, with diagonal or full covariance."""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from varifold._engine.one_vs_rest cimport BinaryRule, at, capped
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

cdef double LOST = 1e-13   # a variance below this share of its terms is what rounding left of them


cdef inline void add_rows(Py_ssize_t n, double* x, double* a, double* b, double* c, double* d,
                          double* out) noexcept nogil:
    """out += x0 a + x1 b + x2 c + x3 d, added in this order."""
    cdef Py_ssize_t j
    cdef double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3]
    for j in range(n):
        out[j] = out[j] + x0 * a[j] + x1 * b[j] + x2 * c[j] + x3 * d[j]


cdef class AROWRule(BinaryRule):
    """Per slot: the mean, and the precision gathered beyond the prior's 1 (diagonal form only)."""

    def __cinit__(self, double r, Py_ssize_t max_dense=0):
        self.declare_rule(2, 0)
        self.linear = True
        self.r = r
        self.max_dense = max_dense
        self.diagonal = max_dense == 0

    def __dealloc__(self):
        free(self.covariance)
        free(self.spread)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        BinaryRule.grow(self, capacity)
        if not self.diagonal and self.side < min(capacity, self.max_dense + 1):
            self.grow_covariance(self.problems, min(capacity, self.max_dense + 1))
        return 0

    cdef int grow_covariance(self, int problems, Py_ssize_t side) except -1:
        """Identity of the new size, with what was held copied in."""
        cdef double* new = <double*> calloc(problems * side * side, sizeof(double))
        cdef double* spread = <double*> calloc(side, sizeof(double))
        cdef Py_ssize_t c, i, held = self.side
        if new == NULL or spread == NULL:
            raise MemoryError
        for c in range(problems):
            for i in range(side):
                if i < held and c < self.problems and self.covariance != NULL:
                    memcpy(new + (c * side + i) * side, self.covariance + (c * held + i) * held, held * sizeof(double))
                else:
                    new[(c * side + i) * side + i] = 1.0
        free(self.covariance)
        free(self.spread)
        self.covariance = new
        self.spread = spread
        self.side = side
        return 0

    cdef int add_class(self) except -1:
        cdef int old = self.problems
        cdef Py_ssize_t whole = self.side * self.side
        if not self.diagonal and self.classes >= 2:
            self.grow_covariance(self.classes + 1, self.side)
            if old == 1:
                memcpy(self.covariance + whole, self.covariance, whole * sizeof(double))
        BinaryRule.add_class(self)
        return 0

    cdef void fall_back(self) noexcept nogil:
        """More features than max_dense: keep the variances, let the covariances go."""
        cdef Py_ssize_t c, i
        cdef double variance
        for c in range(self.problems):
            for i in range(self.side):
                variance = self.covariance[(c * self.side + i) * self.side + i]
                at(self, <int32_t> i, <int> c)[1] = 1.0 / variance - 1.0 if variance > 1e-12 else 1e12
        free(self.covariance)
        free(self.spread)
        self.covariance = NULL
        self.spread = NULL
        self.side = 0
        self.diagonal = True

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t c, i
        cdef double* cov
        BinaryRule.forget(self, slot)
        if self.diagonal or slot >= self.side:
            return
        for c in range(self.problems):
            cov = self.covariance + c * self.side * self.side
            for i in range(self.side):
                cov[i * self.side + slot] = 0.0
                cov[slot * self.side + i] = 0.0
            cov[slot * self.side + slot] = 1.0

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        cdef Py_ssize_t i = v.n
        while not self.diagonal and i > 0:  # every one: a holder may lay slots out in another order
            i -= 1
            if v.slot[i] > self.max_dense:
                self.fall_back()
        if self.diagonal:
            return self.update_diagonal(v, c, y, w)
        return self.update_full(v, c, y, w)

    cdef double update_diagonal(self, View* v, int c, double y, double w) noexcept nogil:
        cdef double f = self.score(v, c), loss = capped(1.0 - y * f)
        cdef double r = self.r / w
        cdef double confidence = 0.0, step, u
        cdef double* s
        cdef Py_ssize_t i
        if loss <= 0.0:
            return f
        for i in range(v.n):
            confidence += v.x[i] * (v.x[i] / (1.0 + at(self, v.slot[i], c)[1]))
        step = loss * y / (confidence + r)
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            s[0] += step * (v.x[i] / (1.0 + s[1]))
            s[1] += v.x[i] * v.x[i] / r
            if s[1] > 1e300:
                s[1] = 1e300
        return f

    cdef double widen(self, View* v, double* cov, Py_ssize_t side) noexcept nogil:
        """Covariance times x into `spread`; returns x' covariance x."""
        cdef double* u = self.spread
        cdef double* row
        cdef double x, confidence = 0.0
        cdef Py_ssize_t i, j
        memset(u, 0, side * sizeof(double))
        i = 0
        while i + 4 <= v.n:
            add_rows(side, v.x + i, cov + v.slot[i] * self.side, cov + v.slot[i + 1] * self.side,
                     cov + v.slot[i + 2] * self.side, cov + v.slot[i + 3] * self.side, u)
            i += 4
        while i < v.n:
            row = cov + v.slot[i] * self.side
            x = v.x[i]
            for j in range(side):
                u[j] += x * row[j]
            i += 1
        for i in range(v.n):
            confidence += v.x[i] * u[v.slot[i]]
        return confidence

    cdef double terms(self, View* v) noexcept nogil:
        """The largest term of the variance x' covariance x, after widen()."""
        cdef double most = 0.0
        cdef Py_ssize_t i
        for i in range(v.n):
            most = max(most, fabs(v.x[i] * self.spread[v.slot[i]]))
        return most

    cdef bint definite(self, double* cov, double confidence, double beta, Py_ssize_t side) noexcept nogil:
        """Whether the step leaves every variance positive, as it must but for rounding."""
        cdef Py_ssize_t j
        if confidence < 0.0:
            return False
        for j in range(side):
            if beta * self.spread[j] * self.spread[j] > cov[j * self.side + j] + 1e-9:
                return False
        return True

    cdef void uncouple(self, View* v, double* cov) noexcept nogil:
        """Keep the variances of the features present and let their covariances go."""
        cdef Py_ssize_t i, j
        cdef int32_t slot
        cdef double variance
        for i in range(v.n):
            slot = v.slot[i]
            variance = cov[slot * self.side + slot]
            for j in range(self.side):
                cov[j * self.side + slot] = 0.0
                cov[slot * self.side + j] = 0.0
            cov[slot * self.side + slot] = variance if variance > 0.0 else 0.0

    cdef double update_full(self, View* v, int c, double y, double w) noexcept nogil:
        cdef double f = self.score(v, c), loss = capped(1.0 - y * f)
        cdef double confidence, beta, x
        cdef double* u = self.spread
        cdef double* row
        cdef double* cov = self.covariance + c * self.side * self.side
        cdef Py_ssize_t i, j, side = self.space.size
        if not loss > 0.0:
            return f
        if side > self.side:
            side = self.side
        confidence = self.widen(v, cov, side)
        beta = 1.0 / (confidence + self.r / w)
        if not self.definite(cov, confidence, beta, side):
            self.uncouple(v, cov)
            confidence = self.widen(v, cov, side)
            beta = 1.0 / (confidence + self.r / w)
        if not confidence >= LOST * self.terms(v):
            return f
        for j in range(side):
            at(self, <int32_t> j, c)[0] += beta * loss * y * u[j]
        beta = sqrt(beta)
        for j in range(side):
            u[j] *= beta
        for i in range(side):
            x = u[i]
            if x == 0.0:
                continue
            row = cov + i * self.side
            for j in range(side):
                row[j] -= x * u[j]
        return f

    def dump(self, Py_ssize_t size):
        arrays = BinaryRule.dump(self, size)
        cdef double[::1] view
        if not self.diagonal:
            held = np.zeros(self.problems * self.side * self.side)
            view = held
            memcpy(&view[0], self.covariance, held.size * sizeof(double))
            cut = min(size, self.side)
            arrays["covariance"] = np.ascontiguousarray(
                held.reshape(self.problems, self.side, self.side)[:, :cut, :cut])
        elif self.max_dense:
            arrays["covariance"] = np.zeros((0, 0, 0))  # became its diagonal
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef double[:, :, ::1] view
        cdef Py_ssize_t c, i
        BinaryRule.fill(self, arrays, capacity)
        self.diagonal = self.max_dense == 0 or checked_array(arrays, "covariance", "f", (None, None, None)).shape == (0, 0, 0)
        free(self.covariance)
        self.covariance = NULL
        self.side = 0
        if self.diagonal:
            return
        self.grow_covariance(self.problems, min(capacity, self.max_dense + 1))
        view = checked_array(arrays, "covariance", "f", (None, None, None))
        if view.shape[0] != self.problems or view.shape[1] != view.shape[2] or view.shape[1] > self.side:
            raise ValueError("the covariance does not belong to this method")
        for c in range(self.problems):
            for i in range(view.shape[1]):
                memcpy(self.covariance + (c * self.side + i) * self.side, &view[c, i, 0],
                       view.shape[1] * sizeof(double))

    def notes(self):
        if self.max_dense and self.diagonal:
            return [f"more than max_dense={self.max_dense} features: the full covariance became its diagonal"]
        return []

    def nbytes(self):
        return BinaryRule.nbytes(self) + self.problems * self.side * self.side * sizeof(double)

"""OLVF: a margin learner whose step is weighted by a learned confidence in the feature set."""

from libc.math cimport exp, fabs, log1p
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from varifold._core.heap cimport Heap, heap_drop, heap_order, heap_touch
from varifold._core.model cimport BinaryRule, at, dot
from varifold._core.view cimport View

# shared numbers of a problem
cdef enum:
    SUM_BAR = 0   # sum of all space weights
    SCALE = 1     # factor on every stored weight (the projection, done once for all)
    MASS = 2      # sum of |w| |w_bar|


cdef inline double sigmoid(double f) noexcept nogil:
    return 1.0 / (1.0 + exp(-f)) if f >= 0.0 else exp(f) / (1.0 + exp(f))


cdef inline double floored(double p) noexcept nogil:
    return p if p > 1e-6 else 1e-6


cdef class OLVFRule(BinaryRule):
    """Per slot: weight (over SCALE) and space weight."""

    def __cinit__(self, double C, double C_bar, double lam, double B, bint kkt):
        self.width = 2
        self.globals = 3
        self.C = C
        self.C_bar = C_bar
        self.lam = lam
        self.B = B
        self.kkt = kkt
        self.sparse = B < 1.0

    def __dealloc__(self):
        self.free_heaps()

    cdef void free_heaps(self) noexcept:
        cdef int c
        for c in range(self.heaps):
            free(self.heap[c].item)
            free(self.heap[c].place)
        free(self.heap)
        self.heap = NULL
        self.heaps = 0

    cdef void start(self, int c) noexcept nogil:
        self.shared[c * self.globals + SCALE] = 1.0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        BinaryRule.grow(self, capacity)
        if self.sparse:
            self.fit_heaps()
        return 0

    cdef int add_class(self) except -1:
        cdef int old = self.problems
        BinaryRule.add_class(self)
        if self.sparse and self.problems != old:
            self.refill_heaps()
        return 0

    cdef int fit_heaps(self) except -1:
        """A heap a problem, each with room for every slot."""
        cdef int c
        cdef Heap* h
        if self.heaps < self.problems:
            self.heap = <Heap*> realloc(self.heap, self.problems * sizeof(Heap))
            if self.heap == NULL:
                raise MemoryError
            memset(self.heap + self.heaps, 0, (self.problems - self.heaps) * sizeof(Heap))
            self.heaps = self.problems
        for c in range(self.heaps):
            h = &self.heap[c]
            if h.capacity < self.capacity:
                h.item = <int32_t*> realloc(h.item, self.capacity * sizeof(int32_t))
                h.place = <int32_t*> realloc(h.place, self.capacity * sizeof(int32_t))
                if h.item == NULL or h.place == NULL:
                    raise MemoryError
                memset(h.place + h.capacity, 0, (self.capacity - h.capacity) * sizeof(int32_t))
                h.capacity = self.capacity
        return 0

    cdef int refill_heaps(self) except -1:
        """The heaps of the present state: every named slot with a weight or a space weight."""
        cdef int c
        cdef Py_ssize_t slot
        self.free_heaps()
        self.fit_heaps()
        for c in range(self.problems):
            self.aim(c)
            for slot in range(1, self.capacity):
                if at(self, <int32_t> slot, c)[0] != 0.0 or at(self, <int32_t> slot, c)[1] != 0.0:
                    heap_touch(&self.heap[c], <int32_t> slot)
        return 0

    cdef inline Heap* aim(self, int c) noexcept nogil:
        """The problem's heap, its keys pointing at the weights where they are now."""
        cdef Heap* h = &self.heap[c]
        h.key = self.state + c * self.width
        h.stride = self.problems * self.width
        return h

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int c
        for c in range(self.problems):
            self.clear(slot, c)
            if self.sparse:
                heap_drop(self.aim(c), slot)
        BinaryRule.forget(self, slot)

    cdef inline void clear(self, int32_t slot, int c) noexcept nogil:
        """Take a slot's weights out of the running sums and set them to zero."""
        cdef double* s = at(self, slot, c)
        cdef double* g = self.shared + c * self.globals
        g[MASS] -= fabs(s[0] * g[SCALE]) * fabs(s[1])
        g[SUM_BAR] -= s[1]
        s[0] = 0.0
        s[1] = 0.0

    cdef double score(self, View* v, int c) noexcept nogil:
        return dot(v, self.state + c * self.width, self.problems * self.width) * self.shared[c * self.globals + SCALE]

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return at(self, slot, c)[0] * self.shared[c * self.globals + SCALE]

    cdef void update(self, View* v, int c, double y, double w) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef double f = 0.0, bar = 0.0, sign, margin, slope, tau_bar, delta
        cdef double p_x, p_w, loss, old = 0.0, new = 0.0, tau, step_old, step_new, mass = 0.0
        cdef Py_ssize_t i, n = v.n, n_old = 0, stride = self.problems * self.width
        cdef double* base = self.state + c * self.width
        cdef double* x = v.x
        cdef int32_t* slot = v.slot
        cdef uint8_t* fresh = v.fresh
        cdef bint sparse = self.sparse
        cdef Heap* h = self.aim(c) if sparse else NULL
        for i in range(n):
            s = base + slot[i] * stride
            f += s[0] * x[i]
            bar += s[1]
            if fresh[i]:
                new += x[i] * x[i]
            else:
                old += x[i] * x[i]
                n_old += 1
            if sparse:
                mass += fabs(s[0]) * fabs(s[1])
        f *= g[SCALE]
        g[MASS] -= mass * g[SCALE]

        sign = 1.0 if (f > 0.0) == (y > 0.0) else -1.0
        margin = sign * bar
        tau_bar = self.C_bar * w
        if margin < -36.0:
            slope = 1.0
            tau_bar = min(tau_bar, -margin / n)
        else:
            slope = exp(-margin)
            if margin < 36.0:
                tau_bar = min(tau_bar, log1p(slope) * (1.0 + slope) * (1.0 + slope) / (slope * slope * n))
            slope /= 1.0 + slope
        delta = tau_bar * sign * slope
        p_x = floored(sigmoid(bar + n * delta))
        p_w = floored(sigmoid(g[SUM_BAR] + n_old * delta))
        g[SUM_BAR] += n * delta

        loss = 1.0 - y * f
        step_old = 0.0
        step_new = 0.0
        if loss > 0.0 and old + new > 0.0:
            if self.kkt:
                tau = min(self.C * w, loss / (old / p_w + new / p_x))
                step_old = tau / p_w * y / g[SCALE]
                step_new = tau / p_x * y / g[SCALE]
            else:
                tau = min(self.C * w, loss / (old + new))
                step_old = tau * p_w * y / g[SCALE]
                step_new = tau * p_x * y / g[SCALE]
        mass = 0.0
        for i in range(n):
            s = base + slot[i] * stride
            s[0] += (step_new if fresh[i] else step_old) * x[i]
            s[1] += delta
            if sparse:
                mass += fabs(s[0]) * fabs(s[1])
                if slot[i] != 0:
                    heap_touch(h, slot[i])  # at once: a heap is set right after one changed key, not after several
        if sparse:
            g[MASS] += mass * g[SCALE]
            self.truncate(h, v.known, c)

    cdef inline void truncate(self, Heap* h, Py_ssize_t known, int c) noexcept nogil:
        """Project by one factor for all, then give up the smallest weights beyond the share kept."""
        cdef double* g = self.shared + c * self.globals
        cdef Py_ssize_t i, keep = <Py_ssize_t> (self.B * known)
        cdef int32_t slot
        if g[MASS] > self.lam:
            g[SCALE] *= self.lam / g[MASS]
            g[MASS] = self.lam
            if g[SCALE] < 1e-100:
                for i in range(self.capacity):
                    at(self, <int32_t> i, c)[0] *= g[SCALE]
                g[SCALE] = 1.0
                heap_order(h)  # weights that vanished tie now
        if keep < 1:
            keep = 1
        while h.n > keep:
            slot = h.item[0]
            heap_drop(h, slot)
            self.clear(slot, c)

    def fill(self, dict arrays, Py_ssize_t capacity):
        BinaryRule.fill(self, arrays, capacity)
        if self.sparse:
            self.refill_heaps()

    def nbytes(self):
        return BinaryRule.nbytes(self) + sum(2 * self.heap[c].capacity * sizeof(int32_t) for c in range(self.heaps))

"""OCDS: absent features are rebuilt from those present by a learned graph; both parts of the score are mixed."""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, qsort, realloc
from libc.string cimport memcpy, memset

from varifold._numeric.activation cimport log_loss, sigmoid
from varifold._engine.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

# shared numbers of a problem
cdef enum:
    ROUNDS = 0
    P = 1          # weight of the observed part, less 1/2
    LEAD = 2       # loss of the rebuilt part less that of the observed part


cdef int descending(const void* a, const void* b) noexcept nogil:
    cdef double p = (<const double*> a)[0], q = (<const double*> b)[0]
    return -1 if p > q else (1 if p < q else 0)


cdef inline double sign(double w) noexcept nogil:
    return <double> ((w > 0.0) - (w < 0.0))


cdef class OCDSRule(BinaryRule):
    """Per slot: the weight, and for slots outside the graph the factor that rebuilds it from itself, less 1."""

    def __cinit__(self, double alpha, double beta1, double beta2, double gamma, Py_ssize_t T, Py_ssize_t max_dense):
        self.declare_rule(2, 3)
        self.alpha = alpha
        self.beta1 = beta1
        self.beta2 = beta2
        self.gamma = gamma
        self.T = T
        self.max_dense = max_dense

    def __dealloc__(self):
        free(self.graph)
        free(self.psi)
        free(self.pull)
        free(self.order)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        BinaryRule.grow(self, capacity)
        if self.side < min(capacity, self.max_dense + 1):
            self.grow_graph(self.problems, min(capacity, self.max_dense + 1))
        self.order = <double*> realloc(self.order, self.capacity * sizeof(double))
        if self.order == NULL:
            raise MemoryError
        return 0

    cdef int grow_graph(self, int problems, Py_ssize_t side) except -1:
        """Identity of the new size, with what was held copied in."""
        cdef double* new = <double*> calloc(problems * side * side, sizeof(double))
        cdef Py_ssize_t c, i, held = self.side
        self.psi = <double*> realloc(self.psi, side * sizeof(double))
        self.pull = <double*> realloc(self.pull, side * sizeof(double))
        if new == NULL or self.psi == NULL or self.pull == NULL:
            raise MemoryError
        for c in range(problems):
            for i in range(side):
                if i < held and c < self.problems and self.graph != NULL:
                    memcpy(new + (c * side + i) * side, self.graph + (c * held + i) * held, held * sizeof(double))
                else:
                    new[(c * side + i) * side + i] = 1.0
        free(self.graph)
        self.graph = new
        self.side = side
        return 0

    cdef int add_class(self) except -1:
        cdef int old = self.problems
        cdef Py_ssize_t whole = self.side * self.side
        if self.classes >= 2:
            self.grow_graph(self.classes + 1, self.side)
            if old == 1:
                memcpy(self.graph + whole, self.graph, whole * sizeof(double))
        BinaryRule.add_class(self)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t c, i
        cdef double* g
        BinaryRule.forget(self, slot)
        if slot >= self.side:
            return
        for c in range(self.problems):
            g = self.graph + c * self.side * self.side
            for i in range(self.side):
                g[i * self.side + slot] = 0.0
                g[slot * self.side + i] = 0.0
            g[slot * self.side + slot] = 1.0

    cdef inline Py_ssize_t held(self) noexcept nogil:
        """Slots of the graph in use."""
        return self.space.size if self.space.size < self.side else self.side

    cdef void reconstruct(self, View* v, int c) noexcept nogil:
        """psi: every slot of the graph as those present rebuild it."""
        cdef double* row
        cdef double* psi = self.psi
        cdef double x
        cdef Py_ssize_t i, j, side = self.held()
        memset(psi, 0, side * sizeof(double))
        for i in range(v.n):
            if v.slot[i] >= self.side:
                break
            row = self.graph + (c * self.side + v.slot[i]) * self.side
            x = v.x[i] / v.n
            for j in range(side):
                psi[j] += row[j] * x

    cdef void partial(self, View* v, int c, double* seen, double* rebuilt) noexcept nogil:
        """The score of the features present, and that of those absent, as rebuilt in psi."""
        cdef Py_ssize_t i = 0, j, side = self.held()
        seen[0] = 0.0
        rebuilt[0] = 0.0
        for i in range(v.n):
            seen[0] += at(self, v.slot[i], c)[0] * v.x[i]
        i = 0
        for j in range(side):
            if i < v.n and v.slot[i] == j:
                i += 1
            else:
                rebuilt[0] += at(self, <int32_t> j, c)[0] * self.psi[j]

    cdef double score(self, View* v, int c) noexcept nogil:
        cdef double seen, rebuilt, p = 0.5 + self.shared[c * self.globals + P]
        self.reconstruct(v, c)
        self.partial(v, c, &seen, &rebuilt)
        return p * seen + (1.0 - p) * rebuilt

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """An absent feature's part goes to those it is rebuilt from."""
        cdef int c = label if self.problems > 1 else 0
        cdef double side_of = -1.0 if self.problems == 1 and label == 0 else 1.0
        cdef double p = 0.5 + self.shared[c * self.globals + P], through
        cdef double* row
        cdef Py_ssize_t i, j, k, side = self.held()
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2:
            return
        for i in range(v.n):
            through = 0.0
            if v.slot[i] < self.side:
                row = self.graph + (c * self.side + v.slot[i]) * self.side
                k = 0
                for j in range(side):
                    if k < v.n and v.slot[k] == j:
                        k += 1
                    else:
                        through += row[j] * at(self, <int32_t> j, c)[0]
            out[i] = side_of * v.x[i] * (p * at(self, v.slot[i], c)[0] + (1.0 - p) * through / v.n)

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """One update; returns the score before it."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef double* row
        cdef double* pull = self.pull
        cdef double seen, rebuilt, f, error = y, eta, step, norm_psi = 0.0, norm_x = 0.0, norm_w = 0.0, x, psi
        cdef Py_ssize_t i, j, side = self.held()
        self.reconstruct(v, c)
        self.partial(v, c, &seen, &rebuilt)
        f = (0.5 + g[P]) * seen + (1.0 - (0.5 + g[P])) * rebuilt
        g[ROUNDS] += 1.0
        g[LEAD] += w * (log_loss(y * rebuilt) - log_loss(y * seen))
        eta = w / sqrt(g[ROUNDS])

        for j in range(side):
            s = at(self, <int32_t> j, c)
            error -= s[0] * self.psi[j]
            norm_psi += self.psi[j] * self.psi[j]
            norm_w += s[0] * s[0]
        for i in range(v.n):
            norm_x += v.x[i] * v.x[i]
            if v.slot[i] >= self.side:
                s = at(self, v.slot[i], c)
                psi = (1.0 + s[1]) * v.x[i] / v.n
                error -= s[0] * psi
                norm_psi += psi * psi
                norm_w += s[0] * s[0]

        if not (norm_x < 1e280 and norm_psi < 1e280 and norm_w < 1e280):
            return f  # beyond what a step can be worked out for

        # what the graph is to move each column by, for a unit of x
        for j in range(side):
            self.pull[j] = error * at(self, <int32_t> j, c)[0]
        for i in range(v.n):
            if v.slot[i] < self.side:
                self.pull[v.slot[i]] += self.alpha * (v.x[i] - self.psi[v.slot[i]])
        step = eta
        if 4.0 * (self.alpha + norm_w) * norm_x * step > <double> v.n * v.n:
            step = <double> v.n * v.n / (4.0 * (self.alpha + norm_w) * norm_x)
        step *= 2.0 / v.n
        if 4.0 * norm_psi * eta > 1.0:
            eta = 1.0 / (4.0 * norm_psi)

        memset(self.order, 0, side * sizeof(double))
        if self.beta2 > 0.0:
            self.smooth(c)
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            if v.slot[i] < self.side:
                row = self.graph + (c * self.side + v.slot[i]) * self.side
                x = step * v.x[i]
                for j in range(side):
                    row[j] += x * pull[j]
            else:
                psi = (1.0 + s[1]) * v.x[i] / v.n
                x = error * s[0] + self.alpha * (v.x[i] - psi)
                s[0] += 2.0 * eta * error * psi - eta * self.beta1 * sign(s[0])
                s[1] += step * v.x[i] * x
        for j in range(side):
            s = at(self, <int32_t> j, c)
            s[0] += eta * (2.0 * error * self.psi[j] - self.beta1 * sign(s[0]) - 2.0 * self.beta2 * self.order[j])
        if self.beta1 > 0.0:
            i = 0
            for j in range(self.side, self.space.size):
                while i < v.n and v.slot[i] < j:
                    i += 1
                if i == v.n or v.slot[i] != j:
                    s = at(self, <int32_t> j, c)
                    s[0] -= eta * self.beta1 * sign(s[0])
        if self.gamma < 1.0:
            self.truncate(v, c)
        if <Py_ssize_t> g[ROUNDS] % self.T == 0:
            x = 8.0 * sqrt(1.0 / log(<double> self.T)) if self.T > 1 else sqrt(8.0 * log(2.0) / g[ROUNDS])
            g[P] = sigmoid(x * g[LEAD]) - 0.5
        return f

    cdef void smooth(self, int c) noexcept nogil:
        """The Laplacian of the graph, absolute and made symmetric, times the weights, into `order`."""
        cdef double* g = self.graph + c * self.side * self.side
        cdef double link, d
        cdef Py_ssize_t i, j, side = self.held()
        for i in range(side):
            for j in range(i + 1, side):
                link = 0.5 * (fabs(g[i * self.side + j]) + fabs(g[j * self.side + i]))
                d = at(self, <int32_t> i, c)[0] - at(self, <int32_t> j, c)[0]
                self.order[i] += link * d
                self.order[j] -= link * d

    cdef void truncate(self, View* v, int c) noexcept nogil:
        """Keep the share gamma of largest weights, the intercept aside."""
        cdef Py_ssize_t i, n = 0, keep = <Py_ssize_t> (self.gamma * v.known)
        cdef double least
        for i in range(1, self.space.size):
            if at(self, <int32_t> i, c)[0] != 0.0:
                self.order[n] = fabs(at(self, <int32_t> i, c)[0])
                n += 1
        if keep < 1:
            keep = 1
        if n <= keep:
            return
        qsort(self.order, n, sizeof(double), descending)
        least = self.order[keep - 1]
        for i in range(1, self.space.size):
            if fabs(at(self, <int32_t> i, c)[0]) < least:
                at(self, <int32_t> i, c)[0] = 0.0

    def dump(self, Py_ssize_t size):
        cdef double[::1] view = np.zeros(self.problems * self.side * self.side)
        memcpy(&view[0], self.graph, view.shape[0] * sizeof(double))
        cut = min(size, self.side)
        arrays = BinaryRule.dump(self, size)
        arrays["graph"] = np.ascontiguousarray(
            np.asarray(view).reshape(self.problems, self.side, self.side)[:, :cut, :cut])
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef const double[:, :, ::1] view = checked_array(arrays, "graph", "f", (None, None, None))
        cdef Py_ssize_t c, i
        BinaryRule.fill(self, arrays, capacity)
        free(self.graph)
        self.graph = NULL
        self.side = 0
        self.grow_graph(self.problems, min(capacity, self.max_dense + 1))
        self.order = <double*> realloc(self.order, self.capacity * sizeof(double))
        if self.order == NULL:
            raise MemoryError
        if view.shape[0] != self.problems or view.shape[1] != view.shape[2] or view.shape[1] > self.side:
            raise ValueError("the graph does not belong to this method")
        for c in range(self.problems):
            for i in range(view.shape[1]):
                memcpy(self.graph + (c * self.side + i) * self.side, &view[c, i, 0], view.shape[1] * sizeof(double))

    def notes(self):
        if self.space is not None and self.space.size > self.max_dense + 1:
            return [f"more than max_dense={self.max_dense} features: those that came later are not in the feature graph"]
        return []

    def nbytes(self):
        return BinaryRule.nbytes(self) + self.problems * self.side * self.side * sizeof(double)

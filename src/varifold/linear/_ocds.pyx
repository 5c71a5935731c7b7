"""OCDS: absent features are reconstructed from those present by a learned graph G; both parts of the score are mixed.

The objective of a round is (y - w.psi)^2 + alpha sum over present j of (x_j - psi_j)^2 + beta1 |w|_1 + beta2 w' L w,
with psi_j = 1/n sum over present i of G_ij x_i and L the Laplacian of G; w and G take one gradient step of rate
1 / sqrt(t) at once. The score is p times the score of the features present plus 1 - p times that of those absent.
Slots beyond max_dense are not in G: each is reconstructed from itself by one factor.
"""

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.activation cimport log_loss, sigmoid
from varifold._numeric.rows cimport add_rows, add_to_rows
from varifold._numeric.wide cimport wide
from varifold.linear._matrices cimport ProblemMatrices, matrix_of

from varifold._engine.state import checked_array, per_slot

# state per problem
cdef enum:
    ROUNDS = 0     # instances learned
    P = 1          # weight of the observed part, less 1/2
    LOSS_GAP = 2   # summed loss of the reconstructed part less that of the observed part


cdef int descending(const void* a, const void* b) noexcept nogil:
    """Compare for qsort(): the largest number first."""
    cdef double p = (<const double*> a)[0], q = (<const double*> b)[0]
    return -1 if p > q else (1 if p < q else 0)


cdef inline double sign(double w) noexcept nogil:
    """Return -1, 0 or 1."""
    return <double> ((w > 0.0) - (w < 0.0))


cdef class OCDSRule(BinaryRule)    # used by the functions before its definition


cdef wide add_graph_rows(OCDSRule rule, int c, Py_ssize_t side, Py_ssize_t n, const int32_t* row) noexcept nogil:
    """Add sum over present i of G_ij x_i / n to psi_j, for the first `side` slots j."""
    add_rows(rule.psi, matrix_of(rule.graph, c), rule.graph.side, side, n, row, rule.scaled)


cdef wide move_graph(OCDSRule rule, int c, Py_ssize_t side, Py_ssize_t n, const int32_t* row) noexcept nogil:
    """Add step x_i gradient_j to G_ij, for the first `side` slots j."""
    add_to_rows(matrix_of(rule.graph, c), rule.graph.side, side, n, row, rule.scaled, rule.gradient)


cdef class OCDSRule(BinaryRule):
    """Per slot and problem: the weight, and for slots outside the graph the reconstruction's factor, less 1."""

    cdef readonly double alpha, beta1, beta2, gamma
    cdef readonly Py_ssize_t T, max_dense
    cdef ProblemMatrices graph           # G by problem: from a feature present to one reconstructed
    cdef double* psi                     # scratch, by slot of the graph: the reconstruction
    cdef double* gradient                # scratch, by slot of the graph
    cdef double* scaled                  # scratch, by entry of the view: value over n, or times the step
    cdef int32_t* absent                 # scratch, by slot of the graph: those that the instance lacks
    cdef uint8_t* is_present             # scratch, by slot of the graph, all zero
    cdef double* order                   # scratch, by slot: the Laplacian times w, or weights to be sorted

    def __cinit__(self, double alpha, double beta1, double beta2, double gamma, Py_ssize_t T, Py_ssize_t max_dense):
        self.declare_rule(2, 3)
        self.alpha = alpha
        self.beta1 = beta1
        self.beta2 = beta2
        self.gamma = gamma
        self.T = T
        self.max_dense = max_dense
        self.graph = ProblemMatrices()
        self.arrays.scratch(&self.psi, per_slot(most=max_dense + 1))
        self.arrays.scratch(&self.gradient, per_slot(most=max_dense + 1))
        self.arrays.scratch(&self.scaled, per_slot())
        self.arrays.scratch(&self.absent, per_slot(most=max_dense + 1))
        self.arrays.scratch(&self.is_present, per_slot(most=max_dense + 1))
        self.arrays.scratch(&self.order, per_slot())

    # ---------------------------------------------------------------- memory

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.graph.reserve(self.problems, min(capacity, self.max_dense + 1))
        return BinaryRule.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        BinaryRule.reserve_class(self)
        if self.classes >= 2:
            self.graph.reserve(self.classes + 1, self.graph.side)
        return 0

    cdef void split(self) noexcept nogil:
        BinaryRule.split(self)
        self.graph.copy_problem(0, 1)

    cdef void forget(self, int32_t slot) noexcept nogil:
        BinaryRule.forget(self, slot)
        self.graph.forget(slot)

    # ---------------------------------------------------------------- predicting

    cdef inline Py_ssize_t in_use(self) noexcept nogil:
        """Return the number of slots of the graph that are in use."""
        return min(self.space.size, self.graph.side)

    cdef Py_ssize_t in_graph(self, View* v) noexcept nogil:
        """Count the entries of the view that are in the graph: slots ascend, so they come first."""
        cdef Py_ssize_t n = v.n
        while n > 0 and v.slot[n - 1] >= self.graph.side:
            n -= 1
        return n

    cdef void reconstruct(self, View* v, int c) noexcept nogil:
        """Compute psi: the reconstruction of every slot of the graph from those present."""
        cdef Py_ssize_t i, side = self.in_use(), n = self.in_graph(v)
        cdef double present = v.n
        cdef double* scaled = self.scaled
        memset(self.psi, 0, side * sizeof(double))
        for i in range(n):
            scaled[i] = v.x[i] / present
        add_graph_rows(self, c, side, n, v.slot)

    cdef void partial(self, View* v, int c, double* seen, double* reconstructed) noexcept nogil:
        """Compute the score of the features present, and that of the absent ones as reconstructed in psi."""
        cdef double* first = self.state + c
        cdef double f = 0.0
        cdef Py_ssize_t i, j, n = 0, stride = self.stride, inside = self.in_graph(v)
        cdef int32_t* absent = self.absent
        cdef uint8_t* is_present = self.is_present
        for i in range(v.n):
            f += first[v.slot[i] * stride] * v.x[i]
        seen[0] = f
        f = 0.0
        # branch-free, as the presence of slots is unpredictable
        for i in range(inside):
            is_present[v.slot[i]] = 1
        for j in range(self.in_use()):
            absent[n] = <int32_t> j
            n += 1 - is_present[j]
        for i in range(inside):
            is_present[v.slot[i]] = 0
        for i in range(n):
            f += first[absent[i] * stride] * self.psi[absent[i]]
        reconstructed[0] = f

    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil:
        """Add p times the score of the features present and 1 - p times that of those absent."""
        cdef double seen, reconstructed, p
        cdef int c
        for c in range(first, first + m):
            p = 0.5 + self.shared[c * self.globals + P]
            self.reconstruct(v, c)
            self.partial(v, c, &seen, &reconstructed)
            f[c - first] = p * seen + (1.0 - p) * reconstructed

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Attribute an absent feature's contribution to the features it is reconstructed from."""
        cdef int c = label if self.problems > 1 else 0
        cdef double direction = -1.0 if self.problems == 1 and label == 0 else 1.0
        cdef double p = 0.5 + self.shared[c * self.globals + P], through
        cdef double* row
        cdef Py_ssize_t i, j, k, side = self.in_use()
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2:
            return
        for i in range(v.n):
            through = 0.0
            if v.slot[i] < self.graph.side:
                row = matrix_of(self.graph, c) + v.slot[i] * self.graph.side
                k = 0
                for j in range(side):
                    if k < v.n and v.slot[k] == j:
                        k += 1
                    else:
                        through += row[j] * at(self, <int32_t> j, c)[0]
            out[i] = direction * v.x[i] * (p * at(self, v.slot[i], c)[0] + (1.0 - p) * through / v.n)

    # ---------------------------------------------------------------- learning

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        f[0] = self.update(v, first, y[0], w)

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """Update w and G by one gradient step, both from the same state; return the score before it."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef double seen, reconstructed, f, error = y, eta, step, norm_psi = 0.0, norm_x = 0.0, norm_w = 0.0, x, psi
        cdef double* first = self.state + c
        cdef Py_ssize_t i, j, side = self.in_use(), stride = self.stride
        self.reconstruct(v, c)
        self.partial(v, c, &seen, &reconstructed)
        f = (0.5 + g[P]) * seen + (1.0 - (0.5 + g[P])) * reconstructed
        g[ROUNDS] += 1.0
        g[LOSS_GAP] += w * (log_loss(y * reconstructed) - log_loss(y * seen))
        eta = w / sqrt(g[ROUNDS])

        # e = y - w.psi, and the squared norms that bound the steps
        for j in range(side):
            x = first[j * stride]
            psi = self.psi[j]
            error -= x * psi
            norm_psi += psi * psi
            norm_w += x * x
        for i in range(v.n):
            norm_x += v.x[i] * v.x[i]
            if v.slot[i] >= self.graph.side:
                s = at(self, v.slot[i], c)
                psi = (1.0 + s[self.plane]) * v.x[i] / v.n
                error -= s[0] * psi
                norm_psi += psi * psi
                norm_w += s[0] * s[0]

        if not (norm_x < 1e280 and norm_psi < 1e280 and norm_w < 1e280):
            return f  # too large for a finite step

        # both rates are lowered where a step of that size would overshoot
        step = eta
        if 4.0 * (self.alpha + norm_w) * norm_x * step > <double> v.n * v.n:
            step = <double> v.n * v.n / (4.0 * (self.alpha + norm_w) * norm_x)
        step *= 2.0 / v.n
        if 4.0 * norm_psi * eta > 1.0:
            eta = 1.0 / (4.0 * norm_psi)
        self.set_gradient(v, c, error)
        self.descend(v, c, error, eta, step)
        if self.gamma < 1.0:
            self.truncate(v, c)
        if <Py_ssize_t> g[ROUNDS] % self.T == 0:
            # p = e^-eta L_seen / (e^-eta L_seen + e^-eta L_reconstructed): the exponentially weighted mixture
            x = 8.0 * sqrt(1.0 / log(<double> self.T)) if self.T > 1 else sqrt(8.0 * log(2.0) / g[ROUNDS])
            g[P] = sigmoid(x * g[LOSS_GAP]) - 0.5
        return f

    cdef void set_gradient(self, View* v, int c, double error) noexcept nogil:
        """Compute minus the gradient by G_ij, without the factor 2 x_i / n: e w_j + alpha (x_j - psi_j) [j present]."""
        cdef double* gradient = self.gradient
        cdef double* first = self.state + c
        cdef Py_ssize_t i, j, stride = self.stride
        for j in range(self.in_use()):
            gradient[j] = error * first[j * stride]
        for i in range(v.n):
            if v.slot[i] < self.graph.side:
                gradient[v.slot[i]] += self.alpha * (v.x[i] - self.psi[v.slot[i]])

    cdef void descend(self, View* v, int c, double error, double eta, double step) noexcept nogil:
        """Move G by `step` and w by `eta` down their gradients."""
        cdef double* first = self.state + c
        cdef double* s
        cdef double x, psi
        cdef Py_ssize_t i, j, side = self.in_use(), n = self.in_graph(v), stride = self.stride
        memset(self.order, 0, side * sizeof(double))
        if self.beta2 > 0.0:
            self.smooth(c)
        for i in range(n):
            self.scaled[i] = step * v.x[i]
        move_graph(self, c, side, n, v.slot)
        for i in range(n, v.n):
            s = at(self, v.slot[i], c)
            psi = (1.0 + s[self.plane]) * v.x[i] / v.n
            x = error * s[0] + self.alpha * (v.x[i] - psi)
            s[0] += 2.0 * eta * error * psi - eta * self.beta1 * sign(s[0])
            s[self.plane] += step * v.x[i] * x
        if self.beta1 > 0.0 or self.beta2 > 0.0:
            for j in range(side):
                s = first + j * stride
                s[0] += eta * (2.0 * error * self.psi[j] - self.beta1 * sign(s[0]) - 2.0 * self.beta2 * self.order[j])
        else:
            for j in range(side):
                first[j * stride] += eta * (2.0 * error * self.psi[j])
        if self.beta1 > 0.0:
            i = 0
            for j in range(self.graph.side, self.space.size):
                while i < v.n and v.slot[i] < j:
                    i += 1
                if i == v.n or v.slot[i] != j:
                    s = at(self, <int32_t> j, c)
                    s[0] -= eta * self.beta1 * sign(s[0])

    cdef void smooth(self, int c) noexcept nogil:
        """Compute L w into `order`, L being the Laplacian of the graph with absolute, symmetrised weights."""
        cdef double* g = matrix_of(self.graph, c)
        cdef double link, d
        cdef Py_ssize_t i, j, side = self.in_use(), row = self.graph.side
        for i in range(side):
            for j in range(i + 1, side):
                link = 0.5 * (fabs(g[i * row + j]) + fabs(g[j * row + i]))
                d = at(self, <int32_t> i, c)[0] - at(self, <int32_t> j, c)[0]
                self.order[i] += link * d
                self.order[j] -= link * d

    cdef void truncate(self, View* v, int c) noexcept nogil:
        """Keep the share gamma of largest weights, not counting the intercept."""
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

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {**BinaryRule.dump(self, size), "graph": self.graph.dump(self.problems, size)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        graph = checked_array(arrays, "graph", "f", (None, None, None))
        self.graph.release()
        BinaryRule.fill(self, arrays, capacity)
        self.graph.reserve(self.problems, min(capacity, self.max_dense + 1))
        self.graph.fill(graph, self.problems)

    def notes(self):
        if self.space is not None and self.space.size > self.max_dense + 1:
            return [f"more than max_dense={self.max_dense} features: those that came later are not in the feature "
                    "graph"]
        return []

    def nbytes(self):
        return BinaryRule.nbytes(self) + self.graph.nbytes()

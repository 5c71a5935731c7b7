"""AROW (Crammer, Kulesza, Dredze 2009): a Gaussian N(mu, Sigma) over weight vectors, Sigma diagonal or full.

For an instance x of label y with hinge loss l = max(0, 1 - y mu.x), r being the parameter over the sample weight:
beta = 1 / (x' Sigma x + r), mu += beta l y Sigma x and Sigma -= beta Sigma x x' Sigma (the paper's figure 1).
The diagonal form adds x_i^2 / r to each precision 1 / Sigma_ii instead. `correct` is that step for any error in place
of l y, with which the rule also serves regression.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, at, capped
from varifold._engine.view cimport View
from varifold._numeric.kernels cimport add_four, add_multiple, subtract_multiple
from varifold._numeric.rows cimport add_rows
from varifold.linear._matrices cimport ProblemMatrices, matrix_of
from varifold.linear._problems cimport TILE, TOGETHER, add_variances, set_targets, step_gaussians, tile_width

from varifold._engine.merging import APPROXIMATE, natural_mean
from varifold._engine.state import checked_array, per_slot

cdef Py_ssize_t CACHED = 100_000   # numbers that stay in the cache from one instance to the next
cdef double LOST = 1e-13   # a variance below this share of its largest term is rounding error


def product_of_gaussians(means, covariances):
    """Mean and covariance of the product of Gaussians that share the prior N(0, I), which counts once."""
    prior = np.eye(len(means[0]))
    precision, pull = prior, np.zeros(len(prior))
    for mean, covariance in zip(means, covariances):
        values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
        own = (vectors / np.maximum(values, LOST)) @ vectors.T
        precision = precision + own - prior
        pull = pull + own @ mean
    values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
    covariance = (vectors / np.maximum(values, LOST)) @ vectors.T
    return covariance @ pull, 0.5 * (covariance + covariance.T)


cdef void learn_problems(AROWRule rule, View* v, int y, double w, double* scores) noexcept nogil:
    """update() of every problem of the diagonal form, with the scores before it, unless NULL.

    Where few problems are wrong, these are corrected one by one.
    """
    cdef double f[TOGETHER]
    cdef double target[TOGETHER]
    cdef double error[TOGETHER]
    cdef double active[TOGETHER]
    cdef double variance[TOGETHER]
    cdef double r = rule.r / w, loss
    cdef double* state
    cdef Py_ssize_t c, m, wrong, first = 0, together = tile_width(v.n)
    cdef bint large = 2 * v.n * rule.problems > CACHED
    cdef bint more
    while first < rule.problems:
        m = min(together, rule.problems - first)
        more = large and first + 2 * m <= rule.problems    # the next tile is fetched while this one is learned
        state = rule.state + first
        memset(f, 0, m * sizeof(double))
        add_rows(f, state, rule.stride, m, v.n, v.slot, v.x)
        set_targets(target, m, y - first)
        for c in range(m):
            loss = capped(1.0 - target[c] * f[c])
            active[c] = 1.0 if loss > 0.0 else 0.0
            error[c] = max(loss, 0.0) * target[c]
        wrong = 0
        for c in range(m):
            wrong += active[c] > 0.0
        if 8 * wrong < m:
            for c in range(m):
                if active[c] > 0.0:
                    rule.correct_diagonal(v, <int> (first + c), error[c], w)
        else:
            memset(variance, 0, m * sizeof(double))
            add_variances(variance, rule.tile, state + rule.plane, rule.stride, m, v.n, v.slot, v.x,
                          m - rule.plane if more else 0)
            for c in range(m):
                error[c] /= variance[c] + r
            step_gaussians(state, rule.stride, rule.plane, m, v.n, v.slot, v.x, rule.tile, error, active, r, 1e300,
                           m if more else 0)
        if scores != NULL:
            memcpy(scores + first, f, m * sizeof(double))
        first += m


cdef class AROWRule(BinaryRule):
    """Per slot and problem: the mean, and the precision beyond the prior's 1 (used in the diagonal form only)."""

    def __cinit__(self, double r, Py_ssize_t max_dense=0):
        self.declare_rule(2, 0)
        self.tile_room = TILE
        self.linear = True
        self.r = r
        self.max_dense = max_dense
        self.diagonal = max_dense == 0
        self.covariance = ProblemMatrices()
        if max_dense:
            self.arrays.scratch(&self.sigma_x, per_slot(most=max_dense + 1))

    # ---------------------------------------------------------------- room

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if not self.diagonal:
            self.covariance.reserve(self.problems, min(capacity, self.max_dense + 1))
        return BinaryRule.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        BinaryRule.reserve_class(self)
        if not self.diagonal and self.classes >= 2:
            self.covariance.reserve(self.classes + 1, self.covariance.side)
        return 0

    cdef void split(self) noexcept nogil:
        BinaryRule.split(self)
        if not self.diagonal:
            self.covariance.copy_problem(0, 1)

    cdef void forget(self, int32_t slot) noexcept nogil:
        BinaryRule.forget(self, slot)
        self.covariance.forget(slot)

    cdef void become_diagonal(self) noexcept nogil:
        """More features than max_dense: keep the variances and drop the covariances."""
        cdef Py_ssize_t i, side = self.covariance.side
        cdef int c
        cdef double variance
        for c in range(self.problems):
            for i in range(side):
                variance = matrix_of(self.covariance, c)[i * side + i]
                at(self, <int32_t> i, c)[self.plane] = 1.0 / variance - 1.0 if variance > 1e-12 else 1e12
        self.covariance.release()
        self.diagonal = True

    # ---------------------------------------------------------------- learning

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        cdef double f, loss
        self.keep_dense(v)
        f = self.score(v, c)
        loss = capped(1.0 - y * f)
        if loss > 0.0:
            self.correct(v, c, loss * y, w)
        return f

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.keep_dense(v)
        BinaryRule.learn(self, v, y, w)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        self.keep_dense(v)
        BinaryRule.learn_scored(self, v, y, w, scores, probs)

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        if self.diagonal and 0 < v.n <= TILE // 8:
            learn_problems(self, v, y, w, scores)
        else:
            BinaryRule.update_all(self, v, y, w, scores, chances)
        return False

    cdef void keep_dense(self, View* v) noexcept nogil:
        """Become diagonal when a feature lies beyond max_dense."""
        cdef Py_ssize_t i = v.n
        while not self.diagonal and i > 0:  # every entry: a model around this one may order its slots otherwise
            i -= 1
            if v.slot[i] > self.max_dense:
                self.become_diagonal()

    cdef void correct(self, View* v, int c, double error, double w) noexcept nogil:
        """Move the score of the instance towards score + error; keep_dense() was called for it."""
        if self.diagonal:
            self.correct_diagonal(v, c, error, w)
        else:
            self.correct_full(v, c, error, w)

    cdef void correct_diagonal(self, View* v, int c, double error, double w) noexcept nogil:
        """One step with a diagonal Sigma, kept as precisions."""
        cdef double r = self.r / w
        cdef double confidence = 0.0, step, more
        cdef double* s
        cdef Py_ssize_t i, plane = self.plane
        for i in range(v.n):
            confidence += v.x[i] * (v.x[i] / (1.0 + at(self, v.slot[i], c)[plane]))
        step = error / (confidence + r)
        for i in range(v.n):
            s = at(self, v.slot[i], c)
            s[0] += step * (v.x[i] / (1.0 + s[plane]))
            more = s[plane] + v.x[i] * v.x[i] / r
            s[plane] = 1e300 if more > 1e300 else more

    cdef double multiply(self, View* v, double* cov, Py_ssize_t side) noexcept nogil:
        """Sigma x into `sigma_x`; returns x' Sigma x."""
        cdef double* u = self.sigma_x
        cdef double confidence = 0.0
        cdef Py_ssize_t i, whole = self.covariance.side
        memset(u, 0, side * sizeof(double))
        i = 0
        while i + 4 <= v.n:
            add_four(side, u, v.x + i, cov + v.slot[i] * whole, cov + v.slot[i + 1] * whole,
                     cov + v.slot[i + 2] * whole, cov + v.slot[i + 3] * whole)
            i += 4
        while i < v.n:
            add_multiple(side, u, v.x[i], cov + v.slot[i] * whole)
            i += 1
        for i in range(v.n):
            confidence += v.x[i] * u[v.slot[i]]
        return confidence

    cdef double largest_term(self, View* v) noexcept nogil:
        """The largest term of x' Sigma x, after multiply()."""
        cdef double most = 0.0
        cdef Py_ssize_t i
        for i in range(v.n):
            most = max(most, fabs(v.x[i] * self.sigma_x[v.slot[i]]))
        return most

    cdef bint stays_positive(self, double* cov, double confidence, double beta, Py_ssize_t side) noexcept nogil:
        """Whether the step leaves every variance positive, as it must but for rounding."""
        cdef Py_ssize_t j
        if confidence < 0.0:
            return False
        for j in range(side):
            if beta * self.sigma_x[j] * self.sigma_x[j] > cov[j * self.covariance.side + j] + 1e-9:
                return False
        return True

    cdef void drop_covariances(self, View* v, double* cov) noexcept nogil:
        """Keep the variances of the features present and set their covariances to zero."""
        cdef Py_ssize_t i, j, side = self.covariance.side
        cdef int32_t slot
        cdef double variance
        for i in range(v.n):
            slot = v.slot[i]
            variance = cov[slot * side + slot]
            for j in range(side):
                cov[j * side + slot] = 0.0
                cov[slot * side + j] = 0.0
            cov[slot * side + slot] = variance if variance > 0.0 else 0.0

    cdef void correct_full(self, View* v, int c, double error, double w) noexcept nogil:
        """One step with the full Sigma; rounding that would leave a negative variance drops covariances instead."""
        cdef double confidence, beta
        cdef double* u = self.sigma_x
        cdef double* cov = matrix_of(self.covariance, c)
        cdef Py_ssize_t i, j, whole = self.covariance.side, side = min(self.space.size, whole)
        confidence = self.multiply(v, cov, side)
        beta = 1.0 / (confidence + self.r / w)
        if not self.stays_positive(cov, confidence, beta, side):
            self.drop_covariances(v, cov)
            confidence = self.multiply(v, cov, side)
            beta = 1.0 / (confidence + self.r / w)
        if not confidence >= LOST * self.largest_term(v):
            return
        for j in range(side):
            at(self, <int32_t> j, c)[0] += beta * error * u[j]
        beta = sqrt(beta)
        for j in range(side):
            u[j] *= beta
        for i in range(side):
            if u[i] != 0.0:
                subtract_multiple(side, cov + i * whole, u[i], u)

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        arrays = BinaryRule.dump(self, size)
        if not self.diagonal:
            arrays["covariance"] = self.covariance.dump(self.problems, size)
        elif self.max_dense:
            arrays["covariance"] = np.zeros((0, 0, 0))  # became its diagonal
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        covariance = checked_array(arrays, "covariance", "f", (None, None, None)) if self.max_dense else None
        self.diagonal = covariance is None or covariance.shape == (0, 0, 0)
        self.covariance.release()
        BinaryRule.fill(self, arrays, capacity)
        if not self.diagonal:
            self.covariance.reserve(self.problems, min(capacity, self.max_dense + 1))
            self.covariance.fill(covariance, self.problems)

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE

    def merge(self, parts):
        """The product of the Gaussians: natural parameters add up, the prior counts once."""
        states = [part.by_slot_problem("state") for part in parts]
        problems = parts[0].union.problems
        for part, state in zip(parts, states):
            part.rescaled(state[..., 0])
        merged = np.zeros_like(states[0])
        found = {"state": merged, "shared": np.zeros((problems, 0))}
        if self.max_dense and len(merged) <= self.max_dense + 1 and all(
                part.arrays["covariance"].size for part in parts):
            found["covariance"] = np.empty((problems, len(merged), len(merged)))
            given = [part.rescaled_covariances(part.by_problem_slots("covariance")) for part in parts]
            for c in range(problems):
                merged[:, c, 0], found["covariance"][c] = product_of_gaussians(
                    [state[:, c, 0] for state in states], [matrices[c] for matrices in given])
            return found
        if self.max_dense:
            found["covariance"] = np.zeros((0, 0, 0))
            for part, state in zip(parts, states):
                if part.arrays["covariance"].size:
                    variances = np.diagonal(part.by_problem_slots("covariance"), axis1=1, axis2=2).T
                    state[..., 1] = 1.0 / np.maximum(variances, 1e-12) - 1.0
        for part, state in zip(parts, states):
            part.rescaled_precisions(state[..., 1])
        merged[..., 0], merged[..., 1] = natural_mean([s[..., 0] for s in states], [s[..., 1] for s in states])
        return found

    def notes(self):
        if self.max_dense and self.diagonal:
            return [f"more than max_dense={self.max_dense} features: the full covariance became its diagonal"]
        return []

    def nbytes(self):
        return BinaryRule.nbytes(self) + self.covariance.nbytes()

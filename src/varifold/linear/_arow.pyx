"""AROW (Crammer, Kulesza, Dredze 2009): a Gaussian N(mu, Sigma) over weight vectors, Sigma diagonal or full.

For an instance x of label y with hinge loss l = max(0, 1 - y mu.x), r being the parameter over the sample weight:
beta = 1 / (x' Sigma x + r), mu += beta l y Sigma x and Sigma -= beta Sigma x x' Sigma (the paper's figure 1).
The diagonal form adds x_i^2 / r to each precision 1 / Sigma_ii instead. `correct` is that step for any error in place
of l y, with which the rule also serves regression.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, BinaryRule, at, capped
from varifold._engine.view cimport View
from varifold._numeric.kernels cimport add_four, add_multiple, subtract_multiple
from varifold._numeric.wide cimport inlined, wide
from varifold.linear._matrices cimport ProblemMatrices, matrix_of

from varifold._engine.merging import APPROXIMATE, natural_mean
from varifold._engine.state import checked_array, per_slot

cdef enum:
    FEW = 8    # with a loss in less than one of 8 problems, those are corrected one by one

cdef double LOST = 1e-13   # a variance below this share of its largest term is rounding error


def product_of_gaussians(means, covariances):
    """Return mean and covariance of the product of Gaussians that share the prior N(0, I), which counts once."""
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


cdef inline inlined correct_problems(AROWRule rule, View* v, int first, int m, const double* error,
                                     const double* active, double w) noexcept nogil:
    """Move the scores of m problems towards score + error, with a diagonal Sigma kept as precisions.

    beta = 1 / (x' Sigma x + r), mu += beta error Sigma x, and where active[c] is 1 a precision grows by x_i^2 / r.
    Sigma_ii = 1 / (1 + s), where s is the stored precision beyond the prior's 1, one plane after the means.
    """
    cdef double step[TOGETHER]    # first x' Sigma x, then beta error
    cdef double* s
    cdef double x, square, more, r = rule.r / w
    cdef Py_ssize_t i, plane = rule.plane
    cdef int c
    memset(step, 0, m * sizeof(double))
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first) + plane
        x = v.x[i]
        for c in range(m):
            step[c] += x * (x / (1.0 + s[c]))
    for c in range(m):
        step[c] = error[c] / (step[c] + r)
    for i in range(v.n):
        s = rule.state + (v.slot[i] * rule.stride + first)
        x = v.x[i]
        square = x * x / r
        for c in range(m):
            s[c] += step[c] * (x / (1.0 + s[plane + c]))
            more = s[plane + c] + square * active[c]
            s[plane + c] = 1e300 if more > 1e300 else more    # stays finite


cdef void correct_one(AROWRule rule, View* v, int c, double error, double w) noexcept nogil:
    cdef double active = 1.0
    correct_problems(rule, v, c, 1, &error, &active, w)


cdef wide correct_many(AROWRule rule, View* v, int first, int m, const double* error, const double* active,
                       double w) noexcept nogil:
    correct_problems(rule, v, first, m, error, active, w)


cdef class AROWRule(BinaryRule):
    """Per slot and problem: the mean, and the precision beyond the prior's 1 (used in the diagonal form only)."""

    def __cinit__(self, double r, Py_ssize_t max_dense=0):
        self.declare_rule(2, 0)
        self.r = r
        self.max_dense = max_dense
        self.diagonal = max_dense == 0
        self.covariance = ProblemMatrices()
        if max_dense:
            self.arrays.scratch(&self.sigma_x, per_slot(most=max_dense + 1))

    # ---------------------------------------------------------------- memory

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
        """Keep the variances and drop the covariances when there are more features than max_dense."""
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

    cdef int batch(self, View* v) noexcept nogil:
        return TOGETHER if self.diagonal else 1

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        """Update the problems with a hinge loss, one by one if they are few."""
        cdef double error[TOGETHER]
        cdef double active[TOGETHER]
        cdef double loss
        cdef int c, wrong = 0
        self.keep_dense(v)
        self.score_problems(v, first, m, f)
        for c in range(m):
            loss = capped(1.0 - y[c] * f[c])
            active[c] = 1.0 if loss > 0.0 else 0.0
            error[c] = loss * y[c] if loss > 0.0 else 0.0
            wrong += loss > 0.0
        if m > 1 and FEW * wrong >= m:
            correct_many(self, v, first, m, error, active, w)
            return
        for c in range(m if wrong else 0):
            if active[c] > 0.0:
                self.correct(v, first + c, error[c], w)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.keep_dense(v)
        BinaryRule.learn(self, v, y, w)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        self.keep_dense(v)
        BinaryRule.learn_scored(self, v, y, w, scores, probs)

    cdef void keep_dense(self, View* v) noexcept nogil:
        """Switch to the diagonal form when a slot is beyond max_dense."""
        cdef Py_ssize_t i = v.n
        while not self.diagonal and i > 0:  # check every entry: an enclosing model may order its slots differently
            i -= 1
            if v.slot[i] > self.max_dense:
                self.become_diagonal()

    cdef void correct(self, View* v, int c, double error, double w) noexcept nogil:
        """Move the score of the instance towards score + error; call keep_dense() first."""
        if self.diagonal:
            correct_one(self, v, c, error, w)
        else:
            self.correct_full(v, c, error, w)

    cdef double multiply(self, View* v, double* cov, Py_ssize_t side) noexcept nogil:
        """Compute Sigma x into `sigma_x`; return x' Sigma x."""
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
        """Return the largest term of x' Sigma x; call multiply() first."""
        cdef double most = 0.0
        cdef Py_ssize_t i
        for i in range(v.n):
            most = max(most, fabs(v.x[i] * self.sigma_x[v.slot[i]]))
        return most

    cdef bint stays_positive(self, double* cov, double confidence, double beta, Py_ssize_t side) noexcept nogil:
        """Test whether the step leaves every variance positive, as it does except for rounding."""
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
        """Update with the full Sigma; where rounding would make a variance negative, drop covariances instead."""
        cdef double confidence, beta
        cdef double* u = self.sigma_x
        cdef double* cov = matrix_of(self.covariance, c)
        cdef Py_ssize_t i, j, whole = self.covariance.side, side = min(self.space.size, whole)
        # beta = 1 / (x' Sigma x + r)
        confidence = self.multiply(v, cov, side)
        beta = 1.0 / (confidence + self.r / w)
        if not self.stays_positive(cov, confidence, beta, side):
            self.drop_covariances(v, cov)
            confidence = self.multiply(v, cov, side)
            beta = 1.0 / (confidence + self.r / w)
        if not confidence >= LOST * self.largest_term(v):
            return
        # mu += beta error Sigma x
        for j in range(side):
            at(self, <int32_t> j, c)[0] += beta * error * u[j]
        # Sigma -= beta Sigma x x' Sigma, of vectors scaled by the root of beta, so that it stays symmetric to the bit
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
            arrays["covariance"] = np.zeros((0, 0, 0))  # reduced to its diagonal
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
        """Multiply the Gaussians: natural parameters are summed, the prior counts once."""
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

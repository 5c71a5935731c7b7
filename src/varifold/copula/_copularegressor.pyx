"""Regression in the Gaussian copula: the target is one more column and is imputed from the present features.

The copula learns instances with their targets. To predict, the target's normal score given the scores of the observed
features is normal with mean Sigma_yo Sigma_oo^-1 z_o and the conditional variance; the values of the target's window between
whose ranks such a score falls have their probabilities by it, and the prediction is their mean.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from varifold._engine.names.table cimport NUMERIC
from varifold._engine.models.regression cimport RegressionModel
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View
from varifold.copula._latent cimport Copula
from varifold.copula._marginals cimport Window, normal_cdf
from varifold._numeric.hashing cimport mix, unit_interval

from varifold._engine.state import fixed, per_slot

cdef enum:
    TARGET = 1              # slot of the target in the copula's space
    MOST_INTERVALS = 128    # intervals of scores for which probabilities are computed, about

cdef double LEAST_SCORE = 1e-9    # smaller conditional means are not attributed to features


cdef class TargetCopula(Copula):
    """Learn the correlation of features and target, also from rows without a target.

    All U rows without a target together weigh at most as much as the L rows with one, in the correlation and in the
    windows. Else rare targets would hardly move the correlation, and the windows of features would hold more recent
    values than that of the target: if levels drift, the same rank would mean different times.
    """

    cdef double* unlabelled        # [1]: U, rows without a target learned

    def __cinit__(self):
        self.slot_arrays.declare("unlabelled", &self.unlabelled, fixed(1, low=0))

    cdef void learn_rest(self, View* v, double w) noexcept nogil:
        """Learn a row without a target; its values enter the windows with probability L / U, by a hash of the step.

        The target counts as active, so that no feature takes its node. Before the first target nothing is learned: the
        windows are empty.
        """
        if self.by_slot[TARGET].node == 0:
            return
        self.active[TARGET] += self.clock.unit * self.growth
        self.unlabelled[0] += 1.0
        self.learn_row(v, w, unit_interval(mix(<uint64_t> v.step)) * self.unlabelled[0]
                       < <double> self.updates[0] * self.batch + self.rows + 1.0 - self.unlabelled[0])

    cdef void update(self) noexcept nogil:
        """Mix each row's moments into the correlation with a step size of its own.

        A row with a target has that of the update k that it would be in if there were no others, any other row that
        times min(1, L / U). So Sigma <- (1 - gamma) Sigma + sum_r w_r gamma_r M_r / sum_r w_r, where gamma is the mean
        of the gamma_r by weight; with targets in all rows it is the copula's own update.
        """
        cdef Py_ssize_t i, n = 0
        cdef int32_t target = <int32_t> (self.by_slot[TARGET].node - 1)
        cdef double gamma, share, total = 0.0, moved = 0.0
        for i in range(self.rows):
            n += not self.has(i, target)
        gamma = self.step_size(self.updates[0] + (n - self.unlabelled[0]) / self.batch)
        share = ((self.updates[0] + 1.0) * self.batch - self.unlabelled[0]) / max(self.unlabelled[0], 1.0)
        for i in range(self.rows if n else 0):
            total += self.row_w[i]
            if share < 1.0 and not self.has(i, target):
                self.row_w[i] *= share
            moved += self.row_w[i]
        self.move(gamma * moved / total if n else gamma)

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef double rows
        Copula.fill(self, arrays, capacity)
        rows = <double> self.updates[0] * self.batch + self.rows
        if self.unlabelled[0] > rows:
            raise ValueError(f"{self.unlabelled[0]:g} of {rows:g} rows have no target")

    cdef bint has(self, Py_ssize_t row, int32_t node) noexcept nogil:
        """Return whether a row of the mini-batch observed the node."""
        cdef Py_ssize_t k, at = row * self.row_stride
        for k in range(at, at + self.row_n[row]):
            if self.row_node[k] == node:
                return True
        return False


cdef class CopulaRegression(RegressionModel):
    """Hold the copula over the features and the target."""

    cdef readonly TargetCopula copula
    cdef Space shifted             # the copula's space: slot 1 is the target, slot s + 1 the feature of slot s
    cdef View inner                # the instance in that space
    cdef int32_t* inner_slot       # scratch [slot]
    cdef double* inner_raw         # scratch [slot]
    cdef int32_t* place            # scratch [slot]: by column, where the view has it, plus 1
    cdef double* chance            # scratch [window]: probability of each value in the target's window, ascending
    cdef Py_ssize_t known          # values in the target's window when `chance` was made

    def __cinit__(self, TargetCopula copula not None, bint learn_unlabelled=False):
        self.copula = copula
        self.shifted = Space()
        self.sees_empty = True
        self.learns_unlabelled = learn_unlabelled
        self.arrays.scratch(&self.inner_slot, per_slot())
        self.arrays.scratch(&self.inner_raw, per_slot())
        self.arrays.scratch(&self.place, per_slot())
        self.arrays.scratch(&self.chance, fixed(copula.marginals.size))

    # ---------------------------------------------------------------- the copula's space

    cdef int attach(self, Space space) except -1:
        self.copula.attach(self.shifted)
        return RegressionModel.attach(self, space)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.shifted.grow(capacity + 1)
        self.copula.grow(capacity + 1)
        self.shifted.kind[TARGET] = NUMERIC
        self.shifted.column[TARGET] = TARGET
        return RegressionModel.grow(self, capacity)

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.copula.forget(slot + 1)

    cdef void copy_kind(self, int32_t slot) noexcept nogil:
        """Copy a feature's kind to the copula's space."""
        cdef int32_t column = self.space.column[slot]
        self.shifted.kind[slot + 1] = self.space.kind[slot]
        self.shifted.column[slot + 1] = column + 1
        self.shifted.seen[column + 1] = self.space.seen[column]

    cdef void lay_out(self, View* v) noexcept nogil:
        """Copy the instance to the copula's space, without the intercept, with a place for the target before it.

        Kinds are copied here and not only when learning: a text column may hold a number for the first time, and its
        levels are then observed zeros when predicting too.
        """
        cdef Py_ssize_t i, n = 1
        for i in range(v.n):
            if v.slot[i]:
                self.copy_kind(v.slot[i])
                self.inner_slot[n] = v.slot[i] + 1
                self.inner_raw[n] = v.raw[i]
                n += 1
        self.inner = v[0]
        self.inner.slot = self.inner_slot + 1
        self.inner.raw = self.inner_raw + 1
        self.inner.n = n - 1

    cdef Py_ssize_t target_node(self) noexcept nogil:
        """Return the target's node, -1 before any target."""
        return self.copula.by_slot[TARGET].node - 1

    # ---------------------------------------------------------------- learning and predicting

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        self.lay_out(v)
        self.inner_slot[0] = TARGET
        self.inner_raw[0] = y
        self.inner.slot = self.inner_slot
        self.inner.raw = self.inner_raw
        self.inner.n += 1
        self.copula.learn(&self.inner, w)

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Learn how the features depend on one another; the target is absent."""
        self.lay_out(v)
        if self.inner.n:
            self.copula.learn_rest(&self.inner, w)

    cdef double conditional(self, View* v, double* sd) noexcept nogil:
        """Compute mean and deviation of the target's score given the instance."""
        cdef Py_ssize_t node = self.target_node()
        self.lay_out(v)
        self.copula.observe(&self.inner)
        sd[0] = sqrt(self.copula.absent_variance(node, self.copula.invert()))
        return self.copula.score[node]

    cdef double expected(self, double z, double sd) noexcept nogil:
        """Return the mean of the target whose score is N(z, sd^2); store the probabilities of its values in `chance`.

        A value covers the scores nearer to its rank than to others'; with few levels, those of its interval.
        Without such levels neighbouring values of a long window share the probability of all of them evenly.
        """
        cdef Py_ssize_t node = self.target_node(), i = 0, end
        cdef Window* w = &self.copula.marginals.window[node]
        cdef bint ordinal = self.copula.marginals.ordinal(node)
        cdef Py_ssize_t together = 1 if ordinal else 1 + w.n // MOST_INTERVALS
        cdef double low = 0.0, high, share, mean = 0.0, middle = w.sorted[w.n // 2]
        self.known = w.n
        while i < w.n:
            end = min(i + together, w.n)
            high = 1.0
            if end < w.n:
                high = normal_cdf((self.copula.marginals.normal_quantile(2 * end + (not ordinal), w.n) - z) / sd)
            share = (high - low) / (end - i)
            while i < end:
                self.chance[i] = share
                mean += share * (w.sorted[i] - middle)
                i += 1
            low = high
        return middle + mean

    cdef double predict(self, View* v) noexcept nogil:
        cdef double z, sd
        cdef Py_ssize_t node = self.target_node()
        self.known = 0
        if node < 0 or self.copula.marginals.window[node].n == 0:
            return self.target.mean
        z = self.conditional(v, &sd)
        return self.expected(z, sd)

    def distribution(self):
        """Return the values of the target and their probabilities for the latest prediction."""
        cdef Py_ssize_t i, node = self.target_node()
        if self.known == 0:
            return np.array([self.target.mean]), np.ones(1)
        values = np.array([self.copula.marginals.window[node].sorted[i] for i in range(self.known)])
        return values, np.array([self.chance[i] for i in range(self.known)])

    # ---------------------------------------------------------------- looking inside

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return the absolute correlation of the feature's score with the target's."""
        cdef Py_ssize_t node = self.copula.by_slot[slot + 1].node - 1, target = self.target_node()
        return fabs(self.copula.sigma[target * self.copula.stride + node]) if node >= 0 and target >= 0 else 0.0

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Attribute the terms of the conditional mean to columns, scaled by its effect on the prediction."""
        cdef Py_ssize_t i, j, o, node = self.target_node()
        cdef double z, sd, base, scale, slope, rest
        cdef double* inverse
        cdef double* row
        memset(out, 0, v.n * sizeof(double))
        if v.n == 0 or node < 0 or self.copula.marginals.window[node].n == 0:
            return
        z = self.conditional(v, &sd)
        base = self.expected(0.0, sd)
        rest = self.expected(z, sd) - self.target.mean
        scale = (rest + self.target.mean - base) / z if fabs(z) > LEAST_SCORE else 0.0
        for i in range(v.n):
            self.place[self.space.column[v.slot[i]]] = <int32_t> (i + 1)
        o = self.copula.n
        inverse = self.copula.invert()
        row = self.copula.sigma + node * self.copula.stride
        for i in range(o):
            slope = 0.0
            for j in range(o):
                slope += inverse[i * o + j] * row[self.copula.node[j]]
            j = self.place[self.shifted.column[self.copula.by_node[self.copula.node[i]].slot] - 1] - 1
            out[j] += scale * slope * self.copula.z[i]
        for i in range(v.n):
            self.place[self.space.column[v.slot[i]]] = 0
            rest -= out[i]
        out[0] += rest

    def role(self, Py_ssize_t slot):
        return self.copula.role(slot + 1) or "outside"

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return self.copula.dump(size + 1)

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int32_t slot
        self.grow(capacity)
        for slot in range(1, <int32_t> self.space.size):
            self.copy_kind(slot)
        if self.alone and len(arrays["active"]) != self.space.size + 1:
            raise ValueError(f"{len(arrays['active'])} features of the copula for {self.space.size} slots")
        self.copula.fill(arrays, capacity + 1)

    def nbytes(self):
        return self.arrays.nbytes() + self.copula.nbytes()

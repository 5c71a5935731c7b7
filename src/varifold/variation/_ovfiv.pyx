"""OVFIV: a learner on values and a sparse learner on column absence, mixed by exponential weights."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memset

from varifold._numeric.hedge cimport Experts, experts_learn, experts_weights
from varifold._engine.models.model cimport Model
from varifold._engine.names.space cimport Space, seen_count
from varifold._engine.view cimport View
from varifold.variation._variation cimport VariationLearner

from varifold._engine.state import fixed, per_class, per_slot
from varifold._numeric.hedge import RATES

cdef enum:
    VALUES = 0       # the experts
    VARIATION = 1

INTERCEPT = "(intercept)"


cdef inline double unit(double p) noexcept nogil:
    """Clip p to [0, 1]."""
    return 0.0 if p < 0.0 else (1.0 if p > 1.0 else p)


cdef inline double bounded(double score) noexcept nogil:
    """Bound a score, so that its square is finite."""
    return min(max(score, -1e100), 1e100)


cdef class OVFIVModel(Model):
    """Mixture with scores 2 p - 1, p being the mixed class probability; with `mix_scores`, the mixed scores."""

    cdef readonly Model base
    cdef readonly VariationLearner variation
    cdef readonly bint only_variation  # the variation learner alone predicts; the base learner only counts classes
    cdef readonly bint mix_scores      # mix and evaluate scores instead of probabilities
    cdef Experts experts             # its losses are stored in `mixing`
    cdef double prior                # weight of the base learner before any loss
    cdef double* mixing              # [3]: rounds and losses of the experts
    cdef double* counts              # [class]: weight learned
    cdef double* base_score          # scratch [class], as are the next three
    cdef double* base_proba
    cdef double* own_score           # scores of the variation learner, by problem
    cdef double* own_proba
    cdef View known_part             # scratch: the instance without new slots and columns
    cdef int32_t* known_slot
    cdef int32_t* known_column
    cdef double* known_x
    cdef double* known_raw
    cdef uint8_t* known_is_new       # all zero

    def __cinit__(self, Model base not None, str rate, double eta, double L1, double alpha, double beta, double L2,
                  str encode, bint bias=True, bint only_variation=False, bint mix_scores=False, double prior=0.5):
        self.base = base
        self.hold("base.", base)
        self.only_variation = only_variation
        self.mix_scores = mix_scores
        self.prior = prior
        self.variation = VariationLearner(L1, alpha, beta, L2, encode, bias)
        self.wants_columns = True
        self.sees_empty = True
        self.declare_arrays()
        self.experts.k = 2
        self.experts.rate = RATES[rate]
        self.experts.eta = eta
        self.experts.held = self.mixing + 1

    cdef int declare_arrays(self) except -1:
        self.arrays.declare("experts", &self.mixing, fixed(3))
        self.arrays.declare("counts", &self.counts, per_class(low=0))
        self.arrays.scratch(&self.base_score, per_class())
        self.arrays.scratch(&self.base_proba, per_class())
        self.arrays.scratch(&self.own_score, per_class())
        self.arrays.scratch(&self.own_proba, per_class())
        self.arrays.scratch(&self.known_slot, per_slot())
        self.arrays.scratch(&self.known_column, per_slot())
        self.arrays.scratch(&self.known_x, per_slot())
        self.arrays.scratch(&self.known_raw, per_slot())
        self.arrays.scratch(&self.known_is_new, per_slot())
        self.arrays.reserve_classes(2)
        return 0

    # ---------------------------------------------------------------- memory

    cdef int attach(self, Space space) except -1:
        self.variation.space = space    # no Model, so that hold() could not pass it on
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.variation.reserve_slots(capacity)
        return Model.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        if self.classes >= 2:
            self.variation.reserve_problems(self.classes + 1)
        return Model.reserve_class(self)

    cdef int add_class(self) except -1:
        self.reserve_class()
        Model.add_class(self)
        if self.classes == 3:
            self.variation.split()
        if self.classes >= 3:
            self.variation.problems = self.classes
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        Model.forget(self, slot)
        self.variation.arrays.forget(slot)

    # ---------------------------------------------------------------- predicting

    cdef bint base_sees(self, View* v) noexcept nogil:
        """Test whether the base learner predicts: it sees a feature, or accepts instances without one."""
        return v.n > 1 or (v.n == 1 and v.slot[0] != 0) or self.base.sees_empty

    cdef void predict_base(self, View* v) noexcept nogil:
        """Compute scores and probabilities of the base learner; class shares if it sees no feature."""
        cdef int c, k = self.classes
        cdef double total = 0.0
        if not self.base_sees(v):
            for c in range(k):
                total += self.counts[c]
            for c in range(k):
                self.base_proba[c] = self.counts[c] / total if total > 0.0 else 1.0 / k
                self.base_score[c] = 0.0
            return
        self.base.scores(v, self.base_score)
        if k == 1:
            self.base_proba[0] = 1.0
        else:
            self.base.proba(self.base_score, self.base_proba)

    cdef void predict_variation(self) noexcept nogil:
        """Compute scores and probabilities of the variation learner for the collected instance."""
        cdef int c, k = self.classes
        cdef double total = 0.0
        self.variation.scores(self.own_score)
        if k == 1:
            self.own_proba[0] = 1.0
        elif k == 2:
            self.own_proba[1] = unit(0.5 * (1.0 + self.own_score[0]))
            self.own_proba[0] = 1.0 - self.own_proba[1]
        else:
            for c in range(k):
                self.own_proba[c] = unit(0.5 * (1.0 + self.own_score[c]))
                total += self.own_proba[c]
            for c in range(k):
                self.own_proba[c] = self.own_proba[c] / total if total > 0.0 else 1.0 / k

    cdef double predict(self, View* v) noexcept nogil:
        """Compute the predictions of both learners into scratch; return the weight of the base learner."""
        cdef double weights[2]
        self.predict_base(v)
        self.variation.collect(v)
        self.predict_variation()
        if self.only_variation:
            return 0.0
        self.shares(weights)
        return weights[VALUES]

    cdef void shares(self, double* weights) noexcept nogil:
        """Compute the weights of both learners: prior times exp(-eta loss), normalised (eq. 8)."""
        cdef double total
        experts_weights(&self.experts, weights)
        if self.prior != 0.5:
            weights[VALUES] *= self.prior
            weights[VARIATION] *= 1.0 - self.prior
            total = weights[VALUES] + weights[VARIATION]
            weights[VALUES] /= total
            weights[VARIATION] /= total

    cdef double own(self, int c) noexcept nogil:
        """Return the variation learner's score of a class; two labels share one problem, a single label has score 0."""
        if self.classes < 2:
            return 0.0
        if self.classes == 2:
            return self.own_score[0] if c == 1 else -self.own_score[0]
        return self.own_score[c]

    cdef double mixed(self, int c, double share) noexcept nogil:
        """Return the mixed score of a class, `share` being the weight of the base learner."""
        if self.mix_scores:
            return share * bounded(self.base_score[c]) + (1.0 - share) * self.own(c)
        return 2.0 * (share * self.base_proba[c] + (1.0 - share) * self.own_proba[c]) - 1.0

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        cdef double share
        if self.classes == 1:
            out[0] = 0.0
            return
        share = self.predict(v)
        for c in range(self.classes):
            out[c] = self.mixed(c, share)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Compute (1 + score) / 2; with `mix_scores`, clip to [0, 1] and normalise."""
        cdef int c
        cdef double total = 0.0
        for c in range(self.classes):
            out[c] = 0.5 * (1.0 + scores[c])
            if self.mix_scores:
                out[c] = unit(out[c])
                total += out[c]
        if self.mix_scores:
            for c in range(self.classes):
                out[c] = out[c] / total if total > 0.0 else 1.0 / self.classes

    # ---------------------------------------------------------------- learning

    cdef View* without_new(self, View* v) noexcept nogil:
        """Copy the instance as seen by a prediction: without new slots and columns."""
        cdef Py_ssize_t i, n = 0
        cdef View* f = &self.known_part
        cdef bint any_new = False
        for i in range(v.n):
            if v.is_new[i]:
                any_new = True
        if not any_new:
            return v
        f[0] = v[0]
        for i in range(v.n):
            if v.slot[i] != 0 and v.is_new[i]:
                f.known -= 1
                continue
            self.known_slot[n] = v.slot[i]
            self.known_x[n] = v.x[i]
            self.known_raw[n] = v.raw[i]
            n += 1
        f.n = n
        f.slot = self.known_slot
        f.x = self.known_x
        f.raw = self.known_raw
        f.is_new = self.known_is_new
        n = 0
        for i in range(v.columns):
            if seen_count(&self.space.seen[v.column[i]]) > 0:
                self.known_column[n] = v.column[i]
                n += 1
        f.columns = n
        f.column = self.known_column
        return f

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef View* known = self.without_new(v)
        self.predict(known)
        self.count_losses(y, w)
        if self.base_sees(v):
            self.base.learn(v, y, w)
        if known != v:
            self.variation.collect(v)
            self.variation.scores(self.own_score)
        self.variation.learn(v, y, w, self.own_score)
        self.counts[y] += w

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """Score and learn with a single prediction per learner; with new features, predict and learn separately."""
        cdef int c
        cdef double weights[2]
        cdef double share
        if self.classes < 2 or self.without_new(v) != v:
            Model.learn_scored(self, v, y, w, scores, probs)
            return
        if self.base_sees(v):
            self.base.learn_scored(v, y, w, self.base_score, self.base_proba)
        else:
            self.predict_base(v)
        self.variation.collect(v)
        self.predict_variation()
        self.shares(weights)
        share = 0.0 if self.only_variation else weights[VALUES]
        for c in range(self.classes):
            scores[c] = self.mixed(c, share)
        if probs != NULL:
            self.proba(scores, probs)
        self.count_losses(y, w)
        self.variation.learn(v, y, w, self.own_score)
        self.counts[y] += w

    cdef void count_losses(self, int y, double w) noexcept nogil:
        """Add the halved square losses of both learners' probabilities to the exponential weights.

        With `mix_scores` they are the losses of the scores against 1 and -1; with two labels this is (f - y)^2.
        """
        cdef int c
        cdef double losses[2]
        cdef double d, target
        losses[VALUES] = 0.0
        losses[VARIATION] = 0.0
        for c in range(self.classes):
            target = 1.0 if c == y else (-1.0 if self.mix_scores else 0.0)
            d = target - (bounded(self.base_score[c]) if self.mix_scores else self.base_proba[c])
            losses[VALUES] += 0.5 * d * d
            d = target - (self.own(c) if self.mix_scores else self.own_proba[c])
            losses[VARIATION] += 0.5 * d * d
        experts_learn(&self.experts, losses, w)
        self.mixing[0] = self.experts.rounds

    # ---------------------------------------------------------------- explaining

    cdef double factor(self, View* v, int label) noexcept nogil:
        """Return the change of the mixed score per unit of the base learner's score."""
        cdef double share = self.predict(v), f = 2.0 * self.base_proba[label] - 1.0
        if self.mix_scores:
            return share
        return share * unit(f / self.base_score[label] if fabs(self.base_score[label]) > 1e-12 else 0.5)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Compute the contributions of values to the mixed score; the rest is in absent_contributions()."""
        cdef Py_ssize_t i
        cdef double factor
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2 or not self.base_sees(v):
            return
        factor = self.factor(v, label)
        self.base.contributions(v, label, out)
        for i in range(v.n):
            out[i] *= factor

    cdef dict absent_contributions(self, View* v, int label):
        """Return the contributions of absences (or presences) by column; the intercept gets the rest of the score."""
        cdef Py_ssize_t i
        cdef double share, rest
        cdef double[::1] values = np.zeros(max(1, v.n))
        cdef dict parts = {}
        if self.classes < 2:
            return parts
        self.contributions(v, label, &values[0])
        share = self.predict(v)
        rest = self.mixed(label, share)
        for i in range(v.n):
            rest -= values[i]
        if self.base_sees(v):
            for key, part in self.base.absent_contributions(v, label).items():
                parts[key] = self.factor(v, label) * part
                rest -= parts[key]
        rest = self.explain_variation(v, label, share, rest, parts)
        parts[INTERCEPT] = parts.get(INTERCEPT, 0.0) + rest
        return parts

    cdef double explain_variation(self, View* v, int label, double share, double rest, dict parts) except? -1e308:
        """Add each counted column's contribution to the mixed score to `parts`; return the remainder of `rest`."""
        cdef Py_ssize_t i, slot
        cdef VariationLearner variation = self.variation
        cdef int c = label if variation.problems > 1 else 0
        cdef double f, scale, sign = -1.0 if variation.problems == 1 and label == 0 else 1.0
        variation.collect(v)
        f = variation.score(c)
        scale = sign * (1.0 - share) * (1.0 if self.mix_scores or fabs(f) <= 1.0 else 1.0 / fabs(f))
        for i in range(variation.n_counted):
            slot = variation.counted[i]
            if variation.weight(slot, c) != 0.0:
                part = scale * variation.weight(slot, c)
                parts[slot, "present" if variation.presence else "absent"] = part
                rest -= part
        return rest

    # ---------------------------------------------------------------- looking inside

    @property
    def presence(self):
        """Test whether the variation learner uses the columns present instead of those absent."""
        return self.variation.presence

    def weights(self):
        """Return the weights of the base and the variation learner in the next round."""
        cdef double[::1] out = np.zeros(2)
        if self.only_variation:
            return 0.0, 1.0
        self.shares(&out[0])
        return float(out[0]), float(out[1])

    def nonzero(self):
        """Count the columns with nonzero weight in the variation learner, for the first problem."""
        return self.variation.nonzero()

    def notes(self):
        encoding = "the columns present" if self.variation.presence else "the columns absent"
        return [f"the variation learner looks at {encoding}", *Model.notes(self)]

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {**Model.dump(self, size), **self.variation.dump(size)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        Model.fill(self, arrays, capacity)
        self.variation.fill(arrays, self.space.size if self.alone else -1, capacity,
                            self.classes if self.classes > 2 else 1)
        self.experts.rounds = self.mixing[0]

    def nbytes(self):
        return Model.nbytes(self) + self.variation.nbytes()

"""OVFM: linear learners on values, latent normal scores and presence, mixed by exponential weights.

The experts of a problem are, in this order, the raw learner, the latent learner and, with a presence learner, that one,
raw + presence and latent + presence. The presence learner sees, for every feature under the copula, whether it is
present (1 or 0) minus its recent rate of presence, so that absence counts as much as presence; of the other features it
sees those present. Experts with presence start with a handicap of some nats of loss. Losses are logistic, of log-odds:
a margin of one means `odds` of them.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from varifold._numeric.activation cimport log_loss
from varifold._numeric.hedge cimport Experts, experts_learn, experts_weights
from varifold.copula._latent cimport Copula
from varifold.copula._sparsity cimport project, truncate
from varifold._engine.models.model cimport Model
from varifold._engine.models.one_vs_rest cimport BinaryRule, score_one, update_one
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View

from varifold._engine.merging import APPROXIMATE
from varifold._engine.state import checked_array, per_class, per_problem, per_slot
from varifold._numeric.hedge import RATES

cdef enum:
    RAW = 0            # the learners
    LATENT = 1
    PRESENCE = 2
    MOST_EXPERTS = 5

cdef double HANDICAP = 10.0


cdef class OVFMModel(Model):
    """Hold the copula, two or three rules over the same slots, and the weights of their experts in each problem."""

    cdef readonly Copula copula
    cdef readonly BinaryRule raw, latent, presence   # presence may be None
    cdef bint with_presence
    cdef readonly bint latent_only
    cdef double radius                 # of the l1 ball, 0 for none
    cdef double keep                   # share of the features whose weights are kept, 1 for all
    cdef double* sizes                 # scratch [slot]
    cdef int parts                     # the first numbers of a slot that its weight is the sum of
    cdef double odds                   # log-odds of a margin of one
    cdef Experts settings              # k, rate and eta of the mixes
    cdef double* mix                   # [problem][1 + k]: rounds and losses of the experts
    cdef int problems
    cdef double* margins               # scratch [class][3]: scores of the learners before they learned
    # the latent instance
    cdef View inner
    cdef int32_t* inner_slot
    cdef double* inner_x
    cdef uint8_t* inner_is_new         # all zero
    # what the presence learner sees
    cdef View given
    cdef int32_t* given_slot
    cdef double* given_x
    cdef uint8_t* given_is_new         # all zero
    cdef int32_t* place                # [node]: its position in `given`

    def __cinit__(self, Copula copula not None, BinaryRule raw not None, BinaryRule latent not None,
                  int parts=1, bint latent_only=False, double radius=0.0, str rate="anytime", double eta=0.0,
                  BinaryRule presence=None, double odds=1.0, double keep=1.0):
        self.copula = copula
        self.raw = raw
        self.latent = latent
        self.presence = presence
        self.with_presence = presence is not None
        self.parts = parts
        self.latent_only = latent_only
        self.radius = radius
        self.odds = odds
        self.keep = keep
        self.learns_unlabelled = True
        self.settings.k = MOST_EXPERTS if self.with_presence else 2
        self.settings.rate = RATES[rate]
        self.settings.eta = eta
        self.hold("raw.", raw)
        self.hold("latent.", latent)
        if presence is not None:
            self.hold("presence.", presence)
        self.declare_arrays(copula.max_dense + 1)
        self.problems = 1
        self.start_mix(0)

    cdef int declare_arrays(self, Py_ssize_t most) except -1:
        """Reserve memory for a latent instance of at most `most` entries: the nodes and the intercept."""
        self.arrays.declare("mix", &self.mix, per_problem(width=1 + self.settings.k))
        self.arrays.scratch(&self.margins, per_class(width=3))
        self.arrays.scratch(&self.inner_slot, per_slot(most=most))
        self.arrays.scratch(&self.inner_x, per_slot(most=most))
        self.arrays.scratch(&self.inner_is_new, per_slot(most=most))
        self.arrays.scratch(&self.given_slot, per_slot())
        if self.keep < 1.0:
            self.arrays.scratch(&self.sizes, per_slot())
        if self.with_presence:
            self.arrays.scratch(&self.given_x, per_slot())
            self.arrays.scratch(&self.given_is_new, per_slot())
            self.arrays.scratch(&self.place, per_slot(most=most))
        self.arrays.reserve_classes(1)
        return 0

    def rules(self):
        """Return the learners in use."""
        return [rule for rule in (self.raw, self.latent, self.presence) if rule is not None]

    # ---------------------------------------------------------------- memory

    cdef int attach(self, Space space) except -1:
        self.copula.attach(space)
        return Model.attach(self, space)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.copula.grow(capacity)
        return Model.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        if self.classes >= 2:
            self.arrays.reserve_problems(self.classes + 1)
        return Model.reserve_class(self)

    cdef int add_class(self) except -1:
        cdef Py_ssize_t row = 1 + self.settings.k
        self.reserve_class()
        Model.add_class(self)
        if self.classes == 3:    # both problems that result from the binary one keep its mix
            memcpy(self.mix + row, self.mix, row * sizeof(double))
        if self.classes >= 3:
            self.problems = self.classes
            self.start_mix(self.classes - 1)
        return 0

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Prepare the raw learner for the instance, the others also for every node."""
        cdef Py_ssize_t i, k = 0
        self.raw.prepare(slots, n, n_new, y)
        for i in range(self.copula.nodes):
            if self.copula.by_node[i].slot != 0:
                self.given_slot[k] = <int32_t> self.copula.by_node[i].slot
                k += 1
        for i in range(n):
            if self.copula.by_slot[slots[i]].node <= 0:
                self.given_slot[k] = slots[i]
                k += 1
        self.latent.prepare(self.given_slot, k, n_new, y)
        if self.with_presence:
            self.presence.prepare(self.given_slot, k, n_new, y)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.copula.forget(slot)
        Model.forget(self, slot)

    # ---------------------------------------------------------------- the mix

    cdef void start_mix(self, int c) noexcept nogil:
        """Set the initial losses of a problem's experts: none, and the handicap of presence."""
        cdef int i
        cdef double* row = self.mix + c * (1 + self.settings.k)
        for i in range(1 + self.settings.k):
            row[i] = HANDICAP if i > 2 else 0.0

    cdef Experts experts(self, int c) noexcept nogil:
        """Return the experts of problem c; the caller that updates them writes their rounds back."""
        cdef Experts e = self.settings
        cdef double* row = self.mix + c * (1 + self.settings.k)
        e.rounds = row[0]
        e.held = row + 1
        return e

    cdef void shares(self, int c, double* weights) noexcept nogil:
        """Compute the weight of each learner's score in a problem (alpha of eq. 10 and 11, for more experts)."""
        cdef double a[MOST_EXPERTS]
        cdef Experts e
        a[2] = a[3] = a[4] = 0.0
        if self.latent_only:
            a[0] = 0.0
            a[1] = 1.0
        else:
            e = self.experts(c)
            experts_weights(&e, a)
        weights[RAW] = a[0] + a[3]
        weights[LATENT] = a[1] + a[4]
        weights[PRESENCE] = a[2] + a[3] + a[4]

    cdef void count_losses(self, int c, double sign, double w) noexcept nogil:
        """Update the experts of a problem by the margins that the learners had before they learned."""
        cdef double losses[MOST_EXPERTS]
        cdef double raw, latent, presence
        cdef double* margin = self.margins + 3 * c
        cdef Experts e = self.experts(c)
        sign *= self.odds
        raw = sign * margin[RAW]
        latent = sign * margin[LATENT]
        losses[0] = log_loss(raw)
        losses[1] = log_loss(latent)
        if self.with_presence:
            presence = sign * margin[PRESENCE]
            losses[2] = log_loss(presence)
            losses[3] = log_loss(raw + presence)
            losses[4] = log_loss(latent + presence)
        experts_learn(&e, losses, w)
        self.mix[c * (1 + e.k)] = e.rounds

    # ---------------------------------------------------------------- one instance

    cdef void present(self, View* v) noexcept nogil:
        """Write the latent instance: the score of every node, after the intercept if there is one."""
        cdef Py_ssize_t i, k = 0
        cdef View* inner = &self.inner
        if v.n and v.slot[0] == 0:
            self.inner_slot[0] = 0
            self.inner_x[0] = 1.0
            k = 1
        for i in range(self.copula.nodes):
            if self.copula.by_node[i].slot != 0:
                self.inner_slot[k] = <int32_t> self.copula.by_node[i].slot
                self.inner_x[k] = self.copula.score[i]
                k += 1
        inner.n = k
        inner.slot = self.inner_slot
        inner.x = self.inner_x
        inner.raw = self.inner_x
        inner.is_new = self.inner_is_new
        inner.columns = 0
        inner.column = NULL
        inner.step = v.step
        inner.known = v.known

    cdef void present_presence(self, View* v) noexcept nogil:
        """Write the input of the presence learner, by the rates before the instance."""
        cdef Py_ssize_t i, k = 0
        cdef int32_t slot
        cdef View* given = &self.given
        for i in range(self.copula.nodes):
            slot = <int32_t> self.copula.by_node[i].slot
            if slot != 0:
                self.place[i] = <int32_t> k
                self.given_slot[k] = slot
                self.given_x[k] = -self.copula.rate(slot)
                k += 1
        for i in range(v.n):
            slot = v.slot[i]
            if self.copula.by_slot[slot].node > 0:
                self.given_x[self.place[self.copula.by_slot[slot].node - 1]] += 1.0
            else:
                self.given_slot[k] = slot
                self.given_x[k] = 1.0 - self.copula.rate(slot) if slot else 1.0
                k += 1
        given[0] = v[0]
        given.n = k
        given.slot = self.given_slot
        given.x = self.given_x
        given.raw = self.given_x
        given.is_new = self.given_is_new

    cdef double score(self, View* v, int c) noexcept nogil:
        """Return a problem's score of the current instance: the mix of eq. 10."""
        cdef double f = score_one(self.latent, &self.inner, c)
        cdef double weights[3]
        if self.latent_only:
            return f
        self.shares(c, weights)
        f = weights[RAW] * score_one(self.raw, v, c) + weights[LATENT] * f
        if self.with_presence:
            f += weights[PRESENCE] * score_one(self.presence, &self.given, c)
        return f

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        self.copula.observe(v)
        self.present(v)
        if self.with_presence:
            self.present_presence(v)
        if self.problems > 1:
            for c in range(self.problems):
                out[c] = self.score(v, c)
        else:
            out[0] = 0.0
            if self.classes == 2:
                out[1] = self.score(v, 0)
                out[0] = -out[1]

    cdef double sign_of(self, int label) noexcept nogil:
        """Return the sign that relates a label's score to its problem's; 0 for a single label."""
        if self.classes < 2:
            return 0.0
        return -1.0 if self.problems == 1 and label == 0 else 1.0

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        self.latent.proba(scores, out)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int c
        cdef int32_t replaced
        if self.with_presence:
            self.present_presence(v)
        replaced = self.copula.learn(v, w)
        if replaced:
            self.latent.forget(replaced)
        self.present(v)
        self.learn_rule(self.latent, LATENT, &self.inner, y, w)
        if not self.latent_only:
            self.learn_rule(self.raw, RAW, v, y, w)
            if self.with_presence:
                self.learn_rule(self.presence, PRESENCE, &self.given, y, w)
            for c in range(self.problems):
                self.count_losses(c, 1.0 if y == (1 if self.problems == 1 else c) else -1.0, w)
        for c in range(self.problems if self.radius > 0.0 or self.keep < 1.0 else 0):
            self.sparsify(self.latent, c, v.known)
            if not self.latent_only:
                self.sparsify(self.raw, c, v.known)
                if self.with_presence:
                    self.sparsify(self.presence, c, v.known)

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Update the copula, which needs no label."""
        cdef int32_t replaced = self.copula.learn(v, w)
        if replaced:
            self.latent.forget(replaced)

    cdef void learn_rule(self, BinaryRule rule, int which, View* v, int y, double w) noexcept nogil:
        """Update a rule; store its scores before the update in `margins`."""
        cdef int c
        for c in range(self.problems):
            self.margins[3 * c + which] = update_one(
                rule, v, c, 1.0 if y == (1 if self.problems == 1 else c) else -1.0, w)

    cdef void sparsify(self, BinaryRule rule, int c, Py_ssize_t known) noexcept nogil:
        """Scale a problem's weights into the l1 ball (eq. 12), then keep the largest."""
        if self.radius > 0.0:
            project(rule, c, self.parts, self.space.size, self.radius)
        if self.keep < 1.0:
            truncate(rule, c, self.parts, self.space.size, known, self.keep, self.sizes)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef double total = 0.0
        cdef double a[3]
        cdef int c
        for c in range(self.problems):
            self.shares(c, a)
            total += a[RAW] * fabs(self.raw.coefficient(slot, c)) + a[LATENT] * fabs(self.latent.coefficient(slot, c))
            if self.with_presence:
                total += a[PRESENCE] * fabs(self.presence.coefficient(slot, c))
        return total

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int64_t node
        cdef int c = label if self.problems > 1 else 0
        cdef double sign = self.sign_of(label), z
        cdef double a[3]
        self.shares(c, a)
        self.copula.observe(v)
        for i in range(v.n):
            node = self.copula.by_slot[v.slot[i]].node
            z = 1.0 if v.slot[i] == 0 else self.copula.score[node - 1] if node > 0 else 0.0
            out[i] = sign * a[LATENT] * self.latent.coefficient(v.slot[i], c) * z
            if not self.latent_only:
                out[i] += sign * a[RAW] * self.raw.coefficient(v.slot[i], c) * v.x[i]
                if self.with_presence:
                    z = 1.0 - self.copula.rate(v.slot[i]) if v.slot[i] else 1.0
                    out[i] += sign * a[PRESENCE] * self.presence.coefficient(v.slot[i], c) * z

    cdef dict absent_contributions(self, View* v, int label):
        """Attribute contributions of absent features to their regressed scores and to their absence."""
        cdef Py_ssize_t i
        cdef int32_t slot
        cdef int c = label if self.problems > 1 else 0
        cdef double sign = self.sign_of(label)
        cdef double a[3]
        cdef dict parts = {}
        self.shares(c, a)
        given = {v.slot[i] for i in range(v.n)}
        self.copula.observe(v)
        for i in range(self.copula.nodes):
            slot = <int32_t> self.copula.by_node[i].slot
            if slot != 0 and slot not in given:
                parts[slot] = sign * a[LATENT] * self.latent.coefficient(slot, c) * self.copula.score[i]
                if self.with_presence:
                    parts[slot] -= sign * a[PRESENCE] * self.presence.coefficient(slot, c) * self.copula.rate(slot)
        return parts

    # ---------------------------------------------------------------- merging

    def merging(self):
        return APPROXIMATE if all(rule.merging() is not None for rule in self.rules()) else None

    def merge(self, parts):
        """Merge copula, rules and the experts' losses; the latent and the presence learner use unscaled values."""
        classes = np.array([len(parts[0].union.labels)], dtype=np.int64)
        found = {"mix": self.merged_mix(parts)}
        for prefix, held in self.held():
            inner = [part.inner(prefix, prefix == "raw.") for part in parts]
            merged = held.merge(inner) if held is self.copula else {"classes": classes, **held.merge(inner)}
            found.update({prefix + name: array for name, array in merged.items()})
        return found

    cdef object merged_mix(self, parts):
        """Add rounds and losses, relative to the smallest; count the initial ones once."""
        first = np.array([0.0, 0.0, 0.0, HANDICAP, HANDICAP, HANDICAP][:1 + self.settings.k])
        rows = np.stack([part.by_problem("mix", first) for part in parts])
        losses = first[1:] + ((rows[..., 1:] - rows[..., 1:2]) - first[1:]).sum(axis=0)
        return np.concatenate([rows[..., :1].sum(axis=0), losses - losses.min(axis=1, keepdims=True)], axis=1)

    # ---------------------------------------------------------------- looking and keeping

    def mix_weights(self):
        """Return the weights of the raw, latent and presence learner in the score, one row per problem."""
        cdef int c
        cdef double[:, ::1] out = np.zeros((self.problems, 3))
        for c in range(self.problems):
            self.shares(c, &out[c, 0])
        return np.asarray(out)

    cdef list held(self):
        """List (prefix of its arrays, part)."""
        parts = [("copula.", self.copula), ("raw.", self.raw), ("latent.", self.latent)]
        return parts if self.presence is None else [*parts, ("presence.", self.presence)]

    def role(self, Py_ssize_t slot):
        return self.copula.role(slot) or "raw"

    def notes(self):
        found = Model.notes(self)
        if self.copula.nodes - self.copula.idle == self.copula.max_dense:
            found.append(f"the copula is full: it covers the {self.copula.max_dense} recently most active features "
                         "(max_dense); the others are known to the raw and presence learners only")
        return found

    def dump(self, Py_ssize_t size):
        return {"classes": np.array([self.classes], dtype=np.int64),
                **self.arrays.dump(size, self.classes, self.problems), **self.components.dump(size),
                **{"copula." + key: array for key, array in self.copula.dump(size).items()}}

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        self.problems = self.classes if self.classes > 2 else 1
        self.copula.fill({key[7:]: a for key, a in arrays.items() if key.startswith("copula.")}, capacity)
        self.components.fill(arrays, capacity)
        for rule in self.rules():
            if rule.classes != self.classes:
                raise ValueError(f"a learner of {rule.classes} classes among {self.classes}")
        self.arrays.fill(arrays, -1, capacity, self.classes, self.problems)
        self.grow(capacity)

    def nbytes(self):
        return Model.nbytes(self) + self.copula.nbytes()

"""OVFM: a linear learner on the values, one on their latent normal scores, one on which features are there; mixed.

The experts of a problem are, in this order, the raw learner, the latent learner and, if a presence learner is held, that
one, raw + presence and latent + presence: what presence says comes on top of what the values say. The presence learner
sees, for every feature under the copula, whether it is there (1 or 0) less its rate of presence of late, so that absence
tells as much as presence; of the other features those there. Experts with it start with a handicap of some nats of loss.
Losses are logistic, of log-odds: `odds` of them for a margin of one.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from varifold._numeric.hedge cimport (
    ANYTIME, FIXED, HORIZON, Experts, experts_dump, experts_fill, experts_free, experts_learn, experts_make,
    experts_size, experts_weights,
)
from varifold.copula._latent cimport Copula
from varifold._numeric.activation cimport log_loss
from varifold._engine.model cimport Model
from varifold._engine.one_vs_rest cimport BinaryRule, at
from varifold.copula._active_set cimport fresh
from varifold._engine.space cimport Space
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

cdef double HANDICAP = 10.0

RATES = {"fixed": FIXED, "horizon": HORIZON, "anytime": ANYTIME}


cdef class OVFMModel(Model):
    """The copula, two or three rules over the same slots, and their experts' weights a problem."""

    def __cinit__(self, Copula copula not None, BinaryRule raw not None, BinaryRule latent not None,
                  int parts=1, bint latent_only=False, double radius=0.0, str rate="anytime", double eta=0.0,
                  BinaryRule presence=None, double odds=1.0):
        self.copula = copula
        self.raw = raw
        self.latent = latent
        self.parts = parts
        self.latent_only = latent_only
        self.radius = radius
        self.rate = RATES[rate]
        self.eta = eta
        self.presence = presence
        self.odds = odds
        self.halves = 2 if presence is None else 3
        self.experts = 2 if presence is None else 5

    def __dealloc__(self):
        cdef int c
        for c in range(self.mixes):
            experts_free(&self.mix[c])
        free(self.mix)
        free(self.slot)
        free(self.x)
        free(self.is_new)
        free(self.given_slot)
        free(self.given_x)
        free(self.given_fresh)
        free(self.place)

    cdef int attach(self, Space space) except -1:
        self.copula.attach(space)
        self.raw.attach(space)
        self.latent.attach(space)
        if self.halves == 3:
            self.presence.attach(space)
        self.fit_mixes()
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t room
        Model.grow(self, capacity)
        self.copula.grow(capacity)
        self.raw.grow(capacity)
        self.latent.grow(capacity)
        if self.halves == 3:
            self.presence.grow(capacity)
            self.fit_given(capacity + self.copula.room + 1)
        room = self.copula.room + 1
        self.slot = <int32_t*> realloc(self.slot, room * sizeof(int32_t))
        self.x = <double*> realloc(self.x, room * sizeof(double))
        self.is_new = <uint8_t*> realloc(self.is_new, room)
        if self.slot == NULL or self.x == NULL or self.is_new == NULL:
            raise MemoryError
        memset(self.is_new, 0, room)
        return 0

    cdef int fit_given(self, Py_ssize_t room) except -1:
        """Room for what the presence learner sees."""
        self.given_slot = <int32_t*> fresh(self.given_slot, room * sizeof(int32_t))
        self.given_x = <double*> fresh(self.given_x, room * sizeof(double))
        self.given_fresh = <uint8_t*> fresh(self.given_fresh, room)
        self.place = <int32_t*> fresh(self.place, (self.copula.room + 1) * sizeof(int32_t))
        memset(self.given_fresh, 0, room)
        return 0

    cdef int add_class(self) except -1:
        Model.add_class(self)
        self.raw.add_class()
        self.latent.add_class()
        if self.halves == 3:
            self.presence.add_class()
        self.fit_mixes()
        return 0

    cdef int fit_mixes(self) except -1:
        """A mix a problem; the two that come of a binary problem keep what it learned."""
        cdef int problems = self.latent.problems, c, i, old = self.mixes
        self.mix = <Experts*> realloc(self.mix, problems * sizeof(Experts))
        if self.mix == NULL:
            raise MemoryError
        for c in range(old, problems):
            if experts_make(&self.mix[c], self.experts, self.rate, self.eta, 0.0) < 0:
                raise MemoryError
            for i in range(2, self.experts):
                self.mix[c].held[i] = HANDICAP
            self.mixes = c + 1
        if old == 1 and problems > 1:
            self.mix[1].rounds = self.mix[0].rounds
            memcpy(self.mix[1].held, self.mix[0].held, self.experts * sizeof(double))
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.copula.forget(slot)
        self.raw.forget(slot)
        self.latent.forget(slot)
        if self.halves == 3:
            self.presence.forget(slot)

    # ---------------------------------------------------------------- one instance

    cdef void present(self, View* v) noexcept nogil:
        """Lay out the latent instance: every node's score, after the intercept if there is one."""
        cdef Py_ssize_t i, k = 0
        cdef View* inner = &self.inner
        if v.n and v.slot[0] == 0:
            self.slot[0] = 0
            self.x[0] = 1.0
            k = 1
        for i in range(self.copula.nodes):
            if self.copula.slot_of[i] != 0:
                self.slot[k] = self.copula.slot_of[i]
                self.x[k] = self.copula.score[i]
                k += 1
        inner.n = k
        inner.slot = self.slot
        inner.x = self.x
        inner.raw = self.x
        inner.is_new = self.is_new
        inner.columns = 0
        inner.column = NULL
        inner.step = v.step
        inner.known = v.known

    cdef void attend(self, View* v) noexcept nogil:
        """Lay out what the presence learner sees, by the rates before the instance."""
        cdef Py_ssize_t i, k = 0
        cdef int32_t node, slot
        cdef View* given = &self.given
        for i in range(self.copula.nodes):
            slot = self.copula.slot_of[i]
            if slot != 0:
                self.place[i] = <int32_t> k
                self.given_slot[k] = slot
                self.given_x[k] = -self.copula.rate(slot)
                k += 1
        for i in range(v.n):
            slot = v.slot[i]
            node = self.copula.node_of[slot]
            if node > 0:
                self.given_x[self.place[node - 1]] += 1.0
            else:
                self.given_slot[k] = slot
                self.given_x[k] = 1.0 - self.copula.rate(slot) if slot else 1.0
                k += 1
        given[0] = v[0]
        given.n = k
        given.slot = self.given_slot
        given.x = self.given_x
        given.raw = self.given_x
        given.is_new = self.given_fresh

    cdef void shares(self, int c, double* weights) noexcept nogil:
        """How much of each learner's score is in a problem's."""
        cdef double a[5]
        a[2] = a[3] = a[4] = 0.0
        if self.latent_only:
            a[0] = 0.0
            a[1] = 1.0
        else:
            experts_weights(&self.mix[c], a)
        weights[0] = a[0] + a[3]
        weights[1] = a[1] + a[4]
        weights[2] = a[2] + a[3] + a[4]

    cdef void count_losses(self, View* v, int c, double sign, double w) noexcept nogil:
        """Let the experts of a problem learn from what they would have said of an instance laid out."""
        cdef double losses[5]
        cdef double raw, latent, there
        sign *= self.odds
        raw = sign * self.raw.score(v, c)
        latent = sign * self.latent.score(&self.inner, c)
        losses[0] = log_loss(raw)
        losses[1] = log_loss(latent)
        if self.halves == 3:
            there = sign * self.presence.score(&self.given, c)
            losses[2] = log_loss(there)
            losses[3] = log_loss(raw + there)
            losses[4] = log_loss(latent + there)
        experts_learn(&self.mix[c], losses, w)

    cdef double score(self, View* v, int c) noexcept nogil:
        """A problem's score of an instance that was laid out."""
        cdef double f = self.latent.score(&self.inner, c)
        cdef double weights[3]
        if self.latent_only:
            return f
        self.shares(c, weights)
        f = weights[0] * self.raw.score(v, c) + weights[1] * f
        if self.halves == 3:
            f += weights[2] * self.presence.score(&self.given, c)
        return f

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        self.copula.observe(v)
        self.present(v)
        if self.halves == 3:
            self.attend(v)
        if self.mixes > 1:
            for c in range(self.mixes):
                out[c] = self.score(v, c)
        else:
            out[0] = 0.0
            if self.classes == 2:
                out[1] = self.score(v, 0)
                out[0] = -out[1]

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        self.latent.proba(scores, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int c
        cdef int32_t left
        if self.halves == 3:
            self.attend(v)
        left = self.copula.learn(v, w)
        if left:
            self.latent.forget(left)
        self.present(v)
        if not self.latent_only:
            for c in range(self.mixes):
                self.count_losses(v, c, 1.0 if y == (1 if self.mixes == 1 else c) else -1.0, w)
            self.raw.learn(v, y, w)
            if self.halves == 3:
                self.presence.learn(&self.given, y, w)
        self.latent.learn(&self.inner, y, w)
        if self.radius > 0.0:
            for c in range(self.mixes):
                self.project(self.latent, c)
                if not self.latent_only:
                    self.project(self.raw, c)
                    if self.halves == 3:
                        self.project(self.presence, c)

    cdef void project(self, BinaryRule rule, int c) noexcept nogil:
        """Into the l1 ball, the intercept left out."""
        cdef Py_ssize_t slot, i
        cdef double total = 0.0
        cdef double* s
        for slot in range(1, self.space.size):
            total += fabs(rule.coefficient(<int32_t> slot, c))
        if total <= self.radius:
            return
        for slot in range(1, self.space.size):
            s = at(rule, <int32_t> slot, c)
            for i in range(self.parts):
                s[i] *= self.radius / total

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef double total = 0.0
        cdef double a[3]
        cdef int c
        for c in range(self.mixes):
            self.shares(c, a)
            total += a[0] * fabs(self.raw.coefficient(slot, c)) + a[1] * fabs(self.latent.coefficient(slot, c))
            if self.halves == 3:
                total += a[2] * fabs(self.presence.coefficient(slot, c))
        return total

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int32_t node
        cdef int c = label if self.mixes > 1 else 0
        cdef double sign = side(self, label), z
        cdef double a[3]
        self.shares(c, a)
        self.copula.observe(v)
        for i in range(v.n):
            node = self.copula.node_of[v.slot[i]]
            z = 1.0 if v.slot[i] == 0 else self.copula.score[node - 1] if node > 0 else 0.0
            out[i] = sign * a[1] * self.latent.coefficient(v.slot[i], c) * z
            if not self.latent_only:
                out[i] += sign * a[0] * self.raw.coefficient(v.slot[i], c) * v.x[i]
                if self.halves == 3:
                    z = 1.0 - self.copula.rate(v.slot[i]) if v.slot[i] else 1.0
                    out[i] += sign * a[2] * self.presence.coefficient(v.slot[i], c) * z

    cdef dict absent_contributions(self, View* v, int label):
        """Absent features act through their regressed scores and by not being there."""
        cdef Py_ssize_t i
        cdef int32_t slot
        cdef int c = label if self.mixes > 1 else 0
        cdef double sign = side(self, label)
        cdef double a[3]
        cdef dict parts = {}
        self.shares(c, a)
        given = {v.slot[i] for i in range(v.n)}
        self.copula.observe(v)
        for i in range(self.copula.nodes):
            slot = self.copula.slot_of[i]
            if slot != 0 and slot not in given:
                parts[slot] = sign * a[1] * self.latent.coefficient(slot, c) * self.copula.score[i]
                if self.halves == 3:
                    parts[slot] -= sign * a[2] * self.presence.coefficient(slot, c) * self.copula.rate(slot)
        return parts

    # ---------------------------------------------------------------- looking and keeping

    def mix_weights(self):
        """How much of the raw, the latent and the presence learner is in the score, a row a problem."""
        cdef int c
        cdef double[:, ::1] out = np.zeros((self.mixes, 3))
        for c in range(self.mixes):
            self.shares(c, &out[c, 0])
        return np.asarray(out)

    cdef list held(self):
        """(prefix of its arrays, part)."""
        parts = [("copula.", self.copula), ("raw.", self.raw), ("latent.", self.latent)]
        return parts if self.presence is None else [*parts, ("presence.", self.presence)]

    def role(self, Py_ssize_t slot):
        return self.copula.role(slot) or "raw"

    def notes(self):
        if self.copula.nodes - self.copula.idle < self.copula.max_dense:
            return []
        return [f"the copula is full: it covers the {self.copula.max_dense} features most active of late (max_dense); "
                "the others live in the raw learner alone"]

    def dump(self, Py_ssize_t size):
        cdef int c
        cdef Py_ssize_t each = experts_size(&self.mix[0])
        mix = np.zeros((self.mixes, each))
        cdef double[:, ::1] view = mix
        for c in range(self.mixes):
            experts_dump(&self.mix[c], &view[c, 0])
        arrays = Model.dump(self, size)
        arrays["mix"] = mix
        for prefix, part in self.held():
            arrays.update({prefix + key: array for key, array in part.dump(size).items()})
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int c
        Model.fill(self, arrays, capacity)
        for prefix, part in self.held():
            part.fill({key[len(prefix):]: a for key, a in arrays.items() if key.startswith(prefix)}, capacity)
        self.grow(capacity)
        self.fit_mixes()
        cdef double[:, ::1] view = checked_array(arrays, "mix", "f", (self.mixes, experts_size(&self.mix[0])))
        for c in range(self.mixes):
            experts_fill(&self.mix[c], &view[c, 0])

    def nbytes(self):
        return sum(part.nbytes() for _, part in self.held())


cdef double side(OVFMModel model, int label) noexcept nogil:
    """How a label's score hangs on that of its problem; one label alone has score 0."""
    if model.classes < 2:
        return 0.0
    return -1.0 if model.mixes == 1 and label == 0 else 1.0

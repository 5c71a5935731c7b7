"""OVFM: a linear learner on the values, one on their latent normal scores, one on which features are there; mixed.

The experts of a problem are, in this order, the raw learner, the latent learner and, if it is held, the presence learner.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from varifold._core.experts cimport (
    ANYTIME, FIXED, HORIZON, Experts, experts_dump, experts_fill, experts_free, experts_learn, experts_make,
    experts_size, experts_weights,
)
from varifold._core.latent cimport Copula
from varifold._core.logistic cimport log_loss
from varifold._core.model cimport BinaryRule, Model, at
from varifold._core.space cimport Space
from varifold._core.view cimport View

from varifold._core.model import expect

RATES = {"fixed": FIXED, "horizon": HORIZON, "anytime": ANYTIME}


cdef class OVFMModel(Model):
    """The copula, two or three rules over the same slots, and their experts' weights a problem."""

    def __cinit__(self, Copula copula not None, BinaryRule raw not None, BinaryRule latent not None,
                  int parts=1, bint latent_only=False, double radius=0.0, str rate="anytime", double eta=0.0,
                  BinaryRule presence=None):
        self.copula = copula
        self.raw = raw
        self.latent = latent
        self.parts = parts
        self.latent_only = latent_only
        self.radius = radius
        self.rate = RATES[rate]
        self.eta = eta
        self.presence = presence
        self.halves = 2 if presence is None else 3

    def __dealloc__(self):
        cdef int c
        for c in range(self.mixes):
            experts_free(&self.mix[c])
        free(self.mix)
        free(self.slot)
        free(self.x)
        free(self.fresh)
        free(self.ones)

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
            self.fit_ones(capacity + 1)
        room = self.copula.room + 1
        self.slot = <int32_t*> realloc(self.slot, room * sizeof(int32_t))
        self.x = <double*> realloc(self.x, room * sizeof(double))
        self.fresh = <uint8_t*> realloc(self.fresh, room)
        if self.slot == NULL or self.x == NULL or self.fresh == NULL:
            raise MemoryError
        memset(self.fresh, 0, room)
        return 0

    cdef int fit_ones(self, Py_ssize_t room) except -1:
        cdef Py_ssize_t i
        cdef double* held = <double*> realloc(self.ones, room * sizeof(double))
        if held == NULL:
            raise MemoryError
        self.ones = held
        for i in range(room):
            held[i] = 1.0
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
        cdef int problems = self.latent.problems, c, old = self.mixes
        self.mix = <Experts*> realloc(self.mix, problems * sizeof(Experts))
        if self.mix == NULL:
            raise MemoryError
        for c in range(old, problems):
            if experts_make(&self.mix[c], self.halves, self.rate, self.eta, 0.0) < 0:
                raise MemoryError
            self.mixes = c + 1
        if old == 1 and problems > 1:
            self.mix[1].rounds = self.mix[0].rounds
            memcpy(self.mix[1].held, self.mix[0].held, self.halves * sizeof(double))
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
        inner.fresh = self.fresh
        inner.columns = 0
        inner.column = NULL
        inner.step = v.step
        inner.known = v.known

    cdef View there(self, View* v) noexcept nogil:
        """The instance as the presence learner sees it: one for whatever is given."""
        cdef View given = v[0]
        given.x = self.ones
        given.raw = self.ones
        return given

    cdef void shares(self, int c, double* weights) noexcept nogil:
        """Parts of the learners in a problem's score."""
        weights[2] = 0.0
        if self.latent_only:
            weights[0] = 0.0
            weights[1] = 1.0
        else:
            experts_weights(&self.mix[c], weights)

    cdef double score(self, View* v, int c) noexcept nogil:
        """A problem's score of an instance that was laid out."""
        cdef double f = self.latent.score(&self.inner, c)
        cdef double weights[3]
        cdef View there
        if self.latent_only:
            return f
        self.shares(c, weights)
        f = weights[0] * self.raw.score(v, c) + weights[1] * f
        if self.halves == 3:
            there = self.there(v)
            f += weights[2] * self.presence.score(&there, c)
        return f

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        self.copula.observe(v)
        self.present(v)
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
        cdef double losses[3]
        cdef double sign
        cdef View there = self.there(v)
        cdef int32_t left = self.copula.learn(v, w)
        if left:
            self.latent.forget(left)
        self.present(v)
        if not self.latent_only:
            for c in range(self.mixes):
                sign = 1.0 if y == (1 if self.mixes == 1 else c) else -1.0
                losses[0] = log_loss(sign * self.raw.score(v, c))
                losses[1] = log_loss(sign * self.latent.score(&self.inner, c))
                if self.halves == 3:
                    losses[2] = log_loss(sign * self.presence.score(&there, c))
                experts_learn(&self.mix[c], losses, w)
            self.raw.learn(v, y, w)
            if self.halves == 3:
                self.presence.learn(&there, y, w)
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
                    out[i] += sign * a[2] * self.presence.coefficient(v.slot[i], c)

    cdef dict beyond(self, View* v, int label):
        """Absent features act through their regressed scores."""
        cdef Py_ssize_t i
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
        return parts

    # ---------------------------------------------------------------- looking and keeping

    def mix_weights(self):
        """Weights of the raw, the latent and the presence learner in the mix, a row a problem."""
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
        cdef double[:, ::1] view = expect(arrays, "mix", "f", (self.mixes, experts_size(&self.mix[0])))
        for c in range(self.mixes):
            experts_fill(&self.mix[c], &view[c, 0])

    def nbytes(self):
        return sum(part.nbytes() for _, part in self.held())


cdef double side(OVFMModel model, int label) noexcept nogil:
    """How a label's score hangs on that of its problem; one label alone has score 0."""
    if model.classes < 2:
        return 0.0
    return -1.0 if model.mixes == 1 and label == 0 else 1.0

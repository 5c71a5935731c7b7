"""Margins that lean to the commoner class for as long as it is right more often than they are.

A margin learned from few instances answers at random where its features say little, and is then worse than no
features at all. So the model counts, over the instances on which the two differ, by how many the answers of the rule
inside lead those of the commonest class so far. A label whose share is p gets 2 u (2 p - 1) / (1 + exp(lead)) added to
its score, u being the size of a sure margin: 1, or the mean size so far where that is larger. The rule never hears of
it. The lead stays within FAR, so that a rule that was good once can lose it again.
"""

import numpy as np

from libc.math cimport exp, fabs
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from varifold._engine.model cimport Model
from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.space cimport Space
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

cdef double STRENGTH = 2.0
cdef double FAR = 30.0       # largest lead either way: e^-30 no longer turns an answer
cdef double LARGEST = 1e100  # size beyond which a margin counts no more


cdef class LeaningModel(Model):
    """A rule and the lean of its scores; an instance without intercept does not lean."""

    def __cinit__(self, BinaryRule rule not None):
        self.rule = rule
        self.sees_empty = rule.sees_empty
        self.wants_columns = rule.wants_columns

    def __dealloc__(self):
        free(self.margin)
        free(self.counts)

    cdef int attach(self, Space space) except -1:
        self.fit(2)
        self.press()
        self.force = self.pull
        self.rule.attach(space)
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if self.rule.capacity < capacity:
            self.rule.grow(capacity)
        self.capacity = capacity
        return 0

    cdef int fit(self, Py_ssize_t room) except -1:
        if room <= self.room:
            return 0
        self.margin = <double*> realloc(self.margin, room * sizeof(double))
        self.counts = <double*> realloc(self.counts, room * sizeof(double))
        if self.margin == NULL or self.counts == NULL:
            raise MemoryError
        memset(self.margin + self.room, 0, (room - self.room) * sizeof(double))
        memset(self.counts + self.room, 0, (room - self.room) * sizeof(double))
        self.room = room
        return 0

    cdef int add_class(self) except -1:
        self.rule.add_class()
        self.classes += 1
        if self.classes > self.room:
            self.fit(2 * self.room)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.rule.forget(slot)

    # ---------------------------------------------------------------- answering

    cdef void press(self) noexcept nogil:
        """What a new lead makes of the class shares."""
        self.pull = STRENGTH / (1.0 + exp(self.lead)) if self.lead < FAR else 0.0

    cdef inline double leaning(self, View* v, int label) noexcept nogil:
        """What the label's share adds to its score."""
        if self.force == 0.0 or self.classes < 2 or self.total == 0.0 or v.n == 0 or v.slot[0] != 0:
            return 0.0
        return self.force * (2.0 * self.counts[label] / self.total - 1.0)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        self.rule.scores(v, out)
        for c in range(self.classes):
            out[c] += self.leaning(v, c)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        self.rule.proba(scores, out)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        self.rule.contributions(v, label, out)
        if v.n:
            out[0] += self.leaning(v, label)

    cdef dict absent_contributions(self, View* v, int label):
        return self.rule.absent_contributions(v, label)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.rule.magnitude(slot)

    # ---------------------------------------------------------------- learning

    cdef inline int best(self, double* of) noexcept nogil:
        cdef int c, found = of[1] > of[0] if self.classes > 1 else 0
        for c in range(2, self.classes):
            if of[c] > of[found]:
                found = c
        return found

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.rule.learn_scored(v, y, w, self.margin, NULL)
        self.compare(v, self.margin, y, w)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        cdef int c
        if self.force == 0.0:
            self.rule.learn_scored(v, y, w, scores, probs)
            self.compare(v, scores, y, w)
            return
        self.rule.learn_scored(v, y, w, self.margin, NULL)
        for c in range(self.classes):
            scores[c] = self.margin[c] + self.leaning(v, c)
        if probs != NULL:
            self.proba(scores, probs)
        self.compare(v, self.margin, y, w)

    cdef void compare(self, View* v, double* margin, int y, double w) noexcept nogil:
        """Whose answer was right, the margins' or the commonest class's."""
        cdef int own
        cdef double size, lead
        if v.n == 0 or v.slot[0] != 0:
            return
        if self.classes >= 2:
            own = self.best(margin)
            lead = self.lead + w * ((own == y) - (self.best(self.counts) == y))
            lead = min(max(lead, -FAR), FAR)
            if lead != self.lead:
                self.lead = lead
                self.press()
            size = fabs(margin[own])
            self.reach += w * (size if size < LARGEST else LARGEST)
        self.counts[y] += w
        self.total += w
        self.force = self.pull * max(1.0, self.reach / self.total) if self.pull != 0.0 else 0.0

    # ---------------------------------------------------------------- looking and keeping

    def dump(self, Py_ssize_t size):
        arrays = self.rule.dump(size)
        arrays["leaning"] = np.array([self.lead, self.total, self.reach, *[self.counts[c] for c in range(self.classes)]])
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int c
        if len(arrays["state"]) != self.space.size:
            raise ValueError(f"{len(arrays['state'])} rows of weights for {self.space.size} slots")
        self.rule.fill(arrays, capacity)
        self.capacity = capacity
        self.classes = self.rule.classes
        self.fit(self.classes)
        numbers = checked_array(arrays, "leaning", "f", (self.classes + 3,))
        self.lead, self.total, self.reach = numbers[:3].tolist()
        for c in range(self.classes):
            self.counts[c] = numbers[c + 3]
        self.press()
        self.force = self.pull * (max(1.0, self.reach / self.total) if self.total > 0.0 else 1.0)

    def notes(self):
        return self.rule.notes()

    def role(self, Py_ssize_t slot):
        return self.rule.role(slot)

    def nbytes(self):
        return self.rule.nbytes() + 2 * self.room * sizeof(double)

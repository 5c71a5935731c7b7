"""Margins that lean to the commoner class for as long as it is right more often than they are.

A margin learned from few instances answers at random where its features say little, and is then worse than no
features at all. So the rule counts, over the instances on which the two differ, by how many its own answers lead those
of the commonest class so far. A label whose share is p gets 2 u (2 p - 1) / (1 + exp(lead)) added to its score, u
being the size of a sure margin: 1, or the mean size so far where that is larger. The weights never see it: they are
the method's own.
"""

import numpy as np

from libc.math cimport exp, fabs
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from varifold._core.model cimport BinaryRule
from varifold._core.space cimport Space
from varifold._core.view cimport View

from varifold._core.model import expect

cdef double STRENGTH = 2.0
cdef double LARGEST = 1e100  # size beyond which a margin counts no more


cdef class LeaningRule(BinaryRule):
    """A subclass writes its score of the instance into `margin` in update(); without intercept nothing leans."""

    def __dealloc__(self):
        free(self.margin)
        free(self.counts)

    cdef int attach(self, Space space) except -1:
        self.fit(2)
        self.unit = 1.0
        self.pull = 0.5 * STRENGTH
        BinaryRule.attach(self, space)
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
        BinaryRule.add_class(self)
        if self.classes > self.room:
            self.fit(2 * self.room)
        return 0

    cdef int best(self, double* of) noexcept nogil:
        cdef int c, found = 0
        for c in range(1, self.classes):
            if of[c] > of[found]:
                found = c
        return found

    cdef inline double leaning(self, View* v, int label) noexcept nogil:
        """What the label's share adds to its score."""
        if not self.lean or self.classes < 2 or v.n == 0 or v.slot[0] != 0:
            return 0.0
        return self.unit * self.pull * (2.0 * self.counts[label] / self.total - 1.0)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        BinaryRule.scores(self, v, out)
        if self.lean:
            for c in range(self.classes):
                out[c] += self.leaning(v, c)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        BinaryRule.contributions(self, v, label, out)
        if v.n:
            out[0] += self.leaning(v, label)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int own, common
        cdef double size
        BinaryRule.learn(self, v, y, w)
        if not self.lean or v.n == 0 or v.slot[0] != 0:
            return
        if self.classes >= 2:
            own = self.best(self.margin) if self.problems > 1 else <int> (self.margin[0] > 0.0)
            common = self.best(self.counts)
            if own != common and (own == y or common == y):
                self.lead += w if own == y else -w
                self.pull = STRENGTH / (1.0 + exp(self.lead))
            size = fabs(self.margin[own if self.problems > 1 else 0])
            self.reach += w * (size if size < LARGEST else LARGEST)
        self.counts[y] += w
        self.total += w
        self.unit = max(1.0, self.reach / self.total)

    def dump(self, Py_ssize_t size):
        arrays = BinaryRule.dump(self, size)
        if self.lean:
            arrays["leaning"] = np.array([self.lead, self.total, self.reach, *[self.counts[c] for c in range(self.classes)]])
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int c
        BinaryRule.fill(self, arrays, capacity)
        self.fit(self.classes)
        if not self.lean:
            return
        numbers = expect(arrays, "leaning", "f", (self.classes + 3,))
        self.lead, self.total, self.reach = numbers[:3].tolist()
        for c in range(self.classes):
            self.counts[c] = numbers[c + 3]
        self.unit = max(1.0, self.reach / self.total) if self.total > 0.0 else 1.0
        self.pull = STRENGTH / (1.0 + exp(self.lead))

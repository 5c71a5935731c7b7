"""A classifier's doors for one instance, a dict: to learn it, to answer it, to explain the answer."""

import numpy as np

from varifold._engine.answers cimport Answers
from varifold._engine.block cimport LARGEST_WEIGHT
from varifold._engine.decision cimport MOST_PROBABLE
from varifold._engine.guard cimport claim, release

from varifold._engine.vocabulary import plain_label


cdef class InstanceDoors(Answers):
    """One learner's state, and what is asked of it by instance. For one thread at a time."""

    # ---------------------------------------------------------------- one instance

    cdef int class_of(self, object y, double w) except -2:
        """The index of a label, -1 for a new one, kept in `new_label`; refuses labels and weights."""
        cdef object known = None
        try:
            known = self.label_index.get(y)
        except TypeError:
            pass
        if known is None:
            self.new_label = plain_label(y, self.step + 1)
            known = self.label_index.get(self.new_label)
        self.check_weight(w)
        return -1 if known is None else <int> known

    cdef int learn_gathered(self, list pending, int c, double w) except -1:
        """Learn the gathered pairs and these new names as class c, -1 for `new_label`: take the memory, then change."""
        if w == 0.0:
            return 0
        if self.conformal is not None:
            self.foresee_gathered(c)
        if pending is not None or self.model.prepares:
            self.make_ready(pending, c)
        if c < 0:
            self.reserve_labels(len(self.labels) + 1)
            self.model.reserve_class()
        if pending is not None:
            self.admit(pending)
        if c < 0:
            c = self.add_label(self.new_label)
        w = min(w, LARGEST_WEIGHT)
        self.present(w, True, pending is not None or self.step == 0)
        self.learn_view(c, w)
        if self.model.n_evicted:
            self.apply_evictions()
        if self.calls_python:
            self.raise_pending()
        return 0

    cdef int learn(self, object x, object y, double w) except -1:
        """Learn one dict: check all, take the memory, then change the state."""
        cdef int c = self.class_of(y, w)
        return self.learn_gathered(self.gather(x), c, w)

    def learn_one(self, x, y, w=1.0):
        """Learn one dict; when anything is wrong with it, or memory runs out, the state stays as it was."""
        cdef double weight = self.weight_of(w)
        claim(self)
        try:
            self.learn(x, y, weight)
        except MemoryError as error:
            raise self.no_memory() from error
        finally:
            release(self)

    cdef int ask(self, object x, bint probabilities) except -2:
        """Gather, present and answer one dict; -1 before any label."""
        self.gather(x)
        return self.ask_gathered(probabilities)

    cdef int ask_gathered(self, bint probabilities) except -2:
        """Present and answer the gathered pairs."""
        cdef int c
        if self.model.classes == 0:
            return -1
        self.present(1.0, False, False)
        c = self.decide() if probabilities else self.answer()
        if self.calls_python:
            self.raise_pending()
        return c

    def predict_one(self, x):
        """The label, or None before any was learned."""
        cdef int c
        claim(self)
        try:
            c = self.ask(x, False)
            return self.labels[c] if c >= 0 else None
        finally:
            release(self)

    def predict_proba_one(self, x):
        """Probabilities by label."""
        cdef int c
        claim(self)
        try:
            if self.ask(x, True) < 0:
                return {}
            return {self.labels[c]: self.probs[c] for c in range(self.model.classes)}
        finally:
            release(self)

    def answer_one(self, x):
        """(label, probabilities by label) of an instance that is gathered once; (None, {}) before any label."""
        cdef int c, best
        claim(self)
        try:
            best = self.ask(x, True)
            if best < 0:
                return None, {}
            return self.labels[best], {self.labels[c]: self.probs[c] for c in range(self.model.classes)}
        finally:
            release(self)

    def sets_one(self, x):
        """Sets of labels by coverage, ascending; empty before any label."""
        cdef int c, j
        claim(self)
        try:
            if self.ask(x, True) < 0:
                return [set() for _ in self.conformal.coverages]
            self.foresee(-1)
            return [{self.labels[c] for c in range(self.model.classes) if 1.0 - self.probs[c] <= self.conformal.high[j]}
                    for j in range(self.conformal.k)]
        finally:
            release(self)

    def margins_one(self, x):
        """Scores by label, or what the decision makes of them."""
        cdef int c
        claim(self)
        try:
            if self.ask(x, False) < 0:
                return {}
            if self.decision.kind != MOST_PROBABLE:
                return {self.labels[c]: self.decision.margin[c] for c in range(self.model.classes)}
            return {self.labels[c]: self.out[c] for c in range(self.model.classes)}
        finally:
            release(self)

    def explain_one(self, x, int c=-1):
        """(label, contributions by name, what is left, parts of the decision by name); c = -1 explains the answer."""
        claim(self)
        try:
            label, parts, rest = self.explain(x, c)
            if label is None or self.decision.kind == MOST_PROBABLE:
                return label, parts, rest, {}
            c = self.label_index[label]
            shift, decided = self.decision.parts(c, self.out[c], self.probs[c])
            return label, parts, rest + shift, decided
        finally:
            release(self)

    cdef tuple explain(self, object x, int c):
        cdef Py_ssize_t i
        cdef int best = self.ask(x, False)
        cdef double[::1] share
        if best < 0:
            return None, {}, 0.0
        if c >= self.model.classes:
            raise IndexError(f"no label has the index {c}; there are {self.model.classes}")
        c = best if c < 0 else c
        parts = {}
        rest = 0.0
        if self.n == 0 and not self.model.sees_empty:
            return self.labels[c], parts, self.out[c]
        share = np.zeros(max(1, self.view.n))
        self.model.contributions(&self.view, c, &share[0])
        for i in range(self.view.n):
            if self.view.slot[i] == 0:
                rest = share[i]
            else:
                parts[<object> self.space.key[self.view.slot[i]]] = share[i]
        for key, part in self.model.absent_contributions(&self.view, c).items():
            parts[key if type(key) is str else self.space.name_of(key)] = part
        if self.calls_python:
            self.raise_pending()
        return self.labels[c], parts, rest

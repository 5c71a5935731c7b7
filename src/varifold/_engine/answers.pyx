"""Labels and answers: what a classifier's engine knows of labels, and how a presented instance is scored and counted."""

import numpy as np

from libc.math cimport log
from libc.stdlib cimport free

from varifold._engine.core cimport Core
from varifold._engine.decision cimport MOST_PROBABLE, Decision
from varifold._engine.guard cimport claim, release
from varifold._numeric.activation cimport argmax
from varifold._numeric.memory cimport resize

from varifold._engine.state import checked_array


cdef class Answers(Core):
    """The labels learned so far, and scores and probabilities by label."""

    def __cinit__(self):
        self.labels = []
        self.label_index = {}
        self.decision = Decision()
        self.reserve_labels(2)

    def __dealloc__(self):
        free(self.counts)
        free(self.out)
        free(self.probs)

    # ---------------------------------------------------------------- labels

    cdef int reserve_labels(self, Py_ssize_t labels) except -1:
        """Room for this many labels."""
        cdef Py_ssize_t room = 2 * labels
        if labels <= self.label_room:
            return 0
        self.decision.reserve(self.labels, room)
        if (resize(<void**> &self.out, room * sizeof(double)) < 0
                or resize(<void**> &self.probs, room * sizeof(double)) < 0
                or resize(<void**> &self.counts, room * sizeof(double)) < 0):
            raise MemoryError
        self.label_room = room
        return 0

    cdef int add_label(self, object y) except -1:
        """Class index of a new label; the room for it was made before."""
        cdef Py_ssize_t k = len(self.labels)
        self.label_index[y] = k
        self.labels.append(y)
        self.counts[k] = 0.0
        self.decision.add(self.labels, k)
        self.model.add_class()
        return <int> k

    def answer_by(self, Decision decision not None):
        """Let the answers follow from the probabilities in this way."""
        claim(self)
        try:
            decision.reserve(self.labels, self.label_room)
            self.decision = decision
        finally:
            release(self)

    # ---------------------------------------------------------------- one instance

    cdef void learn_view(self, int y, double w) noexcept nogil:
        """Learn the presented instance as class y."""
        if self.n > 0 or self.model.sees_empty:
            self.model.learn(&self.view, y, w)
        self.count(y, w)

    cdef void count(self, int y, double w) noexcept nogil:
        """Count the instance that was just learned: its score, when its features were seen, its label, the step."""
        if self.conformal is not None and self.foreseen:
            self.conformal.observe_label(self.slots + 1, self.n, self.true_score)
        self.mark_seen()
        self.counts[y] += w

    cdef void score(self) noexcept nogil:
        """Scores of the presented instance into `out`; an instance without features has those of the label counts."""
        cdef int c
        if self.n == 0 and not self.model.sees_empty:
            for c in range(self.model.classes):
                self.out[c] = log(self.counts[c] + 1e-300)
        else:
            self.model.scores(&self.view, self.out)

    cdef void to_probabilities(self) noexcept nogil:
        """Probabilities into `probs`, from the scores in `out`."""
        cdef int c, k = self.model.classes
        cdef double total = 0.0
        if self.n == 0 and not self.model.sees_empty:
            for c in range(k):
                total += self.counts[c]
            for c in range(k):
                self.probs[c] = self.counts[c] / total if total > 0.0 else 1.0 / k
        elif k == 1:
            self.probs[0] = 1.0
        else:
            self.model.proba(self.out, self.probs)

    cdef int answer(self) noexcept nogil:
        """The class index of the presented instance, -1 before any label; its scores are in `out`."""
        cdef int k = self.model.classes
        if k == 0:
            return -1
        if self.decision.kind != MOST_PROBABLE:
            return self.decide()
        self.score()
        return argmax(k, self.out) if k > 1 else 0

    cdef int decide(self) noexcept nogil:
        """As answer(), with probabilities into `probs`."""
        cdef int k = self.model.classes
        if k == 0:
            return -1
        self.score()
        self.to_probabilities()
        if self.decision.kind != MOST_PROBABLE:
            return self.decision.choose(k, self.probs, self.counts)
        return argmax(k, self.out) if k > 1 else 0

    # ---------------------------------------------------------------- sets of labels

    cdef void foresee(self, int y) noexcept nogil:
        """Bounds of the scores of the presented instance, whose probabilities are known; y is the class to be learned.

        -1 is a new class, which no set can hold.
        """
        self.foreseen = self.model.classes > 0
        if self.foreseen:
            self.conformal.foresee(self.slots + 1, self.n, 0.0)
            self.conformal.bound_scores()
            self.true_score = 1.0 - self.probs[y] if y >= 0 else 1.0

    cdef int foresee_gathered(self, int y) except -1 nogil:
        """The same for the gathered pairs, before they are learned."""
        self.present(1.0, False, False)
        self.decide()
        if self.calls_python:
            self.raise_pending()
        self.foresee(y)
        return 0

    # ---------------------------------------------------------------- looking inside

    def class_counts(self):
        """Weight learned by label."""
        return {y: self.counts[i] for i, y in enumerate(self.labels)}

    # ---------------------------------------------------------------- files

    def dump(self):
        """(names by slot, labels, arrays): all of the state."""
        claim(self)
        try:
            names, arrays = self.common_parts()
            arrays["counts"] = np.array([self.counts[i] for i in range(len(self.labels))], dtype=np.float64)
            return names, list(self.labels), arrays
        finally:
            release(self)

    def fill(self, names, labels, dict arrays):
        """Take what dump() gave into an engine that was just made with the same parameters."""
        claim(self)
        try:
            self.take(names, list(labels), arrays)
        finally:
            release(self)

    cdef int take(self, names, list labels, dict arrays) except -1:
        cdef Py_ssize_t i, k = len(labels)
        if len(arrays["counts"]) != k or len(set(labels)) != k:
            raise ValueError(f"{k} labels for {len(arrays['counts'])} counts")
        checked_array(arrays, "counts", "f", (k,), 0)
        self.check_common(names, arrays)
        for key in arrays:
            if key.endswith(".classes"):
                checked_array(arrays, key, "i", (1,), 0, k)
        self.take_common(names, arrays)
        self.reserve_labels(k)
        for i in range(k):
            self.counts[i] = arrays["counts"][i]
        self.labels = labels
        self.label_index = {y: i for i, y in enumerate(labels)}
        for i in range(k):
            self.decision.add(labels, i)
        self.take_model(arrays)
        if self.model.classes != k:
            raise ValueError(f"{k} labels for {self.model.classes} classes of the model")
        return 0

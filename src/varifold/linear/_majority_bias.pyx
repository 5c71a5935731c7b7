"""Bias of the margins towards the majority class while that class is correct more often than they are.

A margin learned from few instances predicts at random where its features carry little information, and is then worse
than no features at all. So the model counts, over the instances on which the two differ, by how many the correct
predictions of the rule exceed those of the commonest class so far: d = net_correct. A label whose share is p gets
2 u (2 p - 1) / (1 + exp(d)) added to its score, u being the size of a confident margin: 1, or the mean size so far if
that is larger. The rule itself learns as if there were no bias. |d| is at most LARGEST_LEAD, so that a rule that was
good once can lose its advantage again.
"""

import numpy as np

from libc.math cimport exp, fabs

from varifold._engine.models.model cimport Model
from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax

from varifold._engine.merging import total
from varifold._engine.state import checked_array, per_class

cdef double STRENGTH = 2.0
cdef double LARGEST_LEAD = 30.0    # e^-30 no longer changes a prediction
cdef double LARGEST_MARGIN = 1e100 # larger ones count as this large


cdef class MajorityBias(Model):
    """Rule with a bias added to its scores; an instance without intercept has none."""

    cdef readonly BinaryRule rule
    cdef double* margin           # [class]: scores of the instance being learned, before it is learned
    cdef double* counts           # [class]: weight learned
    cdef double net_correct       # correct predictions of the margins minus those of the majority class, if they differ
    cdef double total             # weight learned
    cdef double size              # summed absolute margins
    cdef double strength          # factor of the class shares, computed from net_correct; 0 when negligible
    cdef double scaled_strength   # the same on the scale of a confident margin

    def __cinit__(self, BinaryRule rule not None):
        self.rule = rule
        self.hold("", rule)
        self.sees_empty = rule.sees_empty
        self.wants_columns = rule.wants_columns
        self.arrays.scratch(&self.margin, per_class())
        self.arrays.scratch(&self.counts, per_class())
        self.arrays.reserve_classes(2)
        self.update_strength()
        self.scaled_strength = self.strength

    # ---------------------------------------------------------------- predicting

    cdef void update_strength(self) noexcept nogil:
        """Compute the factor 2 / (1 + exp(d)) of the class shares."""
        self.strength = STRENGTH / (1.0 + exp(self.net_correct)) if self.net_correct < LARGEST_LEAD else 0.0

    cdef inline bint is_biased(self, View* v) noexcept nogil:
        """Test whether the shares of the labels change their scores."""
        return not (self.scaled_strength == 0.0 or self.classes < 2 or self.total == 0.0 or v.n == 0 or v.slot[0] != 0)

    cdef inline double bias(self, int label) noexcept nogil:
        """Return the bias that a label's share adds to its score, if there is one."""
        return self.scaled_strength * (2.0 * self.counts[label] / self.total - 1.0)

    cdef void add_bias(self, View* v, const double* margin, double* out) noexcept nogil:
        """Compute scores from margins; both may be the same array."""
        cdef int c
        if self.is_biased(v):
            for c in range(self.classes):
                out[c] = margin[c] + self.bias(c)
        else:
            for c in range(self.classes):
                out[c] = margin[c] + 0.0  # never -0.0

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.rule.scores(v, out)
        self.add_bias(v, out, out)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        self.rule.contributions(v, label, out)
        if self.is_biased(v):
            out[0] += self.bias(label)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.rule.learn_scored(v, y, w, self.margin, NULL)
        self.compare(v, self.margin, y, w)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        if self.scaled_strength == 0.0:
            self.rule.learn_scored(v, y, w, scores, probs)
            self.compare(v, scores, y, w)
            return
        self.rule.learn_scored(v, y, w, self.margin, NULL)
        self.add_bias(v, self.margin, scores)
        if probs != NULL:
            self.proba(scores, probs)
        self.compare(v, self.margin, y, w)

    cdef void compare(self, View* v, double* margin, int y, double w) noexcept nogil:
        """Count whether the margins or the majority class predicted correctly."""
        cdef int own
        cdef double size, net_correct
        if v.n == 0 or v.slot[0] != 0:
            return
        if self.classes >= 2:
            own = argmax(self.classes, margin)
            net_correct = self.net_correct + w * ((own == y) - (argmax(self.classes, self.counts) == y))
            net_correct = min(max(net_correct, -LARGEST_LEAD), LARGEST_LEAD)
            if net_correct != self.net_correct:
                self.net_correct = net_correct
                self.update_strength()
            size = fabs(margin[own])
            self.size += w * (size if size < LARGEST_MARGIN else LARGEST_MARGIN)
        self.counts[y] += w
        self.total += w
        self.scaled_strength = self.strength * max(1.0, self.size / self.total) if self.strength != 0.0 else 0.0

    # ---------------------------------------------------------------- looking and keeping

    def dump(self, Py_ssize_t size):
        arrays = Model.dump(self, size)
        arrays["majority_bias"] = np.array(
            [self.net_correct, self.total, self.size, *[self.counts[c] for c in range(self.classes)]])
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int c
        if len(arrays["state"]) != self.space.size:
            raise ValueError(f"{len(arrays['state'])} rows of weights for {self.space.size} slots")
        self.rule.fill(arrays, capacity)
        self.capacity = capacity
        self.classes = self.rule.classes
        self.arrays.reserve_classes(self.classes)
        numbers = checked_array(arrays, "majority_bias", "f", (self.classes + 3,))
        self.net_correct, self.total, self.size = numbers[:3].tolist()
        for c in range(self.classes):
            self.counts[c] = numbers[c + 3]
        self.update_strength()
        self.scaled_strength = self.strength * (max(1.0, self.size / self.total) if self.total > 0.0 else 1.0)

    def merging(self):
        return self.rule.merging()

    def merge(self, parts):
        """Merge the rule's arrays and sum the counts, with net_correct within its bounds."""
        ahead, weight, size = total([part.arrays["majority_bias"][:3] for part in parts])
        ahead = min(max(ahead, -LARGEST_LEAD), LARGEST_LEAD)
        counts = total([part.by_class("majority_bias", 3) for part in parts])
        return {**self.rule.merge(parts), "majority_bias": np.array([ahead, weight, size, *counts])}

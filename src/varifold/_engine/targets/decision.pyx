"""Choose a label from the probabilities: by costs per label, by a cost matrix, or with equal weight per label.

Minimal expected cost (C. Elkan, IJCAI 2001): with costs by label the prediction maximises cost x probability, with a
matrix it minimises the sum over true labels of probability x cost. ``balanced`` uses one over a label's frequency so
far as its cost, which maximises the mean recall where the probabilities are right. Probabilities are never changed.
"""

from libc.math cimport log
from libc.stdlib cimport free
from libc.string cimport memcpy

from varifold._numeric.activation cimport argmax
from varifold._numeric.memory cimport allocate, resize

cdef double SMALLEST = 1e-300    # probabilities and counts below it count as this, so that margins are finite


cdef class Decision:
    """Rule that chooses a label from the probabilities; a label that `costs` does not name costs 1.

    `costs` maps labels to costs > 0, or true labels to {predicted label: cost}; an entry that a matrix leaves out is 0
    where the prediction is right and 1 where it is wrong.
    """

    def __cinit__(self, str objective="accuracy", costs=None):
        self.costs = costs
        if objective == "balanced":
            self.kind = BALANCED
        elif costs is None:
            self.kind = MOST_PROBABLE
        elif isinstance(next(iter(costs.values())), dict):
            self.kind = COST_MATRIX
        else:
            self.kind = COST_BY_LABEL

    def __dealloc__(self):
        free(self.offset)
        free(self.cost)
        free(self.margin)

    cdef int reserve(self, Py_ssize_t capacity) except -1:
        """Reserve memory for this many labels."""
        cdef Py_ssize_t c
        cdef double* cost
        if self.kind == MOST_PROBABLE or capacity <= self.capacity:
            return 0
        if (resize(<void**> &self.margin, capacity * sizeof(double)) < 0
                or resize(<void**> &self.offset, capacity * sizeof(double)) < 0):
            raise MemoryError
        if self.kind == COST_MATRIX:
            cost = <double*> allocate(capacity * capacity * sizeof(double))
            if cost == NULL:
                raise MemoryError
            for c in range(self.capacity):
                memcpy(cost + c * capacity, self.cost + c * self.capacity, self.capacity * sizeof(double))
            free(self.cost)
            self.cost = cost
        self.capacity = capacity
        return 0

    cdef int look_up(self, list labels, Py_ssize_t c) except -1:
        """Look up the costs of label c, and those between it and the labels before it."""
        cdef Py_ssize_t other
        if self.kind == COST_BY_LABEL:
            self.offset[c] = log(self.costs.get(labels[c], 1.0))
        elif self.kind == COST_MATRIX:
            for other in range(c + 1):
                self.cost[c * self.capacity + other] = self.entry(labels[c], labels[other], c == other)
                self.cost[other * self.capacity + c] = self.entry(labels[other], labels[c], c == other)
        return 0

    def entry(self, true, predicted, right):
        """Return the cost of predicting a label for an instance of a true label."""
        return self.costs.get(true, {}).get(predicted, 0.0 if right else 1.0)

    cdef int choose(self, int k, const double* probs, const double* counts) noexcept nogil:
        """Compute margins from the probabilities of k labels and the weight learned of each; return the class."""
        cdef int c, t
        cdef double total = 0.0
        for c in range(k):
            total += counts[c]
        for c in range(k):
            if self.kind == COST_MATRIX:
                self.margin[c] = 0.0
                for t in range(k):
                    self.margin[c] -= probs[t] * self.cost[t * self.capacity + c]
                continue
            self.margin[c] = log(max(probs[c], SMALLEST))
            if self.kind == BALANCED:
                self.margin[c] -= log(max(counts[c] / total if total > 0.0 else 1.0, SMALLEST))
            else:
                self.margin[c] += self.offset[c]
        return argmax(k, self.margin)

    def parts(self, Py_ssize_t c, double score, double probability):
        """Return (log-probability, by name): to what the intercept completes the score, and what the decision adds.

        The cost's logarithm is ``(decision)``. Minus an expected cost is no sum over features: it has its own name, and
        ``(decision)`` subtracts the score, whose intercept stays (None).
        """
        if self.kind == COST_MATRIX:
            return None, {"(decision)": -score, "(minus expected cost)": self.margin[c]}
        likelihood = log(max(probability, SMALLEST))
        return likelihood, {"(decision)": self.margin[c] - likelihood}

"""From probabilities to the answer: by label costs, by a cost matrix, or with every label counting the same.

Minimal expected cost (C. Elkan, IJCAI 2001): with costs by label the answer maximises cost x probability, with a matrix
it minimises the sum over true labels of probability x cost. ``balanced`` takes one over a label's frequency so far as
its cost, which maximises the mean recall where the probabilities are right. Probabilities are never changed.
"""

from libc.math cimport log
from libc.stdlib cimport free

from varifold._numeric.activation cimport argmax
from varifold._numeric.memory cimport allocate, resize

cdef double SMALLEST = 1e-300    # probabilities and counts below it count as this, so that margins are finite


cdef class Decision:
    """How an answer follows from the probabilities; a label that `costs` does not name costs 1.

    `costs` maps labels to costs > 0, or true labels to {answer: cost}; an entry that a matrix leaves out is 0 where
    the answer is right and 1 where it is wrong.
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

    cdef int reserve(self, list labels, Py_ssize_t room) except -1:
        """Room for this many labels, those known among them."""
        cdef Py_ssize_t c
        cdef double* cost
        if self.kind == MOST_PROBABLE or room <= self.room:
            return 0
        if (resize(<void**> &self.margin, room * sizeof(double)) < 0
                or resize(<void**> &self.offset, room * sizeof(double)) < 0):
            raise MemoryError
        if self.kind == COST_MATRIX:
            cost = <double*> allocate(room * room * sizeof(double))
            if cost == NULL:
                raise MemoryError
            free(self.cost)
            self.cost = cost
        self.room = room
        for c in range(len(labels)):
            self.add(labels, c)
        return 0

    cdef int add(self, list labels, Py_ssize_t c) except -1:
        """Look up the costs of label c, and those between it and the labels before it."""
        cdef Py_ssize_t other
        if self.kind == COST_BY_LABEL:
            self.offset[c] = log(self.costs.get(labels[c], 1.0))
        elif self.kind == COST_MATRIX:
            for other in range(c + 1):
                self.cost[c * self.room + other] = self.entry(labels[c], labels[other], c == other)
                self.cost[other * self.room + c] = self.entry(labels[other], labels[c], c == other)
        return 0

    def entry(self, true, answer, right):
        """The cost of an answer to an instance of a true label."""
        return self.costs.get(true, {}).get(answer, 0.0 if right else 1.0)

    cdef int choose(self, int k, const double* probs, const double* counts) noexcept nogil:
        """Margins from the probabilities of k labels and the weight learned of each; returns the answer."""
        cdef int c, t
        cdef double total = 0.0
        for c in range(k):
            total += counts[c]
        for c in range(k):
            if self.kind == COST_MATRIX:
                self.margin[c] = 0.0
                for t in range(k):
                    self.margin[c] -= probs[t] * self.cost[t * self.room + c]
                continue
            self.margin[c] = log(max(probs[c], SMALLEST))
            if self.kind == BALANCED:
                self.margin[c] -= log(max(counts[c] / total if total > 0.0 else 1.0, SMALLEST))
            else:
                self.margin[c] += self.offset[c]
        return argmax(k, self.margin)

    def parts(self, Py_ssize_t c, double score, double probability):
        """(intercept, by name): what turns a label's score into its margin.

        The intercept makes a log-probability of the score; the cost's logarithm is ``(decision)``. Minus an expected
        cost is no sum over features: it stands under a name of its own, and ``(decision)`` takes the score back.
        """
        if self.kind == COST_MATRIX:
            return 0.0, {"(decision)": -score, "(minus expected cost)": self.margin[c]}
        likelihood = log(max(probability, SMALLEST))
        return likelihood - score, {"(decision)": self.margin[c] - likelihood}

"""The last scores of a detector, and which share of them is larger."""

import numpy as np


from varifold._engine.state cimport State
from varifold._numeric.ascending cimport first_above, first_not_below, replace_ascending

from varifold._engine.state import checked_array, fixed


cdef class RecentScores:
    """A ring of scores and the same scores in ascending order."""

    def __cinit__(self, largest=None):
        self.arrays = State()
        self.arrays.declare("place", &self.place, fixed(2, low=0, high=MOST_SCORES))
        self.arrays.declare("scores", &self.ring,
                            fixed(MOST_SCORES, low=None if largest is None else -largest, high=largest))
        self.arrays.scratch(&self.ascending, fixed(MOST_SCORES))

    cdef double share_from(self, double score) noexcept nogil:
        """Return the share of scores, this one included, that are at least as large: the conformal p-value."""
        cdef Py_ssize_t n = self.place[0]
        return (n - first_not_below(self.ascending, n, score) + 1.0) / (n + 1.0)

    cdef double share_beyond(self, double score) noexcept nogil:
        """Return the share of scores that are larger; equal ones and this one count half."""
        cdef Py_ssize_t n = self.place[0], smaller = first_not_below(self.ascending, n, score)
        return (n - 0.5 * (smaller + first_above(self.ascending, n, smaller, score)) + 0.5) / (n + 1.0)

    cdef void clear(self) noexcept nogil:
        """Forget all scores."""
        self.place[0] = self.place[1] = 0

    cdef void keep(self, double score) noexcept nogil:
        """Add a score, in exchange for the oldest one once there are MOST_SCORES."""
        cdef Py_ssize_t n = self.place[0]
        replace_ascending(self.ascending, n, score, n == MOST_SCORES, self.ring[self.place[1]])
        if n < MOST_SCORES:
            self.place[0] += 1
        self.ring[self.place[1]] = score
        self.place[1] = self.place[1] + 1 if self.place[1] + 1 < MOST_SCORES else 0

    def dump(self):
        """Return the state as arrays by name."""
        return self.arrays.dump(0, 0)

    def fill(self, dict arrays):
        """Restore what dump() returned."""
        cdef Py_ssize_t i
        place = checked_array(arrays, "place", "i", (2,), 0, MOST_SCORES)
        if (place[1] >= MOST_SCORES or (place[0] < MOST_SCORES and place[0] != place[1])
                or np.asarray(arrays["scores"])[place[0]:].any()):
            raise ValueError(f"the next of {place[0]} scores is at {place[1]}")
        self.arrays.fill(arrays, 0, 0, 0)
        ascending = np.sort(arrays["scores"][:place[0]])
        for i in range(place[0]):
            self.ascending[i] = ascending[i]

    def nbytes(self):
        """Return bytes of state."""
        return self.arrays.nbytes()

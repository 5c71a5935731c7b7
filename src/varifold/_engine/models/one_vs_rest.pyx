"""One-versus-rest for rules that know two classes only: one problem up to two labels, then one per label."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid, sigmoids, softmax
from varifold._numeric.rows cimport add_rows
from varifold._numeric.wide cimport wide

from varifold._engine.state import checked_array, per_problem, per_slot_and_problem


cdef wide weigh_many(BinaryRule rule, View* v, int first, int m, double* f) noexcept nogil:
    """Compute w.x of m problems."""
    memset(f, 0, m * sizeof(double))
    add_rows(f, rule.state + first, rule.stride, m, v.n, v.slot, v.x)


cdef class BinaryRule(Model):
    """A rule for labels -1 and +1. The second label is +1; from the third on, there is one problem per label.

    A rule calls ``declare_rule`` in ``__cinit__`` and states its step in ``update_problems``, for one problem or for
    several at once; ``score_problems`` too, where the score is not w.x. When the third label comes, the first label's
    problem becomes the negation of the binary one, the second label's a copy of it, and the new label's starts from
    zero. The first numbers of a slot are neighbours, one per problem, then the second ones, and so on.
    """

    def __cinit__(self):
        self.problems = 1

    cdef int declare_rule(self, int width, int globals) except -1:
        """Keep `width` numbers per slot and problem, the first one a weight, and `globals` numbers per problem."""
        self.width = width
        self.globals = globals
        self.arrays.declare("state", &self.state, per_slot_and_problem(width=width))
        self.arrays.declare("shared", &self.shared, per_problem(width=globals))
        self.set_strides()
        return 0

    cdef void set_strides(self) noexcept nogil:
        """Set the strides to the capacity for problems."""
        self.plane = self.arrays.problems
        self.stride = self.width * self.plane

    cdef int attach(self, Space space) except -1:
        self.start(0)
        Model.attach(self, space)
        return 0

    # ---------------------------------------------------------------- classes

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        if self.classes >= 2:
            self.arrays.reserve_problems(self.classes + 1)
            self.set_strides()
        return 0

    cdef int add_class(self) except -1:
        self.reserve_class()
        self.classes += 1
        if self.classes == 3:
            self.problems = 3
            self.split()
        if self.classes > 2:
            self.problems = self.classes
            self.start(self.classes - 1)
        return 0

    cdef void split(self) noexcept nogil:
        """Copy the binary problem to the second label, and negate it for the first."""
        cdef Py_ssize_t k
        for k in range(self.capacity * self.width):
            self.state[k * self.plane + 1] = self.state[k * self.plane]
        memcpy(self.shared + self.globals, self.shared, self.globals * sizeof(double))
        self.negate(0)

    cdef void start(self, int c) noexcept nogil:
        """Set a new problem's shared numbers to their first values (they are zero already)."""
        pass

    cdef void negate(self, int c) noexcept nogil:
        """Negate the scores of a problem; by default the first number of every slot is a weight."""
        cdef Py_ssize_t slot
        for slot in range(self.capacity):
            at(self, <int32_t> slot, c)[0] = 0.0 - at(self, <int32_t> slot, c)[0]  # never -0.0, as in a loaded model

    # ---------------------------------------------------------------- neighbouring problems

    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil:
        """Compute the signed scores of up to TOGETHER problems from `first` on; w.x, w being the first numbers."""
        if m == 1:
            f[0] = dot(v, self.state + first, self.stride)
        else:
            weigh_many(self, v, first, m, f)

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        """Update m problems from `first` on, in which the label is y[0], y[1], ... (-1 or 1).

        Writes the scores before the update to f. A rule states its step here, for any m up to `batch` by loops over
        the m neighbouring numbers of a slot, see _numeric/wide.pxd.
        """
        memset(f, 0, m * sizeof(double))

    cdef int batch(self, View* v) noexcept nogil:
        """Return how many problems update_problems() may be given at once for this instance."""
        return 1

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        """Return the factor of a slot's value in the score of problem c."""
        return at(self, slot, c)[0]

    # ---------------------------------------------------------------- all problems

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int first = 0
        if self.problems == 1:
            out[0] = 0.0
            if self.classes == 2:
                self.score_problems(v, 0, 1, out + 1)
                out[0] = -out[1]
            return
        while first < self.problems:
            self.score_problems(v, first, min(<int> TOGETHER, self.problems - first), out + first)
            first += TOGETHER

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Apply the logistic function to each margin; for more than two labels, divide by the sum."""
        cdef int c
        cdef double total = 0.0
        if self.problems == 1:
            out[0] = 1.0
            if self.classes == 2:
                out[1] = sigmoid(scores[1])
                out[0] = sigmoid(-scores[1])
            return
        sigmoids(self.problems, scores, out)
        for c in range(self.problems):
            total += out[c]
        if total < 1e-200:    # near underflow; the logistic function is exp there, so its limit is the softmax
            softmax(self.problems, scores, out)
            return
        for c in range(self.problems):
            out[c] /= total

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        if self.problems == 1:
            update_one(self, v, 0, 1.0 if y == 1 else -1.0, w)
        else:
            self.update_all(v, y, w, NULL)

    cdef void update_all(self, View* v, int y, double w, double* scores) noexcept nogil:
        """Update every problem of three labels or more; the scores before it go to `scores`, unless NULL."""
        cdef double sign[TOGETHER]
        cdef double f[TOGETHER]
        cdef int c, m, first = 0, most = min(self.batch(v), <int> TOGETHER)
        while first < self.problems:
            m = min(most, self.problems - first)
            for c in range(m):
                sign[c] = -1.0
            if first <= y < first + m:
                sign[y - first] = 1.0
            self.update_problems(v, first, m, sign, w, scores + first if scores != NULL else f)
            first += m

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """Score and learn in one pass: an update changes its own problem only."""
        if self.classes < 2:
            scores[0] = 0.0
            update_one(self, v, 0, -1.0, w)
        elif self.problems == 1:
            scores[1] = update_one(self, v, 0, 1.0 if y == 1 else -1.0, w)
            scores[0] = -scores[1]
        else:
            self.update_all(v, y, w, scores)
        if probs != NULL:
            self.proba(scores, probs)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef double total = 0.0
        cdef int c
        for c in range(self.problems):
            total += fabs(self.coefficient(slot, c))
        return total

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c = label if self.problems > 1 else 0
        cdef double sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        if self.classes < 2:
            sign = 0.0
        for i in range(v.n):
            out[i] = sign * self.coefficient(v.slot[i], c) * v.x[i]

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {"classes": np.array([self.classes], dtype=np.int64),
                **self.arrays.dump(size, self.classes, self.problems)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        self.problems = self.classes if self.classes > 2 else 1
        self.arrays.fill(arrays, self.space.size if self.alone else -1, capacity, self.classes, self.problems)
        self.set_strides()
        self.grow(capacity)

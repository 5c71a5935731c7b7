"""One-versus-rest for rules that know two classes only."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View
from varifold._numeric.activation cimport sigmoid, sigmoids, softmax
from varifold._numeric.memory cimport allocate_aligned
from varifold._numeric.rows cimport add_rows

from varifold._engine.state import checked_array, per_problem, per_slot_and_problem


cdef class BinaryRule(Model):
    """A rule for labels -1 and +1. The second label is +1; from the third on, there is one problem per label.

    A rule calls ``declare_rule`` in ``__cinit__`` and answers ``score`` and ``update``. When the third label comes the
    first label's problem is the negation of the binary one, the second label's is a copy of it, and the new label
    starts from zero. Of a slot the first numbers of all problems stand side by side, then the second ones, and so on.
    """

    def __cinit__(self):
        self.problems = 1

    def __dealloc__(self):
        free(self.tile)

    cdef int declare_rule(self, int width, int globals) except -1:
        """Keep `width` numbers per slot and problem, the first one a weight, and `globals` numbers per problem."""
        self.width = width
        self.globals = globals
        self.arrays.declare("state", &self.state, per_slot_and_problem(width=width))
        self.arrays.declare("shared", &self.shared, per_problem(width=globals))
        self.set_strides()
        return 0

    cdef void set_strides(self) noexcept nogil:
        """Follow the room that there is for problems."""
        self.plane = self.arrays.problems
        self.stride = self.width * self.plane

    cdef int reserve_tile(self) except -1:
        """Scratch for learning several problems together; `tile_room` says how much."""
        if self.tile == NULL and self.tile_room:
            self.tile = <double*> allocate_aligned(self.tile_room * sizeof(double))
            if self.tile == NULL:
                raise MemoryError
        return 0

    cdef int attach(self, Space space) except -1:
        self.start(0)
        Model.attach(self, space)
        return 0

    # ---------------------------------------------------------------- classes

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        if self.classes >= 2:
            self.reserve_tile()
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
        """The binary problem becomes the second label's; the first label's is its negation."""
        cdef Py_ssize_t k
        for k in range(self.capacity * self.width):
            self.state[k * self.plane + 1] = self.state[k * self.plane]
        memcpy(self.shared + self.globals, self.shared, self.globals * sizeof(double))
        self.negate(0)

    cdef void start(self, int c) noexcept nogil:
        """Set a new problem's shared numbers to their first values (they are zero already)."""
        pass

    cdef void negate(self, int c) noexcept nogil:
        """Turn the problem's answer round; by default the first number of every slot is a weight."""
        cdef Py_ssize_t slot
        for slot in range(self.capacity):
            at(self, <int32_t> slot, c)[0] = 0.0 - at(self, <int32_t> slot, c)[0]  # never -0.0, as a loaded one

    # ---------------------------------------------------------------- one problem

    cdef double score(self, View* v, int c) noexcept nogil:
        """The signed score of problem c."""
        return dot(v, self.state + c, self.stride)

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """Learn y (-1 or 1) in problem c; returns the score before it."""
        return 0.0

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        """What a slot's value is multiplied by."""
        return at(self, slot, c)[0]

    # ---------------------------------------------------------------- all problems

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        if self.problems == 1:
            out[0] = 0.0
            if self.classes == 2:
                out[1] = self.score(v, 0)
                out[0] = -out[1]
        elif self.linear:
            memset(out, 0, self.problems * sizeof(double))
            add_rows(out, self.state, self.stride, self.problems, v.n, v.slot, v.x)
        else:
            for c in range(self.problems):
                out[c] = self.score(v, c)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Logistic of the margin; with more than two labels normalised to one."""
        if self.problems == 1:
            out[0] = 1.0
            if self.classes == 2:
                out[1] = sigmoid(scores[1])
                out[0] = sigmoid(-scores[1])
            return
        sigmoids(self.problems, scores, out)
        self.share(scores, out)

    cdef void share(self, const double* scores, double* chances) noexcept nogil:
        """Normalise the sigmoids of the scores of three labels or more to one."""
        cdef int c
        cdef double total = 0.0
        for c in range(self.problems):
            total += chances[c]
        if total < 1e-200:
            softmax(self.problems, scores, chances)
            return
        for c in range(self.problems):
            chances[c] /= total

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        if self.problems == 1:
            self.update(v, 0, 1.0 if y == 1 else -1.0, w)
        else:
            self.update_all(v, y, w, NULL, NULL)

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        """update() of every problem of three labels or more; the scores before it, unless NULL.

        A rule that takes the sigmoid of every score writes them to `chances`, unless NULL, and returns True.
        """
        cdef int c
        cdef double f
        for c in range(self.problems):
            f = self.update(v, c, 1.0 if y == c else -1.0, w)
            if scores != NULL:
                scores[c] = f
        return False

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """Score and learn in one pass: an update changes its own problem only."""
        if self.classes < 2:
            scores[0] = 0.0
            self.update(v, 0, -1.0, w)
        elif self.problems == 1:
            scores[1] = self.update(v, 0, 1.0 if y == 1 else -1.0, w)
            scores[0] = -scores[1]
        elif self.update_all(v, y, w, scores, probs) and probs != NULL:
            self.share(scores, probs)
            return
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
        if self.problems > 1:
            self.reserve_tile()
        self.arrays.fill(arrays, self.space.size if self.alone else -1, capacity, self.classes, self.problems)
        self.set_strides()
        self.grow(capacity)

    def nbytes(self):
        return Model.nbytes(self) + (self.tile_room * sizeof(double) if self.tile != NULL else 0)

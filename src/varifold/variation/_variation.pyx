"""Variation learner of OVFIV: a sparse linear learner on which columns are absent (or present).

Its input is 1 for every known column that counts, and a bias. It learns the square loss against -1 and +1 by
FTRL-Proximal (OVFIV eq. 3 to 5), with an l1 penalty on everything but the bias. Under the absence encoding the absent
columns count, under the presence encoding the present ones; both describe the same functions.
"""

import numpy as np

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from varifold.linear._ftrl cimport STRIP, proximal_step, step_scattered
from varifold._numeric.rows cimport sum_rows
from varifold._numeric.wide cimport wide
from varifold._engine.names.table cimport COLUMN, NUMERIC
from varifold._engine.state cimport State
from varifold._engine.view cimport View

from varifold._engine.state import checked_array, per_problem, per_slot, per_slot_and_problem

cdef enum:
    INTERVAL = 64      # instances between two decisions on the encoding

cdef double FEW = 0.1  # below this share of columns present, encoding presence is cheaper


cdef wide sum_many(VariationLearner learner, double* out) noexcept nogil:
    """Compute the scores of all problems of the collected instance."""
    cdef double* weights = learner.table + 2 * learner.plane
    memcpy(out, weights, learner.problems * sizeof(double))
    sum_rows(out, weights, 3 * learner.plane, learner.problems, learner.n_counted, learner.counted)


cdef wide step_many(VariationLearner learner) noexcept nogil:
    """Apply the FTRL-Proximal step of all problems to the counted columns."""
    cdef double* s
    cdef Py_ssize_t i, plane = learner.plane
    for i in range(learner.n_counted):
        s = learner.table + 3 * plane * learner.counted[i]
        proximal_step(learner.problems, s, s + plane, s + 2 * plane, learner.gradient, &learner.penalty,
                      learner.penalty.l1)


cdef class VariationLearner:
    """Sparse learner with one problem for up to two labels, then one per label."""

    def __cinit__(self, double L1, double alpha, double beta, double L2, str encode not None, bint bias=True):
        self.penalty.slowness = 1.0 / alpha
        self.penalty.beta = beta
        self.penalty.l1 = L1
        self.penalty.l2 = L2
        self.presence = encode == "presence"
        self.bias = bias
        self.auto = encode == "auto" and bias  # changing the encoding of a function needs a bias
        self.problems = 1
        self.plane = 1
        self.arrays = State()
        self.arrays.declare("variation", &self.table, per_slot_and_problem(width=3))
        self.arrays.scratch(&self.gradient, per_problem())
        self.arrays.scratch(&self.absent, per_slot())
        self.arrays.scratch(&self.is_present, per_slot())

    # ---------------------------------------------------------------- memory

    cdef int reserve_slots(self, Py_ssize_t slots) except -1:
        return self.arrays.reserve_slots(slots)

    cdef int reserve_problems(self, Py_ssize_t problems) except -1:
        self.arrays.reserve_problems(problems)
        self.plane = self.arrays.problems
        return 0

    cdef void split(self) noexcept nogil:
        """Split the binary problem: it becomes the second label's; the first label gets its negation."""
        cdef Py_ssize_t slot, k
        cdef double* s
        for slot in range(self.space.size):  # unused slots stay as in a loaded model, without negative zeros
            s = self.cell(slot, 0)
            for k in range(3):
                s[k * self.plane + 1] = s[k * self.plane]
            s[0] = -s[0]
            s[2 * self.plane] = -s[2 * self.plane]

    # ---------------------------------------------------------------- predicting

    cdef void collect(self, View* v) noexcept nogil:
        """Collect the counted columns of an instance, ascending."""
        cdef Py_ssize_t i, n = 0, slot
        cdef int32_t* absent = self.absent
        cdef uint8_t* is_present = self.is_present
        cdef uint8_t* kind = self.space.kind
        self.counted = v.column
        self.n_counted = v.columns
        if self.presence:
            return
        # branch-free, as the presence of columns is unpredictable
        for i in range(v.columns):
            is_present[v.column[i]] = 1
        for slot in range(1, self.space.size):
            absent[n] = <int32_t> slot
            n += (1 - is_present[slot]) & ((kind[slot] & (NUMERIC | COLUMN)) != 0)
        for i in range(v.columns):
            is_present[v.column[i]] = 0
        self.counted = self.absent
        self.n_counted = n

    cdef double score(self, int c) noexcept nogil:
        """Return the score of problem c for the collected instance: bias plus the weights of the counted columns."""
        cdef Py_ssize_t i
        cdef double f = self.weight(0, c)
        for i in range(self.n_counted):
            f += self.weight(self.counted[i], c)
        return f

    cdef void scores(self, double* out) noexcept nogil:
        """Compute score() of every problem, reading the table once."""
        if self.problems == 1:
            out[0] = self.score(0)
        else:
            sum_many(self, out)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w, const double* scores) noexcept nogil:
        """Update every problem on the square loss for the collected instance, which has these scores."""
        cdef int c
        cdef double target
        for c in range(self.problems):
            target = 1.0 if y == (c if self.problems > 1 else 1) else -1.0
            self.gradient[c] = 2.0 * w * (scores[c] - target)
        self.step()
        self.rounds += 1.0
        if self.auto and not self.presence:
            self.consider_encoding(v)

    cdef void step(self) noexcept nogil:
        """Apply the FTRL-Proximal step to the bias, without l1 penalty, and to the counted columns."""
        cdef double* s = self.cell(0, 0)
        if self.bias:
            proximal_step(self.problems, s, s + self.plane, s + 2 * self.plane, self.gradient, &self.penalty, 0.0)
        if self.problems == 1:
            self.step_one()
        else:
            step_many(self)

    cdef void step_one(self) noexcept nogil:
        """Apply the FTRL-Proximal step to the counted columns of the only problem, several at a time."""
        cdef Py_ssize_t i = 0, m
        cdef double* moved[STRIP]
        cdef double gradient[STRIP]
        while i < self.n_counted:
            m = 0
            while i < self.n_counted and m < STRIP:
                moved[m] = self.cell(self.counted[i], 0)
                gradient[m] = self.gradient[0]
                m += 1
                i += 1
            step_scattered(m, moved, self.plane, gradient, &self.penalty, self.penalty.l1)

    cdef void consider_encoding(self, View* v) noexcept nogil:
        """Every INTERVAL instances, switch to presence permanently if few of the known columns are present."""
        self.there += v.columns
        self.known += v.columns + self.n_counted
        if self.rounds % INTERVAL == 0.0:
            if self.there < FEW * self.known:
                self.encode_presence()
            self.there = 0.0
            self.known = 0.0

    cdef void encode_presence(self) noexcept nogil:
        """Convert absence to presence: the same function is b + the sum of all weights, less those of present ones."""
        cdef int c
        cdef Py_ssize_t slot
        cdef double* s
        cdef double bias
        for c in range(self.problems):
            bias = self.weight(0, c)
            for slot in range(1, self.space.size):
                s = self.cell(slot, c)
                bias += s[2 * self.plane]
                s[0] = -s[0]
                s[2 * self.plane] = -s[2 * self.plane]
            s = self.cell(0, c)
            s[2 * self.plane] = bias
            s[0] = -bias * ((self.penalty.beta + s[self.plane]) * self.penalty.slowness + self.penalty.l2)
        self.presence = True

    # ---------------------------------------------------------------- looking inside and files

    def nonzero(self):
        """Count the columns with nonzero weight in the first problem."""
        cdef Py_ssize_t slot
        return sum(1 for slot in range(1, self.space.size) if self.weight(slot, 0) != 0.0)

    def dump(self, Py_ssize_t size):
        """Return the state of the first `size` slots as arrays."""
        return {**self.arrays.dump(size, 0, self.problems),
                "encoding": np.array([self.presence, self.there, self.known, self.rounds], dtype=np.float64)}

    def fill(self, dict arrays, Py_ssize_t rows, Py_ssize_t capacity, int problems):
        """Restore and validate the arrays from dump(); `rows` slots are saved (-1: any number)."""
        self.problems = problems
        self.arrays.fill(arrays, rows, capacity, 0, problems)
        self.plane = self.arrays.problems
        presence, self.there, self.known, self.rounds = checked_array(arrays, "encoding", "f", (4,)).tolist()
        self.presence = presence != 0.0

    def nbytes(self):
        """Return the allocated bytes, including scratch."""
        return self.arrays.nbytes()

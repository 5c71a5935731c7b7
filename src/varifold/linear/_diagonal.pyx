"""Diagonal AROW over an instance as a list of inputs: a feature may have several, each with its own weight.

With l = max(0, 1 - y mu.x) and r the parameter over the sample weight, mu_i += l y x_i Sigma_ii / (x' Sigma x + r), and
the precision 1 / Sigma_ii grows by x_i^2 / r.
"""

from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, BinaryRule, at, capped
from varifold._engine.view cimport View
from varifold._numeric.wide cimport inlined, wide

from varifold._engine.state import per_slot

cdef enum:
    FEW = 8    # with a loss in less than one of 8 problems, those are corrected one by one


cdef inline inlined measure_problems(DiagonalRule rule, int first, int m, Py_ssize_t plane, double* f,
                                     double* variance) noexcept nogil:
    """Compute mu.x and x' Sigma x of m problems; one of the two may be NULL."""
    cdef double* s
    cdef double x
    cdef Py_ssize_t i
    cdef int c
    if f != NULL:
        memset(f, 0, m * sizeof(double))
    if variance != NULL:
        memset(variance, 0, m * sizeof(double))
    for i in range(rule.count):
        s = pair_at(rule, &rule.inputs[i], first, plane)
        x = rule.inputs[i].x
        for c in range(m):
            if f != NULL:
                f[c] += s[c] * x
            if variance != NULL:
                variance[c] += x * x / (1.0 + s[plane + c])


cdef inline inlined move_problems(DiagonalRule rule, int first, int m, Py_ssize_t plane, const double* step,
                                  const double* active, double r) noexcept nogil:
    """Move the means of m problems by step[c] Sigma x; precisions grow where active[c] is 1, up to `ceiling`."""
    cdef double* s
    cdef double x, more, ceiling = rule.ceiling
    cdef Py_ssize_t i
    cdef int c
    for i in range(rule.count):
        s = pair_at(rule, &rule.inputs[i], first, plane)
        x = rule.inputs[i].x
        more = x * x / r
        for c in range(m):
            s[c] += step[c] * x / (1.0 + s[plane + c])
            s[plane + c] = min(s[plane + c] + more * active[c], ceiling)


cdef inline double learn_one(DiagonalRule rule, int c, Py_ssize_t plane, double y, double r) noexcept nogil:
    """Update one problem; return the score before it."""
    cdef double f, variance, loss, active = 1.0
    measure_problems(rule, c, 1, plane, &f, &variance)
    loss = capped(1.0 - y * f)
    if loss > 0.0:
        variance = loss * y / (variance + r)
        move_problems(rule, c, 1, plane, &variance, &active, r)
    return f


cdef wide weigh_many(DiagonalRule rule, int first, int m, double* f) noexcept nogil:
    measure_problems(rule, first, m, rule.plane, f, NULL)


cdef wide correct_many(DiagonalRule rule, int first, int m, double* error, const double* active,
                       double r) noexcept nogil:
    """Move the scores of m problems towards score + error."""
    cdef double variance[TOGETHER]
    cdef int c
    measure_problems(rule, first, m, rule.plane, NULL, variance)
    for c in range(m):
        error[c] /= variance[c] + r
    move_problems(rule, first, m, rule.plane, error, active, r)


cdef class DiagonalRule(BinaryRule):
    """Mean and precision of each weight, per slot and problem: a pair for every kind of input.

    A subclass calls ``declare_inputs`` and lists an instance's inputs in ``collect``.
    """

    cdef int declare_inputs(self, int pairs, int most, double r, double memory) except -1:
        """Keep this many pairs per slot; an instance has at most `most` inputs per slot."""
        self.declare_rule(2 * pairs, 0)
        self.r = r
        self.ceiling = memory / r if memory > 0.0 else 1e300
        self.arrays.scratch_bytes(<void**> &self.inputs, most * sizeof(Input), per_slot())
        return 0

    cdef void collect(self, View* v) noexcept nogil:
        """Write the instance's inputs to `inputs` and their number to `count`."""
        self.count = 0

    cdef void negate(self, int c) noexcept nogil:
        cdef Py_ssize_t slot
        cdef int k
        cdef double* s
        for slot in range(self.capacity):
            for k in range(0, self.width, 2):
                s = at(self, <int32_t> slot, c) + k * self.plane
                s[0] = 0.0 - s[0]  # unlike -s[0] it leaves a zero as it is: unused slots are equal in a loaded model

    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil:
        cdef double score  # a local variable: the compiler knows that no weight is stored there
        self.collect(v)
        if m > 1:
            weigh_many(self, first, m, f)
            return
        measure_problems(self, first, 1, self.plane, &score, NULL)
        f[0] = score

    cdef int batch(self, View* v) noexcept nogil:
        return TOGETHER

    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil:
        """Update the problems with a hinge loss, one by one if they are few."""
        cdef double error[TOGETHER]
        cdef double active[TOGETHER]
        cdef double loss, r = self.r / w
        cdef int c, wrong = 0
        self.collect(v)
        if m == 1:
            if self.plane == 1:  # a constant distance is worth a copy of the loops
                f[0] = learn_one(self, first, 1, y[0], r)
            else:
                f[0] = learn_one(self, first, self.plane, y[0], r)
            return
        weigh_many(self, first, m, f)
        for c in range(m):
            loss = capped(1.0 - y[c] * f[c])
            active[c] = 1.0 if loss > 0.0 else 0.0
            error[c] = loss * y[c] if loss > 0.0 else 0.0
            wrong += loss > 0.0
        if FEW * wrong >= m:
            correct_many(self, first, m, error, active, r)
        elif wrong:
            for c in range(m):
                if active[c] > 0.0:
                    learn_one(self, first + c, self.plane, y[c], r)

    cdef void measure(self, View* v, int c, double* f, double* variance) noexcept nogil:
        """Compute the score of an instance and its variance x' Sigma x."""
        cdef double score, total
        self.collect(v)
        measure_problems(self, c, 1, self.plane, &score, &total)
        f[0] = score
        variance[0] = total

    cdef void move(self, int c, double step, double r) noexcept nogil:
        """Move the means by step Sigma x, over the inputs collected last."""
        cdef double active = 1.0
        move_problems(self, c, 1, self.plane, &step, &active, r)

"""AROW's diagonal step in all problems of one-versus-rest at once, over an instance given as a list of inputs.

An input meets a pair of numbers per problem, mean and precision of a weight. The means of one input stand side by side
for all problems, and so do the precisions, so that the loops run over problems inside: what is added up for a problem is
added in the order of the inputs, as if the problems came one after the other.
"""

from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport BinaryRule, capped
from varifold._numeric.kernels cimport add_multiple
from varifold.linear._problems cimport add_quotients, step_row

cdef enum:
    MANY = 32    # problems from which on a row of them is worth a call

# One input of an instance: a number at a pair of a slot.
cdef struct Input:
    int32_t slot
    int32_t pair
    int32_t entry    # of the view that it comes from; -1 for an absent column
    double x

# Where the pairs are: those of a slot are `stride` numbers apart from the next slot's, the numbers of a problem `plane`.
cdef struct Pairs:
    double* state
    Py_ssize_t stride
    Py_ssize_t plane
    int problems
    double* work         # scratch [3][problem]
    int32_t* wrong       # scratch [problem]


cdef inline Pairs pairs_of(BinaryRule rule, double* work, int32_t* wrong) noexcept nogil:
    """The numbers of a rule, for the loops over all of its problems."""
    cdef Pairs p
    p.state = rule.state
    p.stride = rule.stride
    p.plane = rule.plane
    p.problems = rule.problems
    p.work = work
    p.wrong = wrong
    return p


cdef inline void score_problems(Pairs* p, const Input* inputs, Py_ssize_t n, double* out) noexcept nogil:
    """The score of each problem."""
    cdef Py_ssize_t i
    cdef int c
    cdef double x
    cdef double* at
    memset(out, 0, p.problems * sizeof(double))
    for i in range(n):
        at = p.state + inputs[i].slot * p.stride + 2 * inputs[i].pair * p.plane
        x = inputs[i].x
        if p.problems >= MANY:
            add_multiple(p.problems, out, x, at)
            continue
        for c in range(p.problems):
            out[c] += at[c] * x


cdef inline int list_wrong(Pairs* p, int y, const double* scores, double* goal) noexcept nogil:
    """The problems with a hinge loss into `wrong`, their losses with the label's sign into `goal`; how many."""
    cdef int c, m = 0
    cdef double sign, loss
    for c in range(p.problems):
        sign = 1.0 if c == y else -1.0
        loss = capped(1.0 - sign * scores[c])
        if loss > 0.0:
            p.wrong[m] = c
            goal[m] = loss * sign
            m += 1
    return m


cdef inline void step_most(Pairs* p, const Input* inputs, Py_ssize_t n, int y, double r, double ceiling) noexcept nogil:
    """What step_problems() does after the scores, where many problems are wrong: all are walked, those are changed."""
    cdef double* active = p.work
    cdef double* step = p.work + p.problems
    cdef double* confidence = p.work + 2 * p.problems
    cdef double* at
    cdef double x, loss
    cdef Py_ssize_t i
    cdef int c
    for c in range(p.problems):
        loss = capped(1.0 + p.work[c])
        step[c] = -loss if loss > 0.0 else 0.0
    loss = capped(1.0 - p.work[y])
    step[y] = loss if loss > 0.0 else 0.0
    for c in range(p.problems):
        active[c] = 1.0 if step[c] != 0.0 else 0.0
    memset(confidence, 0, p.problems * sizeof(double))
    for i in range(n):
        at = p.state + inputs[i].slot * p.stride + (2 * inputs[i].pair + 1) * p.plane
        add_quotients(p.problems, confidence, inputs[i].x * inputs[i].x, at)
    for c in range(p.problems):
        step[c] /= confidence[c] + r
    for i in range(n):
        at = p.state + inputs[i].slot * p.stride + 2 * inputs[i].pair * p.plane
        x = inputs[i].x
        step_row(p.problems, at, at + p.plane, step, active, x, x * x / r, ceiling)


cdef inline int count_wrong(Pairs* p, int y) noexcept nogil:
    """How many problems have a hinge loss, by the scores in `work`."""
    cdef int c, m = 0
    for c in range(p.problems):
        m += 1.0 + p.work[c] > 0.0
    return m - (1.0 + p.work[y] > 0.0) + (1.0 - p.work[y] > 0.0)


cdef inline void step_problems(Pairs* p, const Input* inputs, Py_ssize_t n, int y, double r,
                               double ceiling) noexcept nogil:
    """Learn label y; precisions are held at most at `ceiling`, r is the parameter over the sample weight."""
    cdef double* step = p.work + p.problems
    cdef double* confidence = p.work + 2 * p.problems
    cdef double* at
    cdef double* s
    cdef double x, square, more
    cdef Py_ssize_t i
    cdef int k, m
    score_problems(p, inputs, n, p.work)
    if p.problems >= MANY and 8 * count_wrong(p, y) >= p.problems:
        step_most(p, inputs, n, y, r, ceiling)
        return
    m = list_wrong(p, y, p.work, step)
    memset(confidence, 0, m * sizeof(double))
    for i in range(n):
        at = p.state + inputs[i].slot * p.stride + (2 * inputs[i].pair + 1) * p.plane
        square = inputs[i].x * inputs[i].x
        for k in range(m):
            confidence[k] += square / (1.0 + at[p.wrong[k]])
    for k in range(m):
        step[k] /= confidence[k] + r
    for i in range(n):
        at = p.state + inputs[i].slot * p.stride + 2 * inputs[i].pair * p.plane
        x = inputs[i].x
        more = x * x / r
        for k in range(m):
            s = at + p.wrong[k]
            s[0] += step[k] * x / (1.0 + s[p.plane])
            s[p.plane] = min(s[p.plane] + more, ceiling)

"""OLIDS in all problems of one-versus-rest together, for instances of numbers; each sum keeps its order."""

from libc.string cimport memcpy, memset

from varifold._engine.view cimport View
from varifold.linear._olids cimport OLIDSRule
from varifold.linear._problems cimport TOGETHER, add_parts, add_spreads, step_parts, tile_width

cdef enum:
    SCALE = 0        # of the shared numbers of a problem: factor on every stored weight

# What some problems make of an instance.
cdef struct Tile:
    Py_ssize_t m             # problems
    double f[TOGETHER]       # scores
    double norm[TOGETHER]    # squared norms of the values times their confidence
    double left[TOGETHER]    # confidence of the features that were not there a round ago
    double stayed[TOGETHER]  # and of those that were


cdef inline void measure_problems(OLIDSRule rule, View* v, Py_ssize_t first, double w, Tile* t) noexcept nogil:
    """Score as many problems from `first` on as a tile holds; mark_stays() was called."""
    cdef double all[TOGETHER]
    cdef double* state = rule.state + first
    cdef Py_ssize_t c
    t.m = min(tile_width(v.n), rule.problems - first)
    memset(all, 0, t.m * sizeof(double))
    memset(t.stayed, 0, t.m * sizeof(double))
    memset(t.f, 0, t.m * sizeof(double))
    memset(t.norm, 0, t.m * sizeof(double))
    add_spreads(all, t.stayed, rule.tile, state, rule.stride, rule.plane, t.m, v.n, v.slot, v.x, rule.stays, w)
    for c in range(t.m):
        t.stayed[c] = t.stayed[c] / all[c] if all[c] > 0.0 else 1.0
        t.left[c] = 1.0 - t.stayed[c]
    add_parts(t.f, t.norm, state, rule.stride, t.m, v.n, v.slot, v.x, rule.stays, t.left, t.stayed)
    for c in range(t.m):
        t.f[c] *= rule.shared[(first + c) * rule.globals + SCALE]


cdef inline void learn_problems(OLIDSRule rule, View* v, int y, double w, double* scores) noexcept nogil:
    """update() of every problem for an instance without levels, with the scores before it, unless NULL.

    For the dense form.
    """
    cdef Tile t
    cdef double step
    cdef Py_ssize_t c, first = 0
    rule.mark_stays(v)
    while first < rule.problems:
        measure_problems(rule, v, first, w, &t)
        for c in range(t.m):
            step = rule.step_of(first + c, t.f[c], t.norm[c], 1.0 if y == first + c else -1.0, w)
            t.stayed[c] *= step
            t.left[c] *= step
        step_parts(rule.state + first, rule.stride, rule.plane, t.m, v.n, v.slot, v.x, rule.stays, t.left, t.stayed,
                   rule.tile, w)
        if scores != NULL:
            memcpy(scores + first, t.f, t.m * sizeof(double))
        first += t.m

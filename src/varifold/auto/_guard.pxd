"""The guard: while the mixture has not shown itself better than the class frequencies, it has to be sure.

An answer other than the most frequent class needs a lead of `strength` times that class's own in frequency. The guard
ends when the mixture leads the most frequent class by ENOUGH answers, or the class frequencies by as many nats of log
loss, and begins again when that is lost. Each answer by which the answers given lie behind the most frequent class asks
for half as much again, and for one more to end it. Before `full` instances were learned only a part of the lead is asked
for: so soon there is little to lose, and the class frequencies are not known either.
"""

from libc.math cimport log

from varifold._numeric.activation cimport argmax

cdef enum:
    ENOUGH = 2         # lead, in answers or in nats, that ends the guard
    DEEPEST = 10       # neither lead falls below minus this, so that an early deficit is made up for

cdef struct Guard:
    double strength    # lead asked for, as a multiple of the most frequent class's; 0 for no guard
    double full        # instances from which on all of it is asked for
    double right_lead  # rounds in which the mixture was right against the most frequent class, less the others
    double loss_lead   # log loss of the class frequencies less the mixture's
    double behind      # wrong answers given more than the most frequent class would have


cdef inline double frequency(int k, const double* count, int c) noexcept nogil:
    """Share of a label so far, half an instance added to each."""
    cdef int i
    cdef double total = 0.5 * k
    for i in range(k):
        total += count[i]
    return (count[c] + 0.5) / total


cdef inline bint guard_holds(Guard* g, int k, const double* p, const double* count) noexcept nogil:
    """Whether the most frequent class is to be answered in place of the most probable one."""
    cdef int best = argmax(k, p), common = argmax(k, count), c
    cdef double lost = max(g.behind, 0.0), asked = 1.0 + 0.5 * lost, total = 0.0
    if best == common or g.right_lead >= ENOUGH + lost or g.loss_lead >= ENOUGH + lost:
        return False
    asked *= g.strength * (frequency(k, count, common) - frequency(k, count, best))
    for c in range(k):
        total += count[c]
    if total < g.full:
        asked *= total / g.full
    return p[best] - p[common] < asked


cdef inline void guard_learn(Guard* g, int k, const double* p, const double* given, const double* count, int y,
                             double w) noexcept nogil:
    """By how much the mixture leads the most frequent class, in answers and in log loss, and the answers given."""
    cdef int best = argmax(k, p), common = argmax(k, count)
    g.behind += w * ((y == common) - (y == argmax(k, given)))
    g.right_lead = max(g.right_lead + w * ((y == best) - (y == common)), -DEEPEST)
    g.loss_lead = max(g.loss_lead + w * log(p[y] / frequency(k, count, y)), -DEEPEST)

"""Guard: until the mixture has proved better than the class frequencies, other labels need a clear lead.

Where no feature is informative, always predicting the most frequent label is best, and every other prediction costs. So
the guard predicts another label only if its probability leads that of the most frequent one by `strength` times the
lead of the latter in frequency.

- The guard is off once the mixture leads the most frequent label by ENOUGH right predictions, or the class frequencies
  by as many nats of log loss, and on again when that lead is lost.
- For each error by which the predictions are behind the most frequent label, it requires half as much lead again, and
  one right prediction more.
- During the first `full` instances it requires a part of the lead: so early there is little to lose, and the class
  frequencies are uncertain too. Labels whose predictions were not judged (where labels come late) do not count: what
  was not tried yet has not failed.
"""

from libc.math cimport log

from varifold._numeric.activation cimport argmax

cdef enum:
    ENOUGH = 2          # lead, in right predictions or in nats, that turns the guard off
    DEEPEST = 10        # neither lead falls below minus this, so that an early deficit can be recovered
    GUARD_NUMBERS = 4   # as saved

cdef struct Guard:
    double right_lead   # right predictions of the mixture less those of the most frequent label
    double loss_lead    # log loss of the class frequencies less the mixture's
    double behind       # errors of the predictions less those of the most frequent label
    double unjudged     # weight of the labels by which no prediction, or it in part only, was judged


cdef inline double frequency(int k, const double* count, int c) noexcept nogil:
    """Return the share of label c so far, half an instance added to each label."""
    cdef int i
    cdef double total = 0.5 * k
    for i in range(k):
        total += count[i]
    return (count[c] + 0.5) / total


cdef inline bint guard_holds(const Guard* g, double strength, double full, int k, const double* p,
                             const double* count) noexcept nogil:
    """Return whether to predict the most frequent label instead of the most probable one."""
    cdef int best = argmax(k, p), common = argmax(k, count), c
    cdef double lost = max(g.behind, 0.0), required = 1.0 + 0.5 * lost, total = 0.0
    if best == common or g.right_lead >= ENOUGH + lost or g.loss_lead >= ENOUGH + lost:
        return False
    required *= strength * (frequency(k, count, common) - frequency(k, count, best))
    for c in range(k):
        total += count[c]
    total = max(total - g.unjudged, 0.0)
    if total < full:
        required *= total / full
    return p[best] - p[common] < required


cdef inline void guard_learn(Guard* g, int k, const double* p, const double* output, const double* count, int y,
                             double w) noexcept nogil:
    """Update the leads with label y; p is the mixture's probability, `output` the one after the guard."""
    cdef int best = argmax(k, p), common = argmax(k, count)
    g.behind += w * ((y == common) - (y == argmax(k, output)))
    g.right_lead = max(g.right_lead + w * ((y == best) - (y == common)), -DEEPEST)
    g.loss_lead = max(g.loss_lead + w * log(p[y] / frequency(k, count, y)), -DEEPEST)

"""Presence of a feature over time, and the test whether it has vanished (ORF3V, eq. 7)."""

from libc.math cimport floor, log1p
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from varifold._numeric.bits cimport popcount

# Presence of a feature: totals over its life, and one bit per round for the last `window` rounds (bit = round %
# window, valid up to round `last`; later rounds are absences not yet recorded).
cdef struct Presence:
    int64_t first
    int64_t last
    int64_t count
    uint64_t* ring

# Vanished by Hoeffding: share of all rounds - share of the last `window` rounds > epsilon.
# Vanished by gap: (1 - share) ** gap < delta after an absence of a whole window.
cdef struct Vanishing:
    int64_t window
    Py_ssize_t words
    double epsilon
    double log_delta
    bint by_bound
    bint by_gap


cdef inline void clear_bits(uint64_t* ring, int64_t a, int64_t b) noexcept nogil:
    """Clear bits a .. b - 1."""
    cdef int64_t stop
    cdef uint64_t mask
    while a < b:
        stop = (a | 63) + 1
        mask = (<uint64_t> 0xFFFFFFFFFFFFFFFF) << (a & 63)
        if b < stop:
            mask &= ((<uint64_t> 1) << (b & 63)) - 1
            stop = b
        ring[a >> 6] &= ~mask
        a = stop


cdef inline void presence_mark(Presence* p, Vanishing* rule, int64_t t) noexcept nogil:
    """Record the feature as present in round t."""
    cdef int64_t n = rule.window, a, b
    if p.count == 0:
        p.first = t
    elif t - p.last >= n:
        memset(p.ring, 0, rule.words * sizeof(uint64_t))
    elif t - p.last > 1:
        a = (p.last + 1) % n
        b = t % n
        if a < b:
            clear_bits(p.ring, a, b)
        else:
            clear_bits(p.ring, a, n)
            clear_bits(p.ring, 0, b)
    a = t % n
    p.ring[a >> 6] |= (<uint64_t> 1) << (a & 63)
    p.last = t
    p.count += 1


cdef inline int64_t presence_recent(Presence* p, Vanishing* rule) noexcept nogil:
    """Return the number of rounds with the feature among the `window` rounds that end with `last`."""
    cdef int64_t total = 0
    cdef Py_ssize_t k
    for k in range(rule.words):
        total += popcount(p.ring[k])
    return total


cdef inline bint bound_exceeded(Presence* p, Vanishing* rule, int64_t t, int64_t recent) noexcept nogil:
    """Return whether the share of all rounds exceeds that of the last window by Hoeffding's epsilon (eq. 7)."""
    cdef int64_t age = t - p.first + 1
    return age >= rule.window and <double> p.count / age - <double> recent / rule.window > rule.epsilon


cdef inline double gap_rate(Presence* p, Vanishing* rule) noexcept nogil:
    """Return log(1 - share), the share being that at the last occurrence with `window` rounds of absence added."""
    return log1p(-<double> p.count / (p.last - p.first + 1 + rule.window))


cdef inline bint gap_exceeded(Presence* p, Vanishing* rule, int64_t t) noexcept nogil:
    """Return whether the absence up to round t is too long for the share before it."""
    return t - p.last >= rule.window and (t - p.last) * gap_rate(p, rule) < rule.log_delta


cdef inline int64_t soonest(Presence* p, Vanishing* rule, int64_t t) noexcept nogil:
    """Return a round before which no rule can fire, whatever follows, for a feature present in round t.

    Once the feature is a window old, the difference of the bound grows by at most 1/window a round; and it cannot
    pass epsilon before the share of all rounds does.
    """
    cdef int64_t age = t - p.first + 1, start
    cdef double slack, rounds
    if not rule.by_bound:
        return t + rule.window
    if age < rule.window:
        return p.first + rule.window - 1
    slack = rule.epsilon - <double> p.count / age + <double> presence_recent(p, rule) / rule.window
    rounds = slack * rule.window
    if rule.epsilon >= 1.0:
        rounds = <double> rule.window
    else:
        rounds = max(rounds, (rule.epsilon * age - p.count) / (1.0 - rule.epsilon))
    start = <int64_t> floor(min(rounds, <double> rule.window))
    return t + (start if start > 1 else 1)


cdef inline int64_t vanishes(Presence* p, Vanishing* rule, int64_t t) noexcept nogil:
    """Return the first round >= t in which a rule fires if the feature stays absent since `last` < t; -1 if none."""
    cdef int64_t n = rule.window, s, recent = 0, due, start, a
    if rule.by_bound and <double> p.count / (t - p.first + 1) > rule.epsilon:
        start = max(t - n + 1, p.first)
        a = start % n       # position of a round in the ring, updated instead of divided
        for s in range(start, p.last + 1):
            recent += (p.ring[a >> 6] >> (a & 63)) & 1
            a = a + 1 if a + 1 < n else 0
        a = start % n
        for s in range(t, p.last + n + 1):
            if bound_exceeded(p, rule, s, recent):
                return s
            if s - n + 1 <= p.last and s - n + 1 >= p.first:
                recent -= (p.ring[a >> 6] >> (a & 63)) & 1
                a = a + 1 if a + 1 < n else 0
    if not rule.by_gap:
        return -1
    due = p.last + <int64_t> floor(rule.log_delta / gap_rate(p, rule))
    if due < p.last + n:
        due = p.last + n
    if due < t:
        due = t
    while not gap_exceeded(p, rule, due):
        due += 1
    return due

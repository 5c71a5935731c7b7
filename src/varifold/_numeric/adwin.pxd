"""ADWIN (Bifet and Gavaldà 2007): the mean of a stream over a window that is cut when two parts of it differ.

The window is an exponential histogram: row r holds up to BUCKETS buckets of 2^r numbers each and stores the sum and
the sum of squared deviations of each bucket. The window is cut when two parts of it have means that differ by more than

    eps = sqrt(2 / m v ln(2 / d)) + 2 / (3 m) ln(2 / d),    1 / m = 1 / n0 + 1 / n1,    d = delta / ln(n),

where v is the variance of the window. It is cut where the difference exceeds eps most, and again until no two parts
differ. `Adwin` is a plain struct that any model may hold and use without the GIL; it allocates no memory.
"""

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memmove, memset

cdef enum:
    LEVELS = 24      # rows of buckets: enough for 80 million numbers; beyond that the oldest are dropped
    BUCKETS = 5      # per row; one more merges the two oldest into a bucket of the next row

cdef struct Adwin:
    double delta                        # of the test: roughly the probability of a false alarm
    int64_t clock                       # the test runs at every clock-th number
    int64_t part                        # minimum count of numbers in either part of the window
    int64_t grace                       # numbers before the first test
    int64_t updates
    int64_t width                       # numbers in the window
    double total, squares               # of the window: sum, and sum of squared deviations from its mean
    int used[LEVELS]                    # buckets in each row, the oldest first
    double sums[LEVELS][BUCKETS + 1]
    double deviations[LEVELS][BUCKETS + 1]


cdef inline void adwin_start(Adwin* a, double delta, int64_t clock, int64_t part, int64_t grace) noexcept nogil:
    """Initialise an empty window."""
    memset(a, 0, sizeof(Adwin))
    a.delta = delta
    a.clock = clock
    a.part = part
    a.grace = grace


cdef inline double adwin_mean(const Adwin* a) noexcept nogil:
    """Return the mean of the window; 0 when it is empty."""
    return a.total / a.width if a.width else 0.0


cdef inline int adwin_top(const Adwin* a) noexcept nogil:
    """Return the row of the oldest bucket; -1 when the window is empty."""
    cdef int r = LEVELS - 1
    while r >= 0 and a.used[r] == 0:
        r -= 1
    return r


cdef inline void adwin_drop_first(Adwin* a, int r) noexcept nogil:
    """Remove the oldest bucket of a row."""
    a.used[r] -= 1
    memmove(a.sums[r], a.sums[r] + 1, a.used[r] * sizeof(double))
    memmove(a.deviations[r], a.deviations[r] + 1, a.used[r] * sizeof(double))


cdef inline void adwin_drop_oldest(Adwin* a) noexcept nogil:
    """Remove the oldest bucket of the window and update the window's statistics."""
    cdef int r = adwin_top(a)
    cdef double n = <double> (<int64_t> 1 << r), rest = a.width - n
    cdef double gap
    a.total -= a.sums[r][0]
    a.width -= <int64_t> 1 << r
    if rest > 0.0:
        gap = a.sums[r][0] / n - a.total / rest
        a.squares = max(a.squares - a.deviations[r][0] - n * rest / (n + rest) * gap * gap, 0.0)
    else:
        a.total = a.squares = 0.0
    adwin_drop_first(a, r)


cdef inline void adwin_add(Adwin* a, double x) noexcept nogil:
    """Add a number; in rows that are too long, merge the two oldest buckets into one of the next row."""
    cdef int r = 0
    cdef double n = 1.0, gap
    if a.used[LEVELS - 1] == BUCKETS:
        adwin_drop_oldest(a)
    if a.width:
        gap = x - a.total / a.width
        a.squares += gap * gap * a.width / (a.width + 1.0)
    a.width += 1
    a.total += x
    a.sums[0][a.used[0]] = x
    a.deviations[0][a.used[0]] = 0.0
    a.used[0] += 1
    while a.used[r] > BUCKETS:
        gap = (a.sums[r][0] - a.sums[r][1]) / n
        a.sums[r + 1][a.used[r + 1]] = a.sums[r][0] + a.sums[r][1]
        a.deviations[r + 1][a.used[r + 1]] = a.deviations[r][0] + a.deviations[r][1] + 0.5 * n * gap * gap
        a.used[r + 1] += 1
        adwin_drop_first(a, r)
        adwin_drop_first(a, r)
        r += 1
        n *= 2.0


cdef inline double adwin_split(const Adwin* a) noexcept nogil:
    """Return the length of the older part at the split whose means differ most beyond eps; 0 if none do."""
    cdef int r, i
    cdef double n0 = 0.0, n1 = a.width, s0 = 0.0, n, m, excess, most = 0.0, found = 0.0
    cdef double odds = log(2.0 * log(<double> a.width) / a.delta), v = a.squares / a.width
    for r in range(adwin_top(a), -1, -1):
        n = <double> (<int64_t> 1 << r)
        for i in range(a.used[r]):
            n0 += n
            n1 -= n
            s0 += a.sums[r][i]
            if n1 < a.part:
                return found
            if n0 < a.part:
                continue
            m = n0 * n1 / (n0 + n1)
            excess = fabs(s0 / n0 - (a.total - s0) / n1) - sqrt(2.0 / m * v * odds) - 2.0 / (3.0 * m) * odds
            if excess > most:
                most = excess
                found = n0
    return found


cdef inline bint adwin_update(Adwin* a, double x) noexcept nogil:
    """Add a number and cut the window if its parts differ; return whether it was cut."""
    cdef double left
    cdef bint cut = False
    adwin_add(a, x)
    a.updates += 1
    if a.updates % a.clock:
        return False
    while a.width > a.grace:
        left = a.width - adwin_split(a)
        if left == a.width:
            break
        cut = True
        while a.width > left:
            adwin_drop_oldest(a)
    return cut


cdef object adwin_dump(const Adwin* a)
cdef int adwin_fill(Adwin* a, object numbers) except -1


cdef class ADWIN:
    cdef Adwin state
    cdef readonly bint drift_detected
    cdef readonly int64_t n_detections

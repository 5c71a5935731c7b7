"""P-values of anomaly scores that keep the share of alarms at the rate requested.

The first estimate of a p-value is conformal: the share of the last scores that are at least as large. It is right while
scores are exchangeable. Drift, outages and new features shift scores for a while. So, for each of a few rates, the level
up to which the first estimate is an alarm is adapted (adaptive conformal inference, Gibbs and Candès 2021):
``level += rate / 5 * (rate - alarm)``. Over any stretch of the stream, the number of alarms then differs from that
expected by at most the change of the level over ``rate / 5``. For rates above .002 the level stays at .002 at least,
and from 500 scores on at the share of one of them, so that a burst of alarms does not hide a score above all others;
except while scores creep upwards, as where a sensor is stuck and a mean still follows, when each is above all others. The
level stays at one half at most, so that no score below the median is an alarm. The p-value is the rate whose level equals the
first estimate, interpolated between two rates: it is at most a rate exactly if there is an alarm at this rate.

Among equal scores a level that lies between the shares of larger ones and of those at least as large would be an alarm
for a part of them. They are none, but the level is adapted as if that part were: otherwise it would rise until the
score that most instances have is an alarm.
"""

from varifold._engine.conformal.recent_scores cimport MOST_SCORES, RecentScores
from varifold._engine.state cimport State
from varifold._numeric.ascending cimport first_above, first_not_below

from varifold._engine.state import fixed

cdef enum:
    RATES = 8
cdef double[RATES] RATE = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
cdef double STEP = 0.2     # of a level, in rates
cdef double LOWEST = 0.002  # of a level, for larger rates, while one score is a larger share
cdef double HIGHEST = 0.5   # a score below the median is no alarm
cdef enum:
    LATEST = 100            # number of latest scores, among which
    CREEPING = 10           # so many that were larger than all scores before them show that scores creep: see 0341


cdef bint creep(RecentScores recent) noexcept nogil:
    """Return whether many of the latest scores were above all before them."""
    cdef Py_ssize_t i, n = recent.place[0], first = recent.place[1] if n == MOST_SCORES else 0
    cdef double score, largest = recent.ring[first] if n else 0.0
    cdef int records = 0
    for i in range(1, n):
        score = recent.ring[(first + i) % MOST_SCORES]
        if score > largest:
            largest = score
            records += i >= n - LATEST
    return records >= CREEPING


cdef class Alarms:
    """The last scores, and by rate the level of an alarm."""

    def __cinit__(self):
        cdef int j
        self.recent = RecentScores()
        self.arrays = State()
        self.arrays.declare("levels", &self.level, fixed(RATES, low=-1, high=2))
        for j in range(RATES):
            self.level[j] = RATE[j]

    cdef double p_value(self, double score) noexcept nogil:
        """Return the smallest rate at which the score is an alarm; 1 before any score."""
        cdef double share, low = 0.0, rate = 0.0
        cdef int j
        if self.recent.place[0] == 0:
            return 1.0
        share = self.recent.share_from(score)
        for j in range(RATES):
            if share <= self.level[j]:
                return min(rate + (RATE[j] - rate) * (share - low) / (self.level[j] - low), RATE[j])
            if self.level[j] > low:    # the level of a larger rate is not below that of a smaller one
                low = self.level[j]
            rate = RATE[j]
        return rate + (1.0 - rate) * (share - low) / (1.0 - low) if low < share < 1.0 else 1.0

    cdef void observe(self, double score) noexcept nogil:
        """Adapt the levels to a score, then keep it."""
        cdef Py_ssize_t n = self.recent.place[0], smaller, up_to
        cdef double p, larger, share, alarm, level = 0.0
        cdef double lowest = min(LOWEST, 1.0 / (min(n + 1, MOST_SCORES) + 1.0))  # the share of a score above all
        cdef double bound = 2.0     # the lowest level, once it is needed
        cdef int j
        if n:
            p = self.p_value(score)
            smaller = first_not_below(self.recent.ascending, n, score)
            up_to = first_above(self.recent.ascending, n, smaller, score)
            share = (n - smaller + 1.0) / (n + 1.0)
            larger = (n - up_to) / (n + 1.0) if up_to > smaller else share
            for j in range(RATES):
                level = max(level, self.level[j])    # the level of a larger rate is not below that of a smaller one
                alarm = 1.0 if p <= RATE[j] else max(level - larger, 0.0) / (share - larger) if share > larger else 0.0
                self.level[j] += STEP * RATE[j] * (RATE[j] - alarm)
                if self.level[j] < lowest and RATE[j] > LOWEST:
                    if bound > 1.0:
                        bound = -1.0 if n >= 5 * LATEST and creep(self.recent) else lowest
                    self.level[j] = max(self.level[j], bound)
                self.level[j] = min(max(self.level[j], -1.0), HIGHEST)
        self.recent.keep(score)

    def p_value_of(self, double score):
        """Return what p_value() does, for detectors in Python."""
        return self.p_value(score)

    def add(self, double score):
        """Do what observe() does, for detectors in Python."""
        self.observe(score)

    def dump(self):
        """Return the state as arrays by name."""
        return {**self.arrays.dump(0, 0), **self.recent.dump()}

    def fill(self, dict arrays):
        """Restore what dump() returned."""
        self.arrays.fill(arrays, 0, 0, 0)
        self.recent.fill(arrays)

    def nbytes(self):
        """Return bytes of state."""
        return self.arrays.nbytes() + self.recent.nbytes()

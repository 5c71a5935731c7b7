"""The detector of adwin.pxd, for use from Python."""

import numpy as np

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from varifold.errors import DataError, ParameterError

cdef double LARGEST = 1e140   # with it the squares of 80 million numbers add up to a finite number


cdef class ADWIN:
    """ADWIN: says when the mean of a stream has changed, and what it is now.

    Put in whatever should stay as it is: the error of a learner (0 or 1), a sensor's value, a feature's absence. A window
    of the last numbers grows while nothing changes. As soon as two parts of it have means that differ by more than
    chance, its older part is dropped; `estimation` is the mean of what is left, `width` how many numbers that is.

    Parameters
    ----------
    delta
        Confidence: lower is more careful. In (0, 1).
    clock
        The test is made at every `clock`-th number.
    min_part
        Numbers in either part of the window, at the least.
    grace
        Numbers in the window before anything is tested.

    Notes
    -----
    The bound is the one of the paper for any variance (equation 3.1 of Bifet and Gavaldà 2007), meant for numbers in
    [0, 1]; scale others. Magnitudes above 1e140, whose squares do not fit, are taken for it. The window is kept as an exponential histogram: O(log width) memory (at most 2.5 KB) and time.
    Differs from river's `drift.ADWIN` in details: all splits between buckets are tested, and the window's variance is
    followed exactly when buckets are merged and dropped. The interface is river's.

    Examples
    --------
    >>> from varifold.drift import ADWIN
    >>> detector = ADWIN()
    >>> for step in range(2000):
    ...     detector.update(step % 10 == 0 if step < 1000 else step % 2 == 0)
    ...     if detector.drift_detected:
    ...         print(step, round(detector.estimation, 2))
    1055 0.5

    References
    ----------
    Bifet, Gavaldà 2007: Learning from Time-Changing Data with Adaptive Windowing. SIAM International Conference on Data
    Mining.

    """

    def __cinit__(self, double delta=0.002, *, int64_t clock=32, int64_t min_part=5, int64_t grace=10):
        if not 0.0 < delta < 1.0:
            raise ParameterError(f"The 'delta' parameter of ADWIN must be a float in (0, 1). Got {delta} instead.")
        for name, value in (("clock", clock), ("min_part", min_part), ("grace", grace)):
            if value < 1:
                raise ParameterError(f"The '{name}' parameter of ADWIN must be an int >= 1. Got {value} instead.")
        adwin_start(&self.state, delta, clock, min_part, grace)

    def update(self, x):
        """Put the next number in."""
        cdef double value = x
        if not isfinite(value):
            raise DataError(f"ADWIN takes finite numbers; number {self.state.updates + 1:,} is {value}: leave it out")
        self.drift_detected = adwin_update(&self.state, max(-LARGEST, min(LARGEST, value)))
        self.n_detections += self.drift_detected

    @property
    def estimation(self):
        """Mean of the window."""
        return adwin_mean(&self.state)

    @property
    def variance(self):
        """Variance of the window."""
        return self.state.squares / self.state.width if self.state.width else 0.0

    @property
    def width(self):
        """Numbers in the window."""
        return self.state.width

    @property
    def delta(self):
        """The confidence."""
        return self.state.delta

    def __repr__(self):
        return (f"ADWIN(delta={self.state.delta}, clock={self.state.clock}, min_part={self.state.part}, "
                f"grace={self.state.grace})")

    def __reduce__(self):
        state = (adwin_dump(&self.state), self.drift_detected, self.n_detections)
        return _made, (self.state.delta, self.state.clock, self.state.part, self.state.grace), state

    def __setstate__(self, state):
        numbers, self.drift_detected, self.n_detections = state
        adwin_fill(&self.state, numbers)


def _made(delta, clock, min_part, grace):
    return ADWIN(delta, clock=clock, min_part=min_part, grace=grace)


cdef object adwin_dump(const Adwin* a):
    """The window as numbers: updates, then row by row the count of buckets, their sums and their deviations."""
    cdef int r, i, top = adwin_top(a)
    rows = np.zeros((top + 1, 1 + 2 * BUCKETS))
    for r in range(top + 1):
        rows[r, 0] = a.used[r]
        for i in range(a.used[r]):
            rows[r, 1 + i] = a.sums[r][i]
            rows[r, 1 + BUCKETS + i] = a.deviations[r][i]
    return np.concatenate([[a.updates, a.total, a.squares], rows.ravel()])


cdef int adwin_fill(Adwin* a, object numbers) except -1:
    """Take what adwin_dump() gave, checked; confidence, clock and grace stay."""
    cdef int r, i, top
    given = np.asarray(numbers, dtype=np.float64)
    if given.ndim != 1 or (len(given) - 3) % (1 + 2 * BUCKETS) or not np.isfinite(given).all():
        raise ValueError("the numbers of another detector")
    rows = given[3:].reshape(-1, 1 + 2 * BUCKETS)
    used = rows[:, 0]
    if len(rows) > LEVELS or not np.isin(used, np.arange(BUCKETS + 1)).all() or (rows[:, 1 + BUCKETS:] < 0).any():
        raise ValueError("a window of buckets that cannot be")
    if not 0.0 <= given[0] < 1 << 53 or given[2] < 0.0 or (len(used) and used[-1] == 0):
        raise ValueError("a window of numbers that cannot be")
    adwin_start(a, a.delta, a.clock, a.part, a.grace)
    a.updates, a.total, a.squares = <int64_t> given[0], given[1], given[2]
    top = <int> len(rows)
    for r in range(top):
        a.used[r] = <int> used[r]
        a.width += <int64_t> a.used[r] << r
        for i in range(a.used[r]):
            a.sums[r][i] = rows[r, 1 + i]
            a.deviations[r][i] = rows[r, 1 + BUCKETS + i]
    return 0

"""Python class around the detector of adwin.pxd."""

import numpy as np

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from varifold.errors import DataError, ParameterError

cdef double LARGEST = 1e140   # the squares of 80 million such numbers have a finite sum


cdef class ADWIN:
    """ADWIN: detects when the mean of a stream changes, and estimates the current mean.

    Update it with any number that should stay stable: the error of a learner (0 or 1), a sensor's value, a feature's
    absence. A window of the last numbers grows while nothing changes. As soon as the means of two parts of it differ by
    more than chance explains, the older part is dropped; `estimation` is the mean of the rest, `width` its length.

    Parameters
    ----------
    delta
        Confidence, in (0, 1): a lower value raises fewer false alarms.
    clock
        The test runs at every `clock`-th number.
    min_part
        Minimum count of numbers in either part of the window.
    grace
        Numbers in the window before the first test.

    Notes
    -----
    The bound is the paper's for any variance (equation 3.1 of Bifet and Gavaldà 2007). It holds for numbers in [0, 1];
    scale others. Magnitudes above 1e140, whose squares would overflow, are clipped to it. The window is stored as an
    exponential histogram: O(log width) memory (at most 2.5 KB) and time. The interface is that of river's
    `drift.ADWIN`. Details differ: all splits between buckets are tested, and the window's variance stays exact when
    buckets are merged and dropped.

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
        """Add the next number and test for a change."""
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
        """Confidence of the test."""
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
    """Return the state as numbers: updates, total, squares, then per row the bucket count, sums and deviations."""
    cdef int r, i, top = adwin_top(a)
    rows = np.zeros((top + 1, 1 + 2 * BUCKETS))
    for r in range(top + 1):
        rows[r, 0] = a.used[r]
        for i in range(a.used[r]):
            rows[r, 1 + i] = a.sums[r][i]
            rows[r, 1 + BUCKETS + i] = a.deviations[r][i]
    return np.concatenate([[a.updates, a.total, a.squares], rows.ravel()])


cdef int adwin_fill(Adwin* a, object numbers) except -1:
    """Check and restore what adwin_dump() returned; confidence, clock and grace are kept."""
    cdef int r, i, top
    given = np.asarray(numbers, dtype=np.float64)
    if given.ndim != 1 or (len(given) - 3) % (1 + 2 * BUCKETS) or not np.isfinite(given).all():
        raise ValueError("the numbers of another detector")
    rows = given[3:].reshape(-1, 1 + 2 * BUCKETS)
    used = rows[:, 0]
    if len(rows) > LEVELS or not np.isin(used, np.arange(BUCKETS + 1)).all() or (rows[:, 1 + BUCKETS:] < 0).any():
        raise ValueError("a window of buckets that cannot be")
    if not 0.0 <= given[0] < 1 << 53 or given[2] < 0.0 or (len(used) and used[len(used) - 1] == 0):
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

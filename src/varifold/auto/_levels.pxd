"""Level of the targets: an offset that follows jumps, and returns when the targets do.

A broken sensor reports 9999 for an hour; a tariff changes for good. While it happens the two look alike: targets far
from the predictions, on one side, and by about the same distance. Then the offset takes the jump: predictions follow at
once, and what the experts have learned stays. The previous level is remembered; the first target near it restores it.
"""

from libc.math cimport fabs
from libc.string cimport memmove

cdef enum:
    RUN = 6                # outliers in a row, on one side, that make a new level
    LEVEL_NUMBERS = 9      # as saved


cdef struct Level:
    double offset          # added to the predictions of the experts
    double previous        # offset of the previous level
    double has_previous    # 1: there is one
    double last[RUN]       # the latest residuals of outliers, in order


cdef inline void level_append(Level* l, double residual) noexcept nogil:
    """Append the residual of an outlier."""
    memmove(l.last, l.last + 1, (RUN - 1) * sizeof(double))
    l.last[RUN - 1] = residual


cdef inline bint level_jumped(Level* l) noexcept nogil:
    """Return whether the last residuals are of one size: the largest at most twice the smallest."""
    cdef int i
    cdef double low = fabs(l.last[0]), high = low
    for i in range(1, RUN):
        low = min(low, fabs(l.last[i]))
        high = max(high, fabs(l.last[i]))
    return high <= 2.0 * low


cdef inline void level_step(Level* l) noexcept nogil:
    """Add the mean of the last three residuals to the offset: predictions have moved a little during the run."""
    l.previous = l.offset
    l.has_previous = 1.0
    l.offset += (l.last[RUN - 3] + l.last[RUN - 2] + l.last[RUN - 1]) / 3.0


cdef inline void level_return(Level* l) noexcept nogil:
    """Exchange this level and the previous one."""
    cdef double offset = l.offset
    l.offset = l.previous
    l.previous = offset

"""The level of the targets: an offset that steps when they jump, and steps back when they return.

A sensor that fails writes 9999 for an hour; a tariff changes for good. At the time the two look the same: targets far from
the answers, on one side and all by about as much. Then the offset takes the jump, answers follow at once, and what was
learned stays as it was. The level before is remembered, so that the first target that is back there restores it.
"""

from libc.math cimport fabs
from libc.string cimport memmove

cdef enum:
    RUN = 6                # outliers in a row, on one side, that show a new level
    LEVEL_NUMBERS = 9      # as saved: offset, the one before, whether there is one, the last residuals


cdef struct Level:
    double offset          # what is added to the answers of the experts
    double before          # the offset of the level before
    double has_before      # 1: there is one
    double last[RUN]       # residuals of the run of outliers, the latest last


cdef inline void level_note(Level* l, double residual) noexcept nogil:
    """Note the residual of an outlier."""
    memmove(l.last, l.last + 1, (RUN - 1) * sizeof(double))
    l.last[RUN - 1] = residual


cdef inline bint level_jumped(Level* l) noexcept nogil:
    """Whether the last residuals are of one size: the largest at most twice the smallest."""
    cdef int i
    cdef double low = fabs(l.last[0]), high = low
    for i in range(1, RUN):
        low = min(low, fabs(l.last[i]))
        high = max(high, fabs(l.last[i]))
    return high <= 2.0 * low


cdef inline void level_step(Level* l) noexcept nogil:
    """Take the mean of the last three residuals into the offset; answers moved a little while the run lasted."""
    l.before = l.offset
    l.has_before = 1.0
    l.offset += (l.last[RUN - 3] + l.last[RUN - 2] + l.last[RUN - 1]) / 3.0


cdef inline void level_return(Level* l) noexcept nogil:
    """Go back to the level before."""
    cdef double offset = l.offset
    l.offset = l.before
    l.before = offset

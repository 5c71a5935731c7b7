"""When the answers became worse: ADWIN on their errors, and a record of each rise."""

from libc.stdint cimport int64_t

from varifold._numeric.adwin cimport Adwin, adwin_mean, adwin_start, adwin_update

cdef enum:
    MOST_ALARMS = 32     # records; the latest stay

cdef struct Alarm:
    int64_t step         # at which the rise was noticed
    int64_t since        # at which it began, as far as the detector can say
    double before        # error until then
    double error         # error since

cdef struct Alarms:
    Adwin errors
    Alarm alarm[MOST_ALARMS]   # a ring
    int64_t count              # so far


cdef inline void alarms_start(Alarms* a) noexcept nogil:
    """No answers yet."""
    a.count = 0
    adwin_start(&a.errors, 0.002, 8, 5, 30)


cdef inline void alarms_learn(Alarms* a, int64_t step, bint wrong) noexcept nogil:
    """Count an answer; `step` instances were learned before it."""
    cdef double before = adwin_mean(&a.errors)
    cdef int64_t width = a.errors.width + 1
    cdef double wrong_before = a.errors.total + wrong
    cdef Alarm* found
    if not adwin_update(&a.errors, wrong) or adwin_mean(&a.errors) <= before:
        return
    found = &a.alarm[a.count % MOST_ALARMS]
    found.step = step + 1
    found.since = step + 2 - a.errors.width
    found.before = (wrong_before - a.errors.total) / (width - a.errors.width)
    found.error = adwin_mean(&a.errors)
    a.count += 1

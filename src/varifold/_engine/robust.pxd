"""Robust kind of scaling: outliers are clipped at a running quantile, constants are presence, new units start over.

Around the centre c of a feature (its running median, or its commonest value where that makes up half of the values) the
90 % quantile q of |x - c| is tracked by stochastic approximation, values equal to c left out. A value outside
c +- 3 q counts as the nearer bound in mean and deviation. The rest of the mathematics is `standard`.

Centre and quantile of a feature that has settled are tracked on every 32nd instance only (drawn by a hash of the step,
so that no period of the stream can coincide with it). In between, a value within the bounds updates mean and deviation
alone, many values at a time (`absorb_quiet`), and is divided by the deviation tracked last; a value outside them also
counts towards a new unit.
"""

from libc.math cimport exp, exp2, fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t

from varifold._numeric.hashing cimport mix

cdef enum:
    ROBUST_WIDTH = 18          # numbers in RobustStat
    STRIP = 64                 # values scaled together
    SETTLED = 64               # values, and of them off the centre, after which a feature has settled
    SETTLED_VARIED = 16
    TRACKED = 32               # one instance in this many is tracked
    STRAYS = 32                # values beyond the bounds, in excess of a quarter of all, that unsettle a feature
    WARM_UP = 10               # values off the centre before any is clipped
    MODE_MEMORY = 100          # values that the share of the commonest one is averaged over
    FIRST_RUN = 20             # length of the run after which a new unit is first detected
    EARLY_RUN = 6              # run of values within q / 10, among the first EARLY, after which q is far too large
    LATE_RUN = 16              # the same later
    EARLY = 50

cdef extern from "varifold/_engine/constants.h":
    const double LEVEL "VARIFOLD_LEVEL"                        # of the quantile q
    const double BOUND "VARIFOLD_BOUND"                        # of |x - c|, in units of q
    const double SLOWEST_STEP "VARIFOLD_SLOWEST_STEP"          # of log q, and what it makes of q: exp(0.03 x 0.9)
    const double SLOWEST_RISE "VARIFOLD_SLOWEST_RISE"          # beyond q, exp(-0.03 x 0.1) within
    const double SLOWEST_FALL "VARIFOLD_SLOWEST_FALL"
    const double NORMAL_QUANTILE "VARIFOLD_NORMAL_QUANTILE"    # q of a normal variable with deviation 1
    const double NARROW "VARIFOLD_NARROW"                      # a run this much narrower than q is a new unit
    const double CONSTANT "VARIFOLD_CONSTANT"                  # share from which on a value not 0 is presence
    const double LARGEST_SQUARE "VARIFOLD_LARGEST_SQUARE"
    const double SMALLEST_SPREAD "VARIFOLD_SMALLEST_SPREAD"
    const double BEYOND "VARIFOLD_BEYOND"                      # any value

cdef struct RobustStat:
    double weight, mean, m2      # of the clipped values (Welford)
    double count                 # values; of a settled feature those that were tracked
    double reach                 # a value less far from the mean is quiet; up to 0 none is
    double inverse               # 1 / deviation; negative: presence, -1 / width around the commonest value
    double mode                  # the commonest value; another replaces it if its share falls below a quarter
    double share                 # recent share of the commonest value
    double median                # moves by a part of q towards each value
    double spread                # q
    double varied                # values off the centre
    double run, run_mean, run_m2 # the last values in a row that lie beyond q on one side; or, as -run and their
                                 # largest distance, those that lie within a tenth of q
    double restarts              # times that a new unit was detected
    double restarted_at          # step of the last one
    double settles_at            # count from which on not every value is tracked, 0 for SETTLED
    double strays                # values beyond the bounds less a quarter of all, since the feature settled


cdef inline bint is_tracked(int64_t step) noexcept nogil:
    """Return whether all values of the instance learned at this step are tracked."""
    return mix(<uint64_t> step) % TRACKED == 0


cdef inline double centre_of(RobustStat* s) noexcept nogil:
    return s.mode if s.share >= 0.5 else s.median


cdef inline void track_mode(RobustStat* s, double x) noexcept nogil:
    """Update the commonest value and its share."""
    if s.count == 1.0:
        s.mode = x
        s.median = x
        s.share = 1.0
        return
    s.share += ((1.0 if x == s.mode else 0.0) - s.share) / min(s.count, <double> MODE_MEMORY)
    if s.share < 0.25:
        s.mode = x
        s.share = 0.25


cdef inline void end_run(RobustStat* s) noexcept nogil:
    s.run = 0.0
    s.run_mean = 0.0
    s.run_m2 = 0.0


cdef inline void shrink_spread(RobustStat* s, double distance) noexcept nogil:
    """Recompute q from a run of values that are all much nearer than q: outliers have made it too large."""
    if distance >= 0.1 * s.spread:
        if s.run < 0.0:
            end_run(s)
        return
    if s.run > 0.0:
        end_run(s)
    s.run -= 1.0
    s.run_mean = max(s.run_mean, distance)
    if s.run <= -(<double> (EARLY_RUN if s.varied < EARLY else LATE_RUN)):
        s.spread = max(s.run_mean, SMALLEST_SPREAD)
        end_run(s)


cdef inline void track_spread(RobustStat* s, double x, double distance) noexcept nogil:
    """Move the quantile and the median by a value that is off the centre; steps 3 / k, geometric for the quantile."""
    cdef double step
    s.varied += 1.0
    if s.varied == 1.0:
        s.spread = distance
    elif s.varied * SLOWEST_STEP > 3.0:
        s.spread *= SLOWEST_RISE if distance > s.spread else SLOWEST_FALL
    else:
        step = max(3.0 / (s.varied + 2.0), SLOWEST_STEP)
        s.spread *= exp(step * LEVEL) if distance > s.spread else exp(step * (LEVEL - 1.0))
    s.spread = max(s.spread, SMALLEST_SPREAD)
    shrink_spread(s, distance)
    step = min(max(1.0 / s.count, 0.01) * s.spread, fabs(x - s.median))
    s.median += step if x > s.median else -step


cdef inline bint is_new_unit(RobustStat* s, double x, double centre) noexcept nogil:
    """Return whether the run of values that ends with x has another unit: far from the old ones, or much narrower.

    Each restart doubles the length of run required, so that a feature that alternates between levels settles.
    """
    cdef double d, deviation, length
    if fabs(x - centre) <= s.spread:
        if s.run > 0.0:
            end_run(s)
        return False
    if s.run < 0.0 or (s.run > 0.0 and (x > centre) != (s.run_mean > centre)):
        end_run(s)
    s.run += 1.0
    d = x - s.run_mean
    s.run_mean += d / s.run
    s.run_m2 = min(s.run_m2 + d * (x - s.run_mean), LARGEST_SQUARE)
    if s.run < FIRST_RUN:
        return False
    length = FIRST_RUN * exp2(min(s.restarts, 20.0))
    if s.run < length:
        return False
    deviation = sqrt(s.run_m2 / s.run)
    if deviation > 0.0 and (fabs(s.run_mean - centre) > BOUND * s.spread or deviation < s.spread / NARROW):
        return True
    if s.run >= 4.0 * length:
        end_run(s)
    return False


cdef inline void restart(RobustStat* s, double x, double step) noexcept nogil:
    """Restart the statistics with those of the run."""
    s.weight = s.run
    s.mean = s.run_mean
    s.m2 = s.run_m2
    s.median = s.run_mean
    s.spread = max(NORMAL_QUANTILE * sqrt(s.run_m2 / s.run), SMALLEST_SPREAD)
    s.mode = x
    s.share = 0.25
    s.restarts += 1.0
    s.restarted_at = step
    s.settles_at = s.count + SETTLED
    s.strays = 0.0
    end_run(s)


cdef inline double clipped(RobustStat* s, double x, double centre) noexcept nogil:
    cdef double bound = BOUND * s.spread
    if s.varied < WARM_UP:
        return x
    return max(min(x, centre + bound), centre - bound)


cdef inline void correct(RobustStat* s, double centre) noexcept nogil:
    """Remove the effect on mean and deviation of outliers that came before the bounds were known."""
    cdef double bound = BOUND * s.spread
    if s.varied >= WARM_UP and (fabs(s.mean - centre) > bound or s.m2 / s.weight > bound * bound):
        s.weight = 4.0
        s.mean = centre
        s.m2 = min(4.0 * (s.spread / NORMAL_QUANTILE) * (s.spread / NORMAL_QUANTILE), LARGEST_SQUARE)


cdef inline bint has_settled(RobustStat* s) noexcept nogil:
    return s.varied >= SETTLED_VARIED and s.count >= max(s.settles_at, <double> SETTLED)


cdef inline void count_stray(RobustStat* s, double distance) noexcept nogil:
    """Track a settled feature again whose values lie beyond the bounds too often: the bounds are too narrow."""
    if distance <= BOUND * s.spread:
        return
    s.strays += 1.0
    if s.strays > STRAYS:
        s.strays = 0.0
        s.settles_at = s.count + SETTLED


cdef inline double track(RobustStat* s, double x, bint tracked, double step) noexcept nogil:
    """Update centre, quantile and runs with a value; return the centre."""
    cdef bint settled = has_settled(s)
    cdef double centre
    if not settled or tracked:
        s.count += 1.0
        track_mode(s, x)
        s.strays = max(s.strays - 0.25 * TRACKED, 0.0)
    centre = centre_of(s)
    if x == centre:
        return centre
    if s.varied >= WARM_UP and is_new_unit(s, x, centre):
        restart(s, x, step)
        return s.median
    if not settled or tracked:
        track_spread(s, x, fabs(x - centre))
    else:
        count_stray(s, fabs(x - centre))
    return centre


cdef inline void settle(RobustStat* s, double centre) noexcept nogil:
    """Set which values are quiet from now on, and what they are divided by."""
    cdef double bound = BOUND * s.spread
    s.reach = -1.0
    if s.m2 <= 0.0:
        s.inverse = 0.0
        return
    if s.share >= CONSTANT and s.mode != 0.0:
        s.inverse = -1.0 / max(sqrt(s.m2 / s.weight + (s.mean - s.mode) * (s.mean - s.mode)), SMALLEST_SPREAD)
    else:
        s.inverse = min(sqrt(s.weight / s.m2), BEYOND)
    if has_settled(s) and s.run <= 0.0:
        s.reach = bound - fabs(s.mean - centre)


cdef inline double absorb_robust(RobustStat* s, double x, double w, double clip, bint tracked,
                                 double step) noexcept nogil:
    """Update the statistics of the feature with x, then scale x by them."""
    cdef double d, z
    cdef double centre = track(s, x, tracked, step)
    x = clipped(s, x, centre)
    s.weight += w
    d = x - s.mean
    s.mean += d * (w / s.weight)
    # below 0 if a mean of tiny weight is rounded past x
    s.m2 = min(s.m2 + max(d * w * (x - s.mean), 0.0), LARGEST_SQUARE)
    correct(s, centre)
    settle(s, centre)
    if s.m2 <= 0.0:  # presence from the second value on; a first 1 is one
        return 1.0 if x != 0.0 and (s.count > 1.0 or x == 1.0) else 0.0
    z = (x - s.mean) * s.inverse if s.inverse >= 0.0 else 1.0 - (x - s.mode) * s.inverse
    z = z if z < clip else clip
    return z if z > -clip else -clip


cdef inline bint absorb_quiet(RobustStat* stat, Py_ssize_t n, const int32_t* slot, const double* x, double w,
                              double clip, bint commit, double* out) noexcept nogil:
    """Do what absorb_robust() does for up to STRIP quiet values of features that vary; return False if one is not.

    Numbers are gathered first, so that the compiler vectorises the divisions.
    """
    cdef RobustStat* s
    cdef Py_ssize_t i
    cdef double weight, mean, left, off_mode, d, gain, m2, z
    cdef double weights[STRIP]
    cdef double means[STRIP]
    cdef double squares[STRIP]
    cdef double inverses[STRIP]
    cdef double modes[STRIP]
    cdef double reaches[STRIP]
    for i in range(n):
        s = stat + slot[i]
        weights[i] = s.weight
        means[i] = s.mean
        squares[i] = s.m2
        inverses[i] = s.inverse
        modes[i] = s.mode
        reaches[i] = s.reach
    for i in range(n):
        weight = weights[i] + w
        d = x[i] - means[i]
        reaches[i] = fabs(d) - reaches[i]
        mean = means[i] + d * (w / weight)
        left = x[i] - mean
        gain = d * w * left
        m2 = squares[i] + (gain if gain > 0.0 else 0.0)
        weights[i] = weight
        means[i] = mean
        squares[i] = m2 if m2 < LARGEST_SQUARE else LARGEST_SQUARE
        off_mode = x[i] - modes[i]
        # selections of numbers, not of computations, vectorise
        left = left if inverses[i] >= 0.0 else off_mode
        z = left * fabs(inverses[i]) + (0.0 if inverses[i] >= 0.0 else 1.0)
        z = z if z < clip else clip
        out[i] = z if z > -clip else -clip
    for i in range(n):
        if reaches[i] >= 0.0:
            return False
    if commit:
        for i in range(n):
            s = stat + slot[i]
            s.weight = weights[i]
            s.mean = means[i]
            s.m2 = squares[i]
    return True


cdef inline void absorb_strip_robust(RobustStat* stat, Py_ssize_t n, const int32_t* slot, const double* x, double w,
                                     double clip, bint commit, int64_t step, double* out) noexcept nogil:
    """Scale up to STRIP values by their features' statistics, and add them to these with `commit`."""
    cdef RobustStat passing
    cdef RobustStat* s
    cdef Py_ssize_t i, k = 0
    cdef bint tracked = is_tracked(step)
    cdef int32_t quiet_slot[STRIP]
    cdef int32_t place[STRIP]
    cdef double quiet[STRIP]
    cdef double scaled[STRIP]
    if not tracked and stat[slot[0]].m2 > 0.0 and absorb_quiet(stat, n, slot, x, w, clip, commit, out):
        return
    for i in range(n):
        s = stat + slot[i]
        if s.m2 <= 0.0 and x[i] == s.mode and s.count > 0.0:
            # always the same value, such as words coded 1.0: only the counts change
            out[i] = 1.0 if x[i] != 0.0 else 0.0
            if commit:
                s.weight += w
                s.count += 1.0
            continue
        if not tracked and fabs(x[i] - s.mean) < s.reach:
            quiet_slot[k] = slot[i]
            place[k] = <int32_t> i
            quiet[k] = x[i]
            k += 1
            continue
        if not commit:
            passing = s[0]
            s = &passing
        out[i] = absorb_robust(s, x[i], w, clip, tracked, <double> step)
    if k:
        absorb_quiet(stat, k, quiet_slot, quiet, w, clip, commit, scaled)
        for i in range(k):
            out[place[i]] = scaled[i]

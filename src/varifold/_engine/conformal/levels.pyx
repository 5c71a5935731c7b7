"""Adaptive conformal inference: intervals and sets that hold the truth as often as requested.

*Scores.* For a regressor the signed residual over its expected size (`Evidence`); for a classifier one less the
probability of the true label, less the expected value of that. Each is measured before the instance is learned. The
last 1,000 are kept.

*Bounds.* Prediction + scale x the quantiles of the scores at the levels `miss` below and 1 - `miss` above. While there
are few scores their tails are noisy: the quantile of the absolute scores contributes with weight 200 / (200 + scores).
A set holds the labels whose score is at most the quantile.

*Adaptation* (I. Gibbs, E. Candes: Adaptive conformal inference under distribution shift, NeurIPS 2021). After a truth
miss += step (aim - missed), where `aim` is the requested share and `missed` is 1 if the truth was beyond this bound. So
the share missed follows `aim` through any drift, while the bounds can still move. The step falls from .01 to .005, for
classifiers from .015 to .01. A bound beyond the largest score lies up to .3 of its size further out (for a classifier:
up to .3).

*Saturation.* An interval holds the prediction. A bound that lies on it cannot miss more, so its share goes to the other
bound: the misses of both follow the sum of their shares under a biased predictor too. A set holds every label of
probability 1. Where nothing can become narrower (both bounds on the prediction, a set of certain labels alone) a truth
inside does not raise `miss`: a constant target or a single label would otherwise wind it up without an effect, and too
much would be missed once the target varies. Scores are kept from the first one other than 0 on. While every interval is
far too wide, as after a jump of the target, `miss` rises to 3 `aim` at most.
"""

import numpy as np

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t

from varifold._engine.conformal.evidence cimport EVIDENCE_NUMBERS, Evidence
from varifold._engine.conformal.recent_scores cimport MOST_SCORES, RecentScores
from varifold._engine.state cimport State
from varifold._numeric.ascending cimport replace_ascending

from varifold._engine.state import fixed

cdef double STEP_NUMBER = 0.005
cdef double STEP_LABEL = 0.01
cdef double FIRST_STEPS = 0.5      # added to the step: this over 100 + instances
cdef double SYMMETRIC = 200.0      # weight of the symmetric quantile, in scores
cdef double BEYOND = 0.3
cdef double LARGEST_SCORE = 1e12
cdef double MOST_NUMBER = 0.45     # missed by one bound, and at most 3 times its aim
cdef double MOST_LABEL = 0.9
cdef double CERTAIN = 1e-9         # one less the probability of a label that every set holds


cdef class Conformal:
    """Bounds at several coverages, in (0, 1), ascending."""

    def __cinit__(self, coverages, bint two_sided):
        cdef int j
        self.coverages = tuple(coverages)
        self.k = <int> len(self.coverages)
        if not self.k or list(self.coverages) != sorted(set(self.coverages)):
            raise ValueError(f"coverages that do not ascend: {coverages!r}")
        self.two_sided = two_sided
        self.evidence = Evidence(two_sided)
        self.arrays = State()
        self.declare_scores()
        for j in range(self.k):
            self.aim[j] = (1.0 - self.coverages[j]) / (2.0 if two_sided else 1.0)
            self.miss[2 * j] = self.miss[2 * j + 1] = self.aim[j]

    cdef int declare_scores(self) except -1:
        """Declare the recent scores, the shares to leave out, and scratch."""
        cdef State state = self.arrays
        self.recent = RecentScores(LARGEST_SCORE)
        state.declare("miss", &self.miss, fixed(self.k, width=2, low=0, high=1))
        state.scratch(&self.magnitudes, fixed(MOST_SCORES))
        state.scratch(&self.low, fixed(self.k))
        state.scratch(&self.high, fixed(self.k))
        state.scratch(&self.aim, fixed(self.k))
        return 0

    # ---------------------------------------------------------------- bounds of the instance at hand

    cdef void expect(self, const int32_t* slots, Py_ssize_t n, double level) noexcept nogil:
        """Compute the expected error of an instance with these slots; `level` is the prediction in deviations."""
        self.evidence.expect(slots, n, level)

    cdef double quantile(self, const double* scores, double level) noexcept nogil:
        """Return a quantile of the scores, interpolated, and beyond the outermost one up to BEYOND further out."""
        cdef Py_ssize_t n = self.recent.place[0], i
        cdef double at = level * (n + 1.0) - 1.0, outer, reach
        if 0.0 < at < n - 1.0:
            i = <Py_ssize_t> at
            return scores[i] + (at - i) * (scores[i + 1] - scores[i])
        outer = scores[0] if at <= 0.0 else scores[n - 1]
        reach = fabs(outer) if self.two_sided else 1.0
        if at <= 0.0:
            return outer - BEYOND * reach * min(1.0, -at)
        return outer + BEYOND * reach * min(1.0, at - (n - 1.0))

    cdef double half_width(self, double miss, bint above) noexcept nogil:
        """Return the distance of a bound from the prediction, in units of the scale; at least 0.

        The bound leaves out the share `miss` of the scores, the largest if `above`, otherwise the smallest. While
        there are few scores, the quantile of their absolute values, the same for both bounds, contributes too.
        """
        cdef double trust = self.recent.place[0] / (self.recent.place[0] + SYMMETRIC)
        cdef const double* scores = self.recent.ascending
        cdef double own = self.quantile(scores, 1.0 - miss) if above else -self.quantile(scores, miss)
        return max(0.0, trust * own + (1.0 - trust) * self.quantile(self.magnitudes, 1.0 - 2.0 * miss))

    cdef void bound_number(self, double prediction) noexcept nogil:
        """Compute bounds around a prediction; those of a larger coverage contain those of a smaller one."""
        cdef int j
        cdef double scale = self.evidence.scale(), below = 0.0, above = 0.0
        for j in range(self.k):
            if self.recent.place[0] == 0:
                self.low[j], self.high[j] = -INFINITY, INFINITY
                continue
            below = max(below, self.half_width(self.miss[2 * j], False))
            above = max(above, self.half_width(self.miss[2 * j + 1], True))
            self.low[j] = prediction - scale * below
            self.high[j] = prediction + scale * above

    cdef void bound_scores(self) noexcept nogil:
        """Compute the largest score of a label of the set, into `high`; infinite before any score."""
        cdef int j
        cdef double most = CERTAIN
        for j in range(self.k):
            if self.recent.place[0] == 0:
                most = INFINITY
            else:
                most = max(most, self.evidence.expected + self.quantile(self.recent.ascending, 1.0 - self.miss[2 * j]))
            self.high[j] = most

    # ---------------------------------------------------------------- bounds that were issued earlier

    cdef Py_ssize_t memo_size(self) noexcept nogil:
        """Return how many numbers the memo of an instance's bounds has."""
        return 2 * self.k + EVIDENCE_NUMBERS

    cdef void write_memo(self, double* out) noexcept nogil:
        """Write the bounds of the instance at hand; infinite ones, before any score, as the largest numbers."""
        cdef int j
        for j in range(self.k):
            out[2 * j] = max(self.low[j], -DBL_MAX)
            out[2 * j + 1] = min(self.high[j], DBL_MAX)
        self.evidence.write_memo(out + 2 * self.k)

    cdef void read_memo(self, const double* memo) noexcept nogil:
        """Take what write_memo() wrote as the bounds of the instance at hand."""
        cdef int j
        for j in range(self.k):
            self.low[j] = memo[2 * j]
            self.high[j] = memo[2 * j + 1]
        self.evidence.read_memo(memo + 2 * self.k)

    # ---------------------------------------------------------------- learning

    cdef double adapted(self, double miss, double aim, bint missed, double most) noexcept nogil:
        """Return the share to leave out after this truth, from 0 to `most`."""
        cdef double step = STEP_NUMBER if self.two_sided else STEP_LABEL
        step += FIRST_STEPS / (100.0 + self.evidence.learned())
        miss += step * (aim - missed)
        return min(max(miss, 0.0), most)

    cdef void adapt_number(self, int j, double prediction, double y) noexcept nogil:
        """Adapt the two levels of a coverage; a bound on the prediction leaves its share to the other one."""
        cdef double aim_below = self.aim[j], aim_above = self.aim[j], most = min(MOST_NUMBER, 3.0 * self.aim[j])
        cdef bint shut_below = self.low[j] >= prediction and y >= prediction
        cdef bint shut_above = self.high[j] <= prediction and y <= prediction
        if shut_below:
            aim_above += aim_below
            aim_below = 0.0
        if shut_above:
            aim_below = 0.0 if shut_below else aim_below + aim_above
            aim_above = 0.0
        self.miss[2 * j] = self.adapted(self.miss[2 * j], aim_below, y < self.low[j], most)
        self.miss[2 * j + 1] = self.adapted(self.miss[2 * j + 1], aim_above, y > self.high[j], most)

    cdef void adapt_label(self, int j, double score) noexcept nogil:
        """Adapt the level of a coverage, unless the set contains the truth and is at its smallest."""
        if score > self.high[j] or self.high[j] > CERTAIN:
            self.miss[2 * j] = self.adapted(self.miss[2 * j], self.aim[j], score > self.high[j], MOST_LABEL)

    cdef void observe_number(self, const int32_t* slots, Py_ssize_t n, double prediction, double y) noexcept nogil:
        """Learn the truth of the instance whose bounds were just made; its slots may have become more since."""
        cdef int j
        cdef double scale, error = y - prediction
        if self.recent.place[0] > 0 and self.evidence.started():
            for j in range(self.k):
                self.adapt_number(j, prediction, y)
        self.start(fabs(error))
        scale = self.evidence.scale()
        self.keep(error / scale if scale > 0.0 else 0.0)
        self.evidence.learn(slots, n, fabs(error))

    cdef void observe_label(self, const int32_t* slots, Py_ssize_t n, double score) noexcept nogil:
        """Learn the score of the true label of the instance whose bounds were just made."""
        cdef int j
        if self.recent.place[0] > 0 and self.evidence.started():
            for j in range(self.k):
                self.adapt_label(j, score)
        self.start(score)
        self.keep(score - self.evidence.expected)
        self.evidence.learn(slots, n, score)

    cdef void start(self, double size) noexcept nogil:
        """Start scores and levels with the first error other than 0."""
        cdef int j
        if self.evidence.started() or size <= 0.0:
            return
        self.evidence.start(size)
        self.recent.clear()
        for j in range(self.k):
            self.miss[2 * j] = self.miss[2 * j + 1] = self.aim[j]

    cdef void keep(self, double score) noexcept nogil:
        """Keep a score, in exchange for the oldest one once there are MOST_SCORES."""
        cdef Py_ssize_t n = self.recent.place[0]
        cdef double oldest = self.recent.ring[self.recent.place[1]]
        score = min(max(score, -LARGEST_SCORE), LARGEST_SCORE)
        replace_ascending(self.magnitudes, n, fabs(score), n == MOST_SCORES, fabs(oldest))
        self.recent.keep(score)

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Forget an evicted slot."""
        self.evidence.forget(slot)

    # ---------------------------------------------------------------- files

    def dump(self):
        """Return the state as arrays by name."""
        return {**self.recent.dump(), **self.arrays.dump(0, 1),
                **{"evidence." + key: a for key, a in self.evidence.dump().items()}}

    def fill(self, dict arrays):
        """Restore what dump() returned, for the same coverages."""
        cdef Py_ssize_t i
        cdef double[::1] magnitudes
        self.recent.fill(arrays)
        self.arrays.fill(arrays, 0, 0, 1)
        magnitudes = np.sort(np.abs(arrays["scores"][:self.recent.place[0]]))
        for i in range(self.recent.place[0]):
            self.magnitudes[i] = magnitudes[i]
        self.evidence.fill({key[9:]: a for key, a in arrays.items() if key.startswith("evidence.")})

    def bounds(self):
        """Return (low, high) by coverage of the instance at hand."""
        cdef int j
        return [(self.low[j], self.high[j]) for j in range(self.k)]

    def nbytes(self):
        """Return bytes of state."""
        return self.arrays.nbytes() + self.recent.nbytes() + self.evidence.nbytes()

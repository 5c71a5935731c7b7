"""Estimate the size of the error of an instance from the evidence that is present.

The expected size is a base plus four parts: which features are present (a linear model on presence, each less its mean,
with one variance per weight as in diagonal AROW, and the number present), how far the prediction is from
the mean of the targets, and how the last errors compared with what was expected, slowly and quickly forgotten. Which
parts help depends on the stream: eight combinations are mixed by exponential weights. With `is_scale` the logarithm of
the size is learned, for intervals whose width is a multiple of it; otherwise the mean of a score in [0, 1].

Presence and level learn slowly from single errors. While the last sizes are far from what is expected, base, presence
and level follow faster, presence and level the more, the more unusual the features present and the prediction are: an
outage that makes errors a hundred times as large is remembered until the next one, and so is a machine that is idle at
weekends.

O(min(known, 256)) per instance learned, O(present) per instance predicted.
"""

import numpy as np

from libc.math cimport exp, fabs, log
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from varifold._engine.state cimport State
from varifold._numeric.hedge cimport (
    FIXED as FIXED_RATE, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_weights,
)

from varifold._engine.state import fixed

cdef enum:   # places in `numbers`
    SEEN               # instances learned
    STARTED            # 0 before the first nonzero error, then 1 + the instances before it
    BASE
    HELD               # sum over slots of weight times count
    MEAN_AMOUNT        # mean number of features present
    LEVEL_WEIGHT
    LEVEL_VARIANCE
    RECENT_SLOW
    RECENT_FAST
    RATIO              # mean size over the expected one
    NUMBERS

cdef double RATE = 0.3             # of the exponential weights
cdef double SHARE = 0.001
cdef double NOISE = 100.0          # of the errors, in AROW's r
cdef double BASE_RATE = 0.002      # at least, once there were many errors
cdef double JUMP_RATE = 0.02       # of the base, while sizes are far from what is expected
cdef double JUMP_PRESENCE = 0.04   # of presence and level then
cdef double FAR = 0.4              # mean error of the last expected log sizes that is far
cdef double SOFTENING = 0.3        # damps sizes near 0: log((size + .3 scale) / 1.3 scale)
cdef double LARGEST = 4.0          # error of an expected log size, at most
cdef double LARGE_RATIO = 5.0      # of a size to the one expected
cdef double TAIL = 2.0
cdef double SLOW_RATE = 0.05
cdef double FAST_RATE = 0.15
cdef double SLOW_TRUST = 0.5
cdef double FAST_TRUST = 0.7
cdef double EXTREME = 690.0        # exp() of it is finite, and not 0


cdef inline double within(double value, double bound) noexcept nogil:
    return bound if value > bound else -bound if value < -bound else value


cdef inline double heavy_tailed(double ratio) noexcept nogil:
    """Let the loss grow logarithmically beyond LARGE_RATIO: one outlier must not decide, a silent sensor must."""
    return ratio if ratio <= LARGE_RATIO else LARGE_RATIO + TAIL * log(ratio / LARGE_RATIO)


cdef class Evidence:
    """Estimator of the size of an error from the features that are present."""

    def __cinit__(self, bint is_scale):
        self.is_scale = is_scale
        self.arrays = State()
        # without a level, as for classifiers, the last four experts would equal the first four
        if experts_make(&self.experts, EXPERTS if is_scale else EXPERTS // 2, FIXED_RATE, RATE, SHARE) < 0:
            raise MemoryError
        self.declare_tracked()
        self.numbers[LEVEL_VARIANCE] = 1.0
        self.numbers[RATIO] = 1.0
        self.top = 1

    def __dealloc__(self):
        experts_free(&self.experts)

    cdef int declare_tracked(self) except -1:
        """Declare the numbers of the learner and its arrays over tracked slots, all of a fixed length."""
        cdef State state = self.arrays
        state.declare("numbers", &self.numbers, fixed(NUMBERS))
        state.declare("experts", &self.saved_experts, fixed(self.experts.k + 1))
        state.declare("weight", &self.weight, fixed(TRACKED, low=-1e6, high=1e6))
        state.declare("variance", &self.variance, fixed(TRACKED, first=1, low=0, high=1))
        state.declare("count", &self.count, fixed(TRACKED, low=0))
        state.scratch(&self.x, fixed(TRACKED))
        return 0

    cdef bint started(self) noexcept nogil:
        """Return whether there was an error other than 0."""
        return self.numbers[STARTED] > 0.0

    cdef double learned(self) noexcept nogil:
        """Return the number of errors learned, from the first other than 0 on."""
        return self.numbers[SEEN] + 1.0 - self.numbers[STARTED] if self.started() else 0.0

    # ---------------------------------------------------------------- before learning

    cdef void expect(self, const int32_t* slots, Py_ssize_t n, double level) noexcept nogil:
        """Compute the expected size for an instance with these slots, none of them new; changes no state."""
        cdef Py_ssize_t i
        cdef int32_t s
        cdef double* numbers = self.numbers
        cdef double weights[EXPERTS]
        cdef double present = 0.0
        self.level = level
        self.amount = 0.0
        if numbers[SEEN] > 0.0:
            self.amount = within(log((n + 1.0) / (numbers[MEAN_AMOUNT] + 1.0)), 2.0)
            present = self.weight[0] * self.amount - numbers[HELD] / numbers[SEEN]
            for i in range(n):
                s = slots[i]
                if s < TRACKED and self.count[s] > 0.0:
                    present += self.weight[s]
        self.part[PRESENCE] = present
        self.part[LEVEL] = numbers[LEVEL_WEIGHT] * level
        self.part[SLOW] = SLOW_TRUST * numbers[RECENT_SLOW]
        self.part[FAST] = FAST_TRUST * numbers[RECENT_FAST]
        experts_weights(&self.experts, weights)
        self.expected = numbers[BASE]
        for i in range(self.experts.k):
            self.offset[i] = self.part[PRESENCE] if i % 4 else 0.0
            if i % 4 > 1:
                self.offset[i] += self.part[SLOW] if i % 4 == 2 else self.part[FAST]
            if i >= 4:
                self.offset[i] += self.part[LEVEL]
            self.expected += weights[i] * self.offset[i]
        self.expected = within(self.expected, EXTREME)

    cdef void write_memo(self, double* out) noexcept nogil:
        """Write what expect() computed."""
        out[0], out[1], out[2] = self.level, self.amount, self.expected
        memcpy(out + 3, self.part, PARTS * sizeof(double))
        memcpy(out + 3 + PARTS, self.offset, EXPERTS * sizeof(double))

    cdef void read_memo(self, const double* memo) noexcept nogil:
        """Take what write_memo() wrote in place of what expect() would compute."""
        cdef int i
        self.level, self.amount = within(memo[0], 3.0), within(memo[1], 2.0)
        self.expected = within(memo[2], EXTREME)
        for i in range(PARTS):
            self.part[i] = within(memo[3 + i], EXTREME)
        for i in range(EXPERTS):
            self.offset[i] = within(memo[3 + PARTS + i], EXTREME)

    cdef double scale(self) noexcept nogil:
        """Return the expected size, where its logarithm is learned; 0 while every error was 0."""
        return exp(self.expected) if self.started() else 0.0

    # ---------------------------------------------------------------- learning

    cdef void start(self, double size) noexcept nogil:
        """Start to learn with this error, the first other than 0. It is the base of a scale, so that any unit works."""
        self.numbers[STARTED] = 1.0 + self.numbers[SEEN]
        if self.is_scale:
            self.expected += within(log(size), EXTREME) - self.numbers[BASE]
            self.numbers[BASE] = within(log(size), EXTREME)

    cdef void learn(self, const int32_t* slots, Py_ssize_t n, double size) noexcept nogil:
        """Learn the size of the error of the last instance given to expect(), which may have more slots by now."""
        cdef double* numbers = self.numbers
        cdef double known, whole, rate
        if self.started():
            known = self.error(numbers[BASE] + self.part[PRESENCE], size)
            whole = self.error(numbers[BASE] + self.part[PRESENCE] + self.part[LEVEL], size)
            self.weigh_experts(size)
            self.center(slots, n)
            self.learn_presence(known)
            self.learn_level(whole)
            rate = max(1.0 / (self.learned() + 1.0), self.follow_jump(known))
            numbers[BASE] = within(numbers[BASE] + rate * known, EXTREME)
            numbers[RECENT_SLOW] += SLOW_RATE * (whole - numbers[RECENT_SLOW])
            numbers[RECENT_FAST] += FAST_RATE * (whole - numbers[RECENT_FAST])
        self.count_present(slots, n)

    cdef double error(self, double expected, double size) noexcept nogil:
        """Return the difference of a size from the expected one, within +-LARGEST."""
        cdef double ratio
        if not self.is_scale:
            return size - expected
        ratio = size / exp(within(expected, EXTREME))
        return within(log((ratio + SOFTENING) / (1.0 + SOFTENING)), LARGEST)

    cdef void weigh_experts(self, double size) noexcept nogil:
        """Weigh the experts: by the likelihood of a Laplace distribution of their scale, or by squared error.

        Its scale is the mean size, RATIO times the expected one; otherwise experts that expect too much would win.
        """
        cdef int i
        cdef double rate
        cdef double loss[EXPERTS]
        cdef double* numbers = self.numbers
        cdef double base = numbers[BASE]
        for i in range(self.experts.k):
            if self.is_scale:
                loss[i] = heavy_tailed(self.ratio(base + self.offset[i], size)) / numbers[RATIO] + self.offset[i]
            else:
                loss[i] = 4.0 * (size - base - self.offset[i]) ** 2
        experts_learn(&self.experts, loss, 1.0)
        if self.is_scale:
            rate = max(1.0 / (self.learned() + 1.0), BASE_RATE)
            numbers[RATIO] += rate * (min(self.ratio(self.expected, size), LARGE_RATIO) - numbers[RATIO])
            numbers[RATIO] = max(numbers[RATIO], 0.001)

    cdef double ratio(self, double expected, double size) noexcept nogil:
        """Return a size over the expected one, at most 1,000."""
        return min(size / exp(within(expected, EXTREME)), 1000.0)

    cdef void center(self, const int32_t* slots, Py_ssize_t n) noexcept nogil:
        """Write the presence of each tracked slot less its mean; 0 for a slot that no earlier instance had."""
        cdef Py_ssize_t i
        cdef double seen = max(1.0, self.numbers[SEEN])
        for i in range(1, self.top):
            self.x[i] = -self.count[i] / seen
        for i in range(n):
            if slots[i] < TRACKED and self.count[slots[i]] > 0.0:
                self.x[slots[i]] += 1.0
        self.x[0] = self.amount

    cdef void learn_presence(self, double error) noexcept nogil:
        """Do a step of AROW for regression, a variance S per weight: w += S x e / (r + x S x), S -= (S x)^2 / (...)."""
        cdef Py_ssize_t i
        cdef double gain, total = NOISE
        for i in range(self.top):
            total += self.variance[i] * self.x[i] * self.x[i]
        for i in range(self.top):
            if self.x[i] != 0.0:
                gain = self.variance[i] * self.x[i]
                self.weight[i] += gain * error / total
                self.variance[i] -= gain * gain / total

    cdef double follow_jump(self, double error) noexcept nogil:
        """Let presence and level follow while sizes are far from the expected ones; return the rate of the base.

        Which of them is to follow? Presence and level, as far as the features present and the prediction are unusual:
        the square of their distance from the mean over itself and the variance. The level is in deviations of the
        target from its mean, so that its variance is 1. So the base does not learn what an outage does.
        """
        cdef Py_ssize_t i
        cdef double* numbers = self.numbers
        cdef double mean, unusual, seen = max(1.0, numbers[SEEN])
        cdef double far = self.variance[0] * self.x[0] * self.x[0], spread = 0.01
        if not self.is_scale or (fabs(error) < LARGEST and numbers[RECENT_SLOW] * error <= FAR * fabs(error)):
            return BASE_RATE
        for i in range(1, self.top):
            mean = self.count[i] / seen
            far += self.variance[i] * self.x[i] * self.x[i]
            spread += self.variance[i] * mean * (1.0 - mean)
        far += numbers[LEVEL_VARIANCE] * self.level * self.level
        spread += numbers[LEVEL_VARIANCE]
        unusual = far / (far + spread)
        for i in range(self.top):
            if self.x[i] != 0.0:
                self.weight[i] += JUMP_PRESENCE * error * self.variance[i] * self.x[i] / (far + spread)
        numbers[LEVEL_WEIGHT] += JUMP_PRESENCE * error * numbers[LEVEL_VARIANCE] * self.level / (far + spread)
        return JUMP_RATE * (1.0 - unusual)

    cdef void learn_level(self, double error) noexcept nogil:
        """Do the same step for the weight of the prediction's level."""
        cdef double gain = self.numbers[LEVEL_VARIANCE] * self.level
        cdef double total = NOISE + gain * self.level
        self.numbers[LEVEL_WEIGHT] += gain * error / total
        self.numbers[LEVEL_VARIANCE] -= gain * gain / total

    cdef double centre(self) noexcept nogil:
        """Return what presence would add to the base if it were not centred."""
        cdef double* numbers = self.numbers
        return numbers[HELD] / max(1.0, numbers[SEEN]) + self.weight[0] * log(numbers[MEAN_AMOUNT] + 1.0)

    cdef void sum_held(self) noexcept nogil:
        """Compute HELD, the sum over slots of weight times count: divided by SEEN, the mean part of presence."""
        cdef Py_ssize_t i
        self.numbers[HELD] = 0.0
        for i in range(1, self.top):
            self.numbers[HELD] += self.weight[i] * self.count[i]

    cdef void count_present(self, const int32_t* slots, Py_ssize_t n) noexcept nogil:
        """Count the instance and its slots, which moves the means that presence is centred by.

        The base changes by the opposite amount, so that the expected size of every instance stays the same.
        """
        cdef Py_ssize_t i
        cdef double before
        cdef double* numbers = self.numbers
        self.sum_held()
        before = self.centre()
        for i in range(n):
            if slots[i] < TRACKED:
                self.count[slots[i]] += 1.0
                self.top = max(self.top, slots[i] + 1)
        numbers[MEAN_AMOUNT] += (n - numbers[MEAN_AMOUNT]) / (numbers[SEEN] + 1.0)
        numbers[SEEN] += 1.0
        self.sum_held()
        numbers[BASE] = within(numbers[BASE] + self.centre() - before, EXTREME)

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Forget an evicted slot."""
        if 0 < slot < TRACKED:
            self.numbers[HELD] -= self.weight[slot] * self.count[slot]
            self.weight[slot] = 0.0
            self.variance[slot] = 1.0
            self.count[slot] = 0.0

    # ---------------------------------------------------------------- files

    def dump(self):
        """Return the state as arrays by name."""
        experts_dump(&self.experts, self.saved_experts)
        return self.arrays.dump(0, 1)

    def fill(self, dict arrays):
        """Restore what dump() returned."""
        numbers = arrays["numbers"]
        self.arrays.fill(arrays, 0, 0, 1)
        if not (0.0 <= numbers[STARTED] <= numbers[SEEN] and 0.001 <= numbers[RATIO] <= 5.0 and numbers[MEAN_AMOUNT] >= 0.0
                and 0.0 <= numbers[LEVEL_VARIANCE] <= 1.0
                and np.abs(numbers[[BASE, RECENT_SLOW, RECENT_FAST]]).max() <= EXTREME
                and np.abs(numbers[[LEVEL_WEIGHT, HELD]]).max() <= 1e300 and (arrays["count"] <= numbers[SEEN]).all()):
            raise ValueError(f"numbers of the expected error {numbers.tolist()}")
        if arrays["experts"][0] < 0.0 or (arrays["experts"][1:] > 0.0).any() or arrays["experts"][1:].max() < 0.0:
            raise ValueError(f"log weights of {arrays['experts'].tolist()}")
        experts_fill(&self.experts, self.saved_experts)
        self.top = 1 + int(np.flatnonzero(arrays["count"]).max(initial=0))

    def nbytes(self):
        """Return bytes of state."""
        return self.arrays.nbytes()

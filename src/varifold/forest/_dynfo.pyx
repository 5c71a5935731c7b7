"""DynFo (Schreckenberger, Bartelt, Stuckenschmidt 2022): weighted stumps that are relearned or dropped."""

import numpy as np

from libc.math cimport floor
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from varifold._engine.entries cimport cut_entries
from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport COLUMN, INDICATOR
from varifold._engine.state cimport State
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax
from varifold._numeric.hashing cimport draw, mix, unit_interval
from varifold._numeric.selection cimport select
from varifold.forest._split_search cimport Split, SplitSearch
from varifold.forest._window cimport Row, Window, read_view

from varifold._engine.state import checked_array, fixed, per_class, per_slot, per_slot_and_class

cdef double TIE = 1e-9   # smaller differences of votes or gains count as ties, so that rounding decides nothing


cdef class DynFoModel(Model):
    """Predict by the weighted mean of the label shares of stumps learned on a window of recent instances."""

    cdef readonly Py_ssize_t most        # stumps (M)
    cdef readonly double alpha           # rate of the weights
    cdef readonly double beta            # chance that a stump to be learned again is kept
    cdef readonly double delta           # share of the features drawn for a stump
    cdef readonly double epsilon         # loss of weight by an absent feature
    cdef readonly double gamma           # error that adds a stump
    cdef readonly double low             # weight below which a stump is dropped (theta1)
    cdef readonly double middle          # quantile of the weights below which it is learned again (theta2)
    cdef readonly Py_ssize_t draws       # features drawn for a stump, at the most
    cdef uint64_t seed
    cdef Window window
    cdef SplitSearch splits
    cdef State stumps
    cdef readonly Py_ssize_t n           # stumps there are
    cdef int32_t* key                    # [stump]: what it splits, 0 when that was evicted
    cdef double* value                   # [stump]
    cdef double* weight                  # [stump]
    cdef double* shares                  # [stump][class][2]: of the classes on either side
    cdef int32_t* majority                # scratch [stump][2]: the largest class of either side
    cdef double* counts                  # [class]: weight learned
    cdef uint8_t* wrong                  # ring: whether recent predictions were wrong
    cdef readonly int64_t predicted
    cdef Row current                       # scratch: the instance by column, in the two arrays below
    cdef int32_t* current_key              # scratch [slot]
    cdef double* current_value             # scratch [slot]
    cdef int32_t* entry                  # scratch [slot][2], 0 between calls: 1 + where a key is in the instance
    cdef double* mean                    # scratch [class]
    cdef double* part                    # scratch [slot]
    cdef double* sorted                  # scratch [stump]

    def __cinit__(self, Py_ssize_t stumps, Py_ssize_t window, double alpha, double beta, double delta, double epsilon,
                  double gamma, double theta1, double theta2, Py_ssize_t draws, uint64_t seed):
        self.most = stumps
        self.alpha = alpha
        self.beta = beta
        self.delta = delta
        self.epsilon = epsilon
        self.gamma = gamma
        self.low = theta1
        self.middle = theta2
        self.draws = draws
        self.seed = seed
        self.prepares = True
        self.window = Window(window)
        self.splits = SplitSearch(self.window)
        self.stumps = State()
        self.stumps.declare("stump.key", &self.key, per_slot(low=0))
        self.stumps.declare("stump.value", &self.value, per_slot())
        self.stumps.declare("stump.weight", &self.weight, per_slot(low=0))
        self.stumps.declare("stump.shares", &self.shares, per_slot_and_class(width=2, low=0, high=1))
        self.stumps.scratch(&self.majority, per_slot(width=2))
        self.stumps.scratch(&self.sorted, per_slot())
        self.stumps.reserve_slots(stumps)
        self.arrays.declare("counts", &self.counts, per_class(low=0))
        self.arrays.declare("wrong", &self.wrong, fixed(window, low=0, high=1))
        self.arrays.scratch(&self.current_key, per_slot())
        self.arrays.scratch(&self.current_value, per_slot())
        self.arrays.scratch(&self.entry, per_slot(width=2))
        self.arrays.scratch(&self.part, per_slot())
        self.arrays.scratch(&self.mean, per_class())

    # ---------------------------------------------------------------- memory

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.splits.reserve(capacity)
        return Model.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        self.stumps.reserve_classes(self.classes + 1)
        return self.splits.reserve_classes(self.classes + 1)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Reserve memory for the next row."""
        return self.window.reserve(n + n_new)

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove a feature from rows and stumps; a removed level leaves its column present."""
        self.arrays.forget(slot)
        if self.space.kind[slot] & INDICATOR:
            self.window.forget(2 * self.space.column[slot] + 1, slot)
            self.lose(2 * self.space.column[slot] + 1, slot)
            return
        self.window.forget(2 * slot, 0.0)
        self.splits.held[2 * slot] = 0
        self.lose(2 * slot, 0.0)
        if not self.space.kind[slot] & COLUMN:
            self.window.forget(2 * slot + 1, 0.0)
            self.splits.held[2 * slot + 1] = 0
            self.lose(2 * slot + 1, 0.0)

    cdef void lose(self, int32_t key, double level) noexcept nogil:
        """Mark stumps with this key (and level, unless 0) for relearning at the next instance."""
        cdef Py_ssize_t j
        for j in range(self.n):
            if self.key[j] == key and (level == 0.0 or self.value[j] == level):
                self.key[j] = 0

    # ---------------------------------------------------------------- predicting

    cdef void read(self, View* v) noexcept nogil:
        """Read the instance by column and mark its keys."""
        cdef Py_ssize_t i
        self.current.key = self.current_key
        self.current.value = self.current_value
        read_view(v, self.space, &self.current)
        for i in range(self.current.n):
            self.entry[self.current.key[i]] = <int32_t> (i + 1)

    cdef void unmark(self) noexcept nogil:
        """Clear the marks of read()."""
        cdef Py_ssize_t i
        for i in range(self.current.n):
            self.entry[self.current.key[i]] = 0

    cdef int side(self, Py_ssize_t j) noexcept nogil:
        """Return the side of stump j for the instance, 0 or 1; -1 if its feature is absent."""
        cdef int32_t key = self.key[j], i = self.entry[key]
        if i == 0:
            return -1
        if key & 1:
            return self.current.value[i - 1] != self.value[j]
        return self.current.value[i - 1] > self.value[j]

    cdef double* share(self, Py_ssize_t j, int c) noexcept nogil:
        """Return the shares of class c on the two sides of stump j."""
        return self.shares + (j * self.stumps.classes + c) * 2

    cdef double vote(self, double* out) noexcept nogil:
        """Write the probability of each class: the mean over the stumps whose feature is present, weighted.

        Without such a stump it is the class frequency. Return the total weight of the stumps that voted.
        """
        cdef Py_ssize_t j
        cdef int c, side
        cdef double sum = 0.0, total = 0.0
        memset(out, 0, self.classes * sizeof(double))
        for j in range(self.n):
            side = self.side(j)
            if side < 0:
                continue
            sum += self.weight[j]
            for c in range(self.classes):
                out[c] += self.weight[j] * self.share(j, c)[side]
        for c in range(self.classes):
            total += self.counts[c]
        for c in range(self.classes):
            if sum > 0.0:
                out[c] /= sum
            else:
                out[c] = self.counts[c] / total if total > 0.0 else 1.0 / self.classes
        return sum

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.read(v)
        self.vote(out)
        self.unmark()

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Copy the scores: they are shares and sum to one."""
        memcpy(out, scores, self.classes * sizeof(double))

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.absorb(v, y, w, self.mean)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        self.absorb(v, y, w, scores)
        if probs != NULL:
            self.proba(scores, probs)

    cdef void absorb(self, View* v, int y, double w, double* out) noexcept nogil:
        """Score and store the instance; add a stump if due; reweight, relearn and drop stumps."""
        cdef Py_ssize_t n_alive
        cdef int64_t t = v.step + 1
        self.read(v)
        self.vote(out)
        if self.window.taken:
            self.wrong[self.predicted % self.window.most] = out[y] < out[argmax(self.classes, out)] - TIE
            self.predicted += 1
        self.counts[y] += w
        self.current.y = y
        self.current.w = w
        self.splits.put(&self.current)
        n_alive = self.splits.list_alive(self.space.size)
        if self.n < self.most and (self.n == 0 or self.window.taken <= self.most or self.error() > self.gamma):
            self.n += 1
            self.learn_stump(self.n - 1, n_alive, draw(self.seed, <uint64_t> t, <uint64_t> self.most))
        self.reweigh(y, w)
        self.renew(n_alive, t)
        self.unmark()

    cdef double error(self) noexcept nogil:
        """Return the share of wrong predictions over the window."""
        cdef Py_ssize_t i, n = <Py_ssize_t> min(self.predicted, <int64_t> self.window.most), wrong = 0
        for i in range(n):
            wrong += self.wrong[i]
        return <double> wrong / n if n else 0.0

    cdef void reweigh(self, int y, double w) noexcept nogil:
        """Update weights: a correct vote moves towards 2, a wrong one towards 0, an absent feature costs epsilon."""
        cdef Py_ssize_t j
        cdef int side
        cdef double a = self.alpha * w
        for j in range(self.n):
            side = self.side(j)
            if side < 0:
                self.weight[j] -= self.epsilon * w
            else:
                self.weight[j] = ((2.0 * a if self.majority[2 * j + side] == y else 0.0) + self.weight[j]) / (1.0 + a)

    cdef double threshold(self) noexcept nogil:
        """Return the quantile theta2 of the weights, interpolated."""
        cdef Py_ssize_t i, k = <Py_ssize_t> floor((self.n - 1) * self.middle)
        cdef double below, above
        memcpy(self.sorted, self.weight, self.n * sizeof(double))
        below = above = select(self.sorted, self.n, k)
        for i in range(k + 1, self.n):
            if i == k + 1 or self.sorted[i] < above:
                above = self.sorted[i]
        return below + (above - below) * ((self.n - 1) * self.middle - k)

    cdef void renew(self, Py_ssize_t n_alive, int64_t t) noexcept nogil:
        """Relearn stumps that lost their feature and, at random, those below the threshold; drop the lightest."""
        cdef Py_ssize_t j
        cdef double threshold = self.threshold()
        cdef uint64_t luck
        for j in range(self.n):
            luck = draw(self.seed, <uint64_t> t, <uint64_t> j)
            if self.key[j] == 0 or (self.low <= self.weight[j] < threshold and unit_interval(luck) >= self.beta):
                self.learn_stump(j, n_alive, luck)
        for j in range(self.n - 1, -1, -1):
            if self.weight[j] < self.low:
                cut_entries(self.stumps, j, 1, self.n)
                self.n -= 1

    cdef void learn_stump(self, Py_ssize_t j, Py_ssize_t n_alive, uint64_t luck) noexcept nogil:
        """Draw a share delta of the features in the window and keep the best split among them, with weight 1."""
        cdef Py_ssize_t i, at, count = <Py_ssize_t> floor(self.delta * n_alive + TIE)
        cdef int32_t* alive = self.splits.alive
        cdef int c
        cdef Split* found
        cdef double gain = 0.0
        for i in range(min(max(count, 1), self.draws)):
            luck = mix(luck)
            at = i + <Py_ssize_t> (luck % <uint64_t> (n_alive - i))
            alive[i], alive[at] = alive[at], alive[i]
            found = self.splits.search(alive[i], self.classes)
            if i == 0 or found.gain > gain + TIE * self.window.most:
                gain = found.gain
                self.key[j] = alive[i]
        self.value[j] = self.splits.best[self.key[j]].value
        self.weight[j] = 1.0
        for c in range(self.classes):
            memcpy(self.share(j, c), self.splits.side_of(self.key[j], c), 2 * sizeof(double))
        self.set_majority(j)

    cdef void set_majority(self, Py_ssize_t j) noexcept nogil:
        """Store the majority class of each side, the first among ties."""
        cdef int c, side
        for side in range(2):
            self.majority[2 * j + side] = 0
            for c in range(1, self.classes):
                if self.share(j, c)[side] > self.share(j, self.majority[2 * j + side])[side] + TIE:
                    self.majority[2 * j + side] = c

    # ---------------------------------------------------------------- explaining

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return the weight of the stumps that split the feature."""
        cdef Py_ssize_t j
        cdef bint level = (self.space.kind[slot] & INDICATOR) != 0
        cdef int32_t key = 2 * self.space.column[slot] + level
        cdef double sum = 0.0
        for j in range(self.n):
            if self.key[j] == key and (not level or self.value[j] == slot):
                sum += self.weight[j]
        return sum

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Assign a stump's share of the vote above 1 / labels to the value it tests; the rest is the intercept's."""
        cdef Py_ssize_t i, j
        cdef int side
        cdef int32_t slot
        cdef double sum, rest
        self.read(v)
        sum = self.vote(self.mean)
        memset(self.part, 0, self.space.size * sizeof(double))
        for j in range(self.n):
            side = self.side(j)
            if side >= 0 and sum > 0.0:
                slot = self.key[j] >> 1
                if self.key[j] & 1:
                    slot = <int32_t> self.current.value[self.entry[self.key[j]] - 1]
                self.part[slot] += self.weight[j] / sum * (self.share(j, label)[side] - 1.0 / self.classes)
        self.unmark()
        rest = self.mean[label]
        for i in range(v.n):
            out[i] = self.part[v.slot[i]] if v.slot[i] else 0.0
            rest -= out[i]
        for i in range(v.n):
            if v.slot[i] == 0:
                out[i] = rest

    # ---------------------------------------------------------------- looking inside

    def stumps_by_key(self):
        """Return (key, value, weight, shares by side and class) of every stump."""
        cdef Py_ssize_t j
        cdef int c, side
        return [(self.key[j], self.value[j], self.weight[j],
                 [[self.share(j, c)[side] for c in range(self.classes)] for side in range(2)]) for j in range(self.n)]

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {**Model.dump(self, size), **self.window.dump(), **self.stumps.dump(self.n, self.classes),
                "predicted": np.array([self.predicted], dtype=np.int64)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t j
        Model.fill(self, arrays, capacity)
        self.window.fill(arrays, capacity, self.classes)
        self.splits.reserve_classes(self.classes)
        self.splits.recount()
        self.predicted = int(checked_array(arrays, "predicted", "i", (1,), 0, 1 << 53)[0])
        keys = checked_array(arrays, "stump.key", "i", (None,), 0, 2 * capacity - 1)
        if len(keys) > self.most:
            raise ValueError(f"{len(keys)} stumps where {self.most} are allowed")
        self.stumps.fill(arrays, len(keys), self.most, self.classes)
        self.n = len(keys)
        for j in range(self.n):
            self.set_majority(j)

    def nbytes(self):
        return Model.nbytes(self) + self.window.nbytes() + self.stumps.nbytes() + self.splits.nbytes()

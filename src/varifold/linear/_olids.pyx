"""OLIDS (You et al. 2023): a margin learner for incomplete and imbalanced streams.

Features of the round before and all others form two blocks. The confidence of a block is its share of the running
variance h of the features present, p and 1 - p, and its part of the score and of the step is multiplied by it:
f = p w_c.x_c + (1 - p) w_n.x_n. The cap of the step is C theta n_-y / (n_+ + n_-), larger for the rarer class.
"""

cimport cython
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.models.one_vs_rest cimport BinaryRule, at
from varifold._engine.names.space cimport Seen, seen_last
from varifold._engine.view cimport View
from varifold.linear._olids_problems cimport SCALE, Tile, learn_problems, measure_problems
from varifold.linear._problems cimport TILE
from varifold.linear._truncated cimport TruncatedRule

from varifold._engine.state import per_slot

# numbers of a slot
cdef enum:
    W = 0        # weight, over SCALE
    COUNT = 1
    MEAN = 2
    M2 = 3
    ROWS = 4     # of a column with string values: weight of the rows that held one (only with `by_column`)

# shared numbers of a problem, after SCALE
cdef enum:
    PLUS = 1     # weight of the instances of +1, from 1
    MINUS = 2
    MASS = 3     # sum of |w| h over all features
    SPREAD = 4   # sum of h over all features


cdef inline void welford(double* s, Py_ssize_t plane, double x, double w) noexcept nogil:
    """Add a value of weight w to the running mean and squared deviations."""
    cdef double d = x - s[MEAN * plane], count = s[COUNT * plane] + w, mean = s[MEAN * plane] + d * (w / count)
    cdef double m2 = s[M2 * plane] + w * d * (x - mean)
    s[COUNT * plane] = count
    s[MEAN * plane] = mean
    s[M2 * plane] = 1e300 if m2 > 1e300 else m2


@cython.final
cdef class OLIDSRule(TruncatedRule):
    """Per slot and problem: weight, and Welford's count, mean and squared deviations of the values.

    With `by_column` an indicator's values are those of a 0/1 column that is present with its string column: the column's
    slot counts the rows, and p (1 - p) is the variance of a value that stood in a share p of them. With `clip` the 1 is
    standardised as the values of numbers are: (1 - p) / sqrt(p (1 - p)); the values of the other levels are left out.
    """

    def __cinit__(self, double C, double theta, double lam, double B, bint by_column=True, double clip=0.0):
        self.by_column = by_column
        self.clip = clip
        self.declare_rule(ROWS + 1 if by_column else ROWS, 5)
        self.C = C
        self.theta = theta
        self.lam = lam
        self.B = B
        self.sparse = B < 1.0
        self.tile_room = 0 if self.sparse else TILE
        self.arrays.scratch(&self.stays, per_slot())
        self.arrays.scratch(&self.spread, per_slot())
        self.arrays.scratch(&self.delta, per_slot())
        self.arrays.scratch(&self.gain, per_slot())

    cdef void start(self, int c) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        g[SCALE] = 1.0
        g[PLUS] = 1.0
        g[MINUS] = 1.0

    cdef void negate(self, int c) noexcept nogil:
        cdef double* g = self.shared + c * self.globals
        TruncatedRule.negate(self, c)
        g[PLUS], g[MINUS] = g[MINUS], g[PLUS]

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        """Subtract a slot's weight from MASS and set it to zero."""
        cdef double* s = at(self, slot, c)
        self.shared[c * self.globals + MASS] -= (
            fabs(s[W] * self.shared[c * self.globals + SCALE]) * self.variance(slot, c)
        )
        s[W] = 0.0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int c
        for c in range(self.problems):
            self.shared[c * self.globals + SPREAD] -= self.variance(slot, c)
        TruncatedRule.forget(self, slot)

    cdef inline bint has_levels(self) noexcept nogil:
        """Whether a slot can be the level of a column that counts rows."""
        return self.by_column and self.space.indicators > 0

    cdef inline bint is_level(self, int32_t slot) noexcept nogil:
        return self.by_column and (self.space.kind[slot] & INDICATOR) != 0

    cdef inline double column_rows(self, int32_t slot, int c) noexcept nogil:
        """Weight of the rows that held the column of an indicator, be it with a string or a number."""
        cdef double* head = at(self, self.space.column[slot], c)
        cdef double rows = head[ROWS * self.plane] + head[COUNT * self.plane]
        cdef double own = at(self, slot, c)[COUNT * self.plane]
        return rows if rows > own else own

    cdef double value(self, View* v, Py_ssize_t i, int c, double w) noexcept nogil:
        """The value of an entry; an indicator standardised over the rows of its column, this one of weight w included."""
        cdef double share, z
        if self.clip <= 0.0 or not self.is_level(v.slot[i]):
            return v.x[i]
        share = (at(self, v.slot[i], c)[COUNT * self.plane] + w) / (self.column_rows(v.slot[i], c) + w)
        z = sqrt((1.0 - share) / share)
        return v.x[i] * (z if z < self.clip else self.clip)

    cdef double variance(self, int32_t slot, int c) noexcept nogil:
        cdef double* s = at(self, slot, c)
        cdef double share, count = s[COUNT * self.plane]
        if count <= 0.0:
            return 0.0
        if self.is_level(slot):
            share = count / self.column_rows(slot, c)
            return share * (1.0 - share)
        return s[M2 * self.plane] / count

    cdef double next_variance(self, int32_t slot, int c, double x, double w) noexcept nogil:
        """The variance with one more value x of weight w."""
        cdef double* s = at(self, slot, c)
        cdef double d, share, count = s[COUNT * self.plane]
        if self.is_level(slot):
            share = (count + w) / (self.column_rows(slot, c) + w)
            return share * (1.0 - share)
        d = x - s[MEAN * self.plane]
        share = 1.0 / (count + w)
        return (s[M2 * self.plane] + w * count * share * d * d) * share

    cdef void count(self, int32_t slot, int c, double x, double w) noexcept nogil:
        """One more value; of an indicator only the counts matter."""
        if self.is_level(slot):
            at(self, slot, c)[COUNT * self.plane] += w
            at(self, self.space.column[slot], c)[ROWS * self.plane] += w
        else:
            welford(at(self, slot, c), self.plane, x, w)

    cdef void count_numbers(self, View* v, int c, double w) noexcept nogil:
        """welford() of every number of an instance without levels, from what next_variances() left."""
        cdef double* first = self.state + c
        cdef double* s
        cdef double mean, m2
        cdef Py_ssize_t i, stride = self.stride, plane = self.plane
        for i in range(v.n):
            s = first + v.slot[i] * stride
            mean = s[MEAN * plane] + self.delta[i] * self.gain[i]
            m2 = s[M2 * plane] + w * self.delta[i] * (v.x[i] - mean)
            s[COUNT * plane] += w
            s[MEAN * plane] = mean
            s[M2 * plane] = 1e300 if m2 > 1e300 else m2

    cdef void sum_up(self, int c) noexcept nogil:
        """MASS and SPREAD from all slots: a row of a column changes the variance of every value of it."""
        cdef double* g = self.shared + c * self.globals
        cdef Py_ssize_t slot
        cdef double h
        g[MASS] = 0.0
        g[SPREAD] = 0.0
        for slot in range(self.space.size):
            h = self.variance(<int32_t> slot, c)
            g[MASS] += fabs(at(self, <int32_t> slot, c)[W] * g[SCALE]) * h
            g[SPREAD] += h

    cdef inline bint stayed(self, View* v, Py_ssize_t i) noexcept nogil:
        """Whether the instance learned before had the feature too, or its column; the intercept always counts."""
        cdef int32_t head
        if self.is_level(v.slot[i]):
            head = self.space.column[v.slot[i]]
            if self.space.seen[head].packed_first and seen_last(&self.space.seen[head]) == v.step:
                return True
        return not v.is_new[i] and (v.slot[i] == 0 or seen_last(&self.space.seen[v.slot[i]]) == v.step)

    cdef void mark_stays(self, View* v) noexcept nogil:
        """stayed() of every entry, into scratch; without branches where there are no levels."""
        cdef Py_ssize_t i
        cdef Seen* seen = self.space.seen
        cdef uint8_t* stays = self.stays
        if self.has_levels():
            for i in range(v.n):
                stays[i] = self.stayed(v, i)
            return
        for i in range(v.n):
            stays[i] = (v.is_new[i] == 0) & ((v.slot[i] == 0) | (seen_last(&seen[v.slot[i]]) == v.step))

    cdef void next_variances(self, View* v, int c, double w) noexcept nogil:
        """next_variance() of every number of an instance without levels, and what count_numbers() needs.

        Gathered, so that the compiler divides in pairs.
        """
        cdef double* first = self.state + c
        cdef double* s
        cdef double* gain = self.gain
        cdef double* delta = self.delta
        cdef double* spread = self.spread
        cdef double* x = v.x
        cdef double d, share
        cdef Py_ssize_t i, stride = self.stride, plane = self.plane
        for i in range(v.n):
            s = first + v.slot[i] * stride
            gain[i] = s[COUNT * plane]
            delta[i] = s[MEAN * plane]
            spread[i] = s[M2 * plane]
        for i in range(v.n):
            d = x[i] - delta[i]
            share = 1.0 / (gain[i] + w)
            spread[i] = (spread[i] + w * gain[i] * share * d * d) * share
            delta[i] = d
            gain[i] = share
        if w != 1.0:
            for i in range(v.n):
                gain[i] = w / ((first + v.slot[i] * stride)[COUNT * plane] + w)

    cdef double confidence(self, View* v, int c, double w) noexcept nogil:
        """p: the share of variance of the features that stayed, this instance's values included.

        Leaves in scratch which features stayed and what count_numbers() needs.
        """
        cdef double all = 0.0, old = 0.0
        cdef Py_ssize_t i
        cdef uint8_t* stays = self.stays
        cdef double* spread = self.spread
        self.mark_stays(v)
        if self.has_levels():
            for i in range(v.n):
                spread[i] = self.next_variance(v.slot[i], c, v.x[i], w)
        else:
            self.next_variances(v, c, w)
        for i in range(v.n):
            all += spread[i]
            old += spread[i] if stays[i] else 0.0
        return old / all if all > 0.0 else 1.0

    cdef double score(self, View* v, int c) noexcept nogil:
        cdef double f = 0.0
        cdef double part[2]
        cdef Py_ssize_t i
        cdef bint levels = self.has_levels()
        part[1] = self.confidence(v, c, 1.0)
        part[0] = 1.0 - part[1]
        for i in range(v.n):
            f += part[self.stays[i]] * at(self, v.slot[i], c)[W] * (self.value(v, i, c, 1.0) if levels else v.x[i])
        return f * self.shared[c * self.globals + SCALE]

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c = label if self.problems > 1 else 0
        cdef double trust, part, sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2:
            return
        trust = self.confidence(v, c, 1.0)
        for i in range(v.n):
            part = sign * (trust if self.stays[i] else 1.0 - trust)
            out[i] = part * self.coefficient(v.slot[i], c) * self.value(v, i, c, 1.0)

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return at(self, slot, c)[W] * self.shared[c * self.globals + SCALE]

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        if w == 1.0:
            TruncatedRule.learn_scored(self, v, y, w, scores, probs)
        else:
            Model.learn_scored(self, v, y, w, scores, probs)  # with another weight the confidence differs

    cdef inline bint is_plain(self, View* v) noexcept nogil:
        """Whether problems can be learned together: dense, no levels, not too many features."""
        return not self.sparse and not self.has_levels() and 0 < v.n <= TILE // 8

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Tile t
        cdef Py_ssize_t first = 0
        if self.problems == 1 or not self.is_plain(v):
            TruncatedRule.scores(self, v, out)
            return
        self.mark_stays(v)
        while first < self.problems:
            measure_problems(self, v, first, 1.0, &t)
            memcpy(out + first, t.f, t.m * sizeof(double))
            first += t.m

    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil:
        if self.is_plain(v):
            learn_problems(self, v, y, w, scores)
        else:
            BinaryRule.update_all(self, v, y, w, scores, chances)
        return False

    cdef double step_of(self, Py_ssize_t c, double f, double norm, double y, double w) noexcept nogil:
        """Count an instance of problem c; what its values, times their confidence, are multiplied by."""
        cdef double* g = self.shared + c * self.globals
        cdef double cost, cap, step = 0.0
        cost = self.theta * (g[MINUS] if y > 0.0 else g[PLUS]) / (g[PLUS] + g[MINUS])
        if y * f < 1.0 and norm > 0.0:
            cap = self.C * cost * w
            step = (1.0 - y * f) / norm
            step = y * (cap if step > cap else step) / g[SCALE]
        if y > 0.0:
            g[PLUS] += w
        else:
            g[MINUS] += w
        return step

    cdef double update(self, View* v, int c, double y, double w) noexcept nogil:
        """One round; returns the score before it, for an instance of this weight."""
        cdef double* g = self.shared + c * self.globals
        cdef double* s
        cdef double f = 0.0, norm = 0.0, scaled, x, step
        cdef double part[2]
        cdef double* first = self.state + c
        cdef Py_ssize_t i, stride = self.stride
        cdef bint levels = self.has_levels()
        part[1] = self.confidence(v, c, w)
        part[0] = 1.0 - part[1]
        for i in range(v.n):
            s = first + v.slot[i] * stride
            x = self.value(v, i, c, w) if levels else v.x[i]
            scaled = part[self.stays[i]]
            f += scaled * s[W] * x
            scaled *= x
            norm += scaled * scaled
            if self.sparse:
                g[MASS] -= fabs(s[W] * g[SCALE]) * self.variance(v.slot[i], c)
                g[SPREAD] -= self.variance(v.slot[i], c)
        f *= g[SCALE]
        step = self.step_of(c, f, norm, y, w)
        part[1] *= step
        part[0] *= step
        if not self.sparse and not levels:
            for i in range(v.n):
                (first + v.slot[i] * stride)[W] += part[self.stays[i]] * v.x[i]
            self.count_numbers(v, c, w)
        else:
            for i in range(v.n):
                s = at(self, v.slot[i], c)
                s[W] += part[self.stays[i]] * self.value(v, i, c, w)
                self.count(v.slot[i], c, v.x[i], w)
                if self.sparse:
                    g[MASS] += fabs(s[W] * g[SCALE]) * self.variance(v.slot[i], c)
                    g[SPREAD] += self.variance(v.slot[i], c)
                    self.update_heap(v.slot[i], c)
        if not self.sparse:
            return f
        if self.by_column and self.space.indicators:
            self.sum_up(c)
        if g[SPREAD] > 0.0 and g[MASS] > self.lam * g[SPREAD]:
            g[SCALE] *= self.lam * g[SPREAD] / g[MASS]
            g[MASS] = self.lam * g[SPREAD]
            if g[SCALE] < 1e-100:
                for i in range(self.space.size):
                    at(self, <int32_t> i, c)[W] *= g[SCALE]
                g[SCALE] = 1.0
                self.reorder(c)
        self.keep_largest(<Py_ssize_t> (self.B * v.known), c)
        return f

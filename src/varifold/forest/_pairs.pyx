"""Pairs of features that are informative only together: found by trial, counted over a small grid."""

import numpy as np

from libc.math cimport exp, fabs, log, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memset

from varifold._engine.view cimport View
from varifold._numeric.ascending cimport place_among
from varifold._numeric.memory cimport allocate
from varifold.forest._feature_state cimport canonical_width
from varifold.forest._tdigest cimport Digest, Point

from varifold._engine.state import checked_array

cdef double START = 0.5
cdef double TIE = 1e-12    # smaller differences are rounding errors
cdef double SHRINK = 8.0   # weight of naive Bayes in every cell, in observations


cdef int by_value(const void* a, const void* b) noexcept nogil:
    """Compare points for qsort: by value, then by weight."""
    cdef const Point* p = <const Point*> a
    cdef const Point* q = <const Point*> b
    if p.at != q.at:
        return -1 if p.at < q.at else 1
    return (p.mass > q.mass) - (p.mass < q.mass)


cdef bint quantile_edges(Digest* digest, int classes, Point* point, double* edge) noexcept nogil:
    """Compute bin edges from flushed digests, whose points fit into `point`; return False if all values are equal."""
    cdef Py_ssize_t n = 0, i
    cdef int c, k
    cdef double total = 0.0, upto
    for c in range(classes):
        total += digest[c].total
        for i in range(digest[c].n):
            point[n].at = digest[c].point[i].at
            point[n].mass = fabs(digest[c].point[i].mass)
            n += 1
    qsort(point, n, sizeof(Point), by_value)
    i = 0
    upto = point[0].mass if n else 0.0
    for k in range(BINS - 1):
        while i + 1 < n and upto < total * (k + 1) / BINS:
            i += 1
            upto += point[i].mass
        edge[k] = point[i].at
        if n and edge[k] >= point[n - 1].at:    # the largest value is the majority: give it the last bin
            c = <int> n - 1
            while c > 0 and point[c].at >= point[n - 1].at:
                c -= 1
            edge[k] = point[c].at
    return n > 0 and point[0].at < point[n - 1].at


cdef inline int bin_of(double* edge, double x) noexcept nogil:
    """Return the bin of a value."""
    cdef int k, found = 0
    for k in range(BINS - 1):
        found += x > edge[k]
    return found


cdef void overlap_shares(double* old_edge, double* old_upto, double* new_edge, double* new_upto,
                         double* share) noexcept nogil:
    """Compute share[i * BINS + j], the part of old bin i in new bin j, given the share of values up to each edge."""
    cdef int i, j
    cdef double low, high, from_, to
    for i in range(BINS):
        low = old_upto[i - 1] if i else 0.0
        high = old_upto[i] if i < BINS - 1 else 1.0
        for j in range(BINS):
            from_ = new_upto[j - 1] if j else 0.0
            to = new_upto[j] if j < BINS - 1 else 1.0
            share[i * BINS + j] = max(0.0, min(high, to) - max(low, from_)) / (high - low) if high > low else 0.0
        if high <= low:
            share[i * BINS + (bin_of(new_edge, old_edge[i]) if i < BINS - 1 else BINS - 1)] = 1.0


cdef Py_ssize_t position(View* v, int32_t slot) noexcept nogil:
    """Return the position of a slot in the view, -1 if it is absent."""
    cdef Py_ssize_t at = place_among(v.slot, v.n, slot)
    return at if at < v.n and v.slot[at] == slot else -1


cdef class Pairs:
    """Hold the pairs: pair p votes if p < limit, and is on trial otherwise."""

    def __cinit__(self, int limit, double alpha):
        self.limit = limit
        self.alpha = alpha
        self.pair = <Pair*> allocate(2 * limit * sizeof(Pair))
        self.cell = <int*> allocate(2 * limit * sizeof(int))
        if self.pair == NULL or self.cell == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.pair)
        free(self.cell)
        free(self.count)
        free(self.lift)
        free(self.sum)
        free(self.naive)
        free(self.moved)

    cdef int widen(self, int wide) except -1:
        """Reserve memory for this many classes; on failure nothing changes."""
        cdef Py_ssize_t n = 2 * self.limit, k
        cdef double* new[5]
        cdef Py_ssize_t* size = [n * ROWS, n, 1, 1, ROWS]    # for count, lift, sum, naive, moved
        if wide <= self.wide:
            return 0
        for k in range(5):
            new[k] = <double*> allocate(size[k] * wide * sizeof(double))
        if new[0] == NULL or new[1] == NULL or new[2] == NULL or new[3] == NULL or new[4] == NULL:
            for k in range(5):
                free(new[k])
            raise MemoryError
        for k in range(n * ROWS if self.wide else 0):
            memcpy(new[0] + k * wide, self.count + k * self.wide, self.wide * sizeof(double))
        free(self.count)
        free(self.lift)
        free(self.sum)
        free(self.naive)
        free(self.moved)
        self.count, self.lift, self.sum, self.naive, self.moved = new[0], new[1], new[2], new[3], new[4]
        self.wide = wide
        return 0

    # ---------------------------------------------------------------- the vote

    cdef bint look_up(self, View* v, int classes, double* mass, double total, bint trials) noexcept nogil:
        """Look up the cells of an instance, their votes and the sum of the votes; return whether there is any."""
        cdef int p, c, any_vote = 0
        cdef Py_ssize_t i, j
        memset(self.sum, 0, classes * sizeof(double))
        for p in range(2 * self.limit if trials else self.limit):
            self.cell[p] = -1
            if self.pair[p].a == 0:
                continue
            i = position(v, self.pair[p].a)
            j = position(v, self.pair[p].b) if i >= 0 else -1
            if j < 0:
                continue
            self.cell[p] = BINS * bin_of(self.pair[p].edge[0], v.raw[i]) + bin_of(self.pair[p].edge[1], v.raw[j])
            self.lift_of(p, classes, mass, total)
            if p < self.limit:
                any_vote = True
                for c in range(classes):
                    self.sum[c] += self.pair[p].factor * self.lift[p * self.wide + c]
        return any_vote

    cdef void lift_of(self, int p, int classes, double* mass, double total) noexcept nogil:
        """Compute log P(c | cell) / Q(c), where Q is naive Bayes over the two bins and P is shrunk towards Q."""
        cdef double* first = self.count + <Py_ssize_t> p * ROWS * self.wide
        cdef double* cell = first + self.cell[p] * self.wide
        cdef double* a = first + (CELLS + self.cell[p] // BINS) * self.wide
        cdef double* b = first + (CELLS + BINS + self.cell[p] % BINS) * self.wide
        cdef double* every = first + (CELLS + 2 * BINS) * self.wide
        cdef double* out = self.lift + <Py_ssize_t> p * self.wide
        cdef double in_cell = 0.0, in_a = 0.0, in_b = 0.0, in_all = 0.0, sum = 0.0, prior, s = SHRINK
        cdef int c
        for c in range(classes):
            in_cell += cell[c]
            in_a += a[c]
            in_b += b[c]
            in_all += every[c]
        for c in range(classes):
            self.naive[c] = 0.0
            if mass[c] > 0.0:
                prior = (every[c] + mass[c] / total) / (in_all + 1.0)
                self.naive[c] = (a[c] + prior) / (in_a + 1.0) * ((b[c] + prior) / (in_b + 1.0)) / prior
            sum += self.naive[c]
        for c in range(classes):
            out[c] = 0.0
            if mass[c] > 0.0:
                self.naive[c] /= sum
                out[c] = log((cell[c] + s * self.naive[c]) / ((in_cell + s) * self.naive[c]))

    # ---------------------------------------------------------------- learning

    cdef void judge(self, int classes, double* prob, int y, double w, bint tempered) noexcept nogil:
        """Credit each vote with its gain over the prediction without it, then take a Newton step of its factor.

        `prob` is the prediction with all votes of the instance, 0 for a class never learned.
        """
        cdef int p, c
        cdef double a = self.alpha * w, sign, rest, gain, first, second
        cdef double* lift
        cdef Pair* pair
        for p in range(2 * self.limit):
            if self.cell[p] < 0:
                continue
            pair = &self.pair[p]
            lift = self.lift + <Py_ssize_t> p * self.wide
            sign = -1.0 if p < self.limit else 1.0
            rest = 0.0
            first = 0.0
            second = 0.0
            for c in range(classes):
                rest += prob[c] * exp(sign * pair.factor * lift[c])
                first += prob[c] * lift[c]
                second += prob[c] * lift[c] * lift[c]
            gain = pair.factor * lift[y] - sign * log(rest)
            pair.credit = (a * gain + pair.credit) / (1.0 + a)
            pair.square = (a * gain * gain + pair.square) / (1.0 + a)
            pair.credit_weight = (a + pair.credit_weight) / (1.0 + a)
            if tempered and p < self.limit:
                pair.certainty += w * (second - first * first)
                pair.factor = min(max(pair.factor + w * (lift[y] - first) / pair.certainty, 0.0), 1.0)

    cdef void absorb(self, int y, double w) noexcept nogil:
        """Count the label in the instance's cells; edges are due after 1, 2, 4, ... times the trial's occurrences."""
        cdef int p
        cdef int64_t trials
        cdef double* first
        for p in range(2 * self.limit):
            if self.cell[p] < 0:
                continue
            first = self.count + <Py_ssize_t> p * ROWS * self.wide + y
            first[self.cell[p] * self.wide] += w
            first[(CELLS + self.cell[p] // BINS) * self.wide] += w
            first[(CELLS + BINS + self.cell[p] % BINS) * self.wide] += w
            first[(CELLS + 2 * BINS) * self.wide] += w
            self.pair[p].seen += 1
            trials = self.pair[p].seen // TRIAL
            self.pair[p].stale = trials > 0 and self.pair[p].seen % TRIAL == 0 and (trials & (trials - 1)) == 0

    # ---------------------------------------------------------------- coming and going

    cdef double worth(self, int p) noexcept nogil:
        """Return the mean gain of log likelihood by a pair's vote, minus its standard error; 0 without votes."""
        cdef Pair* pair = &self.pair[p]
        cdef double mean, rounds
        if pair.credit_weight == 0.0:
            return 0.0
        mean = pair.credit / pair.credit_weight
        rounds = min(<double> pair.seen, 2.0 / self.alpha)    # an average with rate alpha holds about 2 / alpha votes
        return mean - sqrt(max(pair.square / pair.credit_weight - mean * mean, 0.0) / rounds)

    cdef void decide(self) noexcept nogil:
        """Replace the worst voting pair by a better pair whose trial is over; otherwise drop the latter.

        Voting pairs that have cost log likelihood are dropped, and trials that have at half time.
        """
        cdef int p, q, least
        for p in range(self.limit):
            if self.cell[p] >= 0 and self.pair[p].seen % TRIAL == 0 and self.pair[p].credit < -TIE:
                self.clear(p)
        for p in range(self.limit, 2 * self.limit):
            if self.cell[p] >= 0 and 2 * self.pair[p].seen == TRIAL and self.pair[p].credit < -TIE:
                self.clear(p)
            if self.cell[p] < 0 or self.pair[p].seen < TRIAL:
                continue
            least = 0
            for q in range(1, self.limit):
                if self.worth(q) < self.worth(least) - TIE:
                    least = q
            if self.worth(p) > max(self.worth(least), 0.0) + TIE:
                self.move(least, p)
            self.clear(p)

    cdef void move(self, int place, int p) noexcept nogil:
        """Copy pair p to another place."""
        self.pair[place] = self.pair[p]
        self.cell[place] = -1
        memcpy(self.count + <Py_ssize_t> place * ROWS * self.wide, self.count + <Py_ssize_t> p * ROWS * self.wide,
               ROWS * self.wide * sizeof(double))

    cdef void clear(self, int p) noexcept nogil:
        """Clear a place."""
        memset(&self.pair[p], 0, sizeof(Pair))
        self.cell[p] = -1
        if self.wide:
            memset(self.count + <Py_ssize_t> p * ROWS * self.wide, 0, ROWS * self.wide * sizeof(double))

    cdef void leave(self, int32_t slot) noexcept nogil:
        """Drop the pairs of a vanished feature."""
        cdef int p
        for p in range(2 * self.limit):
            if self.pair[p].a == slot or self.pair[p].b == slot:
                self.clear(p)

    cdef void share_out(self, int p, double* share_a, double* share_b) noexcept nogil:
        """Redistribute the counts to new edges in proportion to the overlap of the bins, given by overlap_shares().

        Old cell (i, j) goes to new cell (k, m) by the product of both shares; the last row, all, does not change.
        """
        cdef double* old = self.count + <Py_ssize_t> p * ROWS * self.wide
        cdef int i, j, k, m, c, wide = self.wide
        cdef double part
        memset(self.moved, 0, ROWS * wide * sizeof(double))
        for i in range(BINS):
            for k in range(BINS):
                for c in range(wide):
                    self.moved[(CELLS + k) * wide + c] += share_a[i * BINS + k] * old[(CELLS + i) * wide + c]
                    self.moved[(CELLS + BINS + k) * wide + c] += share_b[i * BINS + k] * old[(CELLS + BINS + i) * wide + c]
                for j in range(BINS):
                    for m in range(BINS):
                        part = share_a[i * BINS + k] * share_b[j * BINS + m]
                        for c in range(wide):
                            self.moved[(k * BINS + m) * wide + c] += part * old[(i * BINS + j) * wide + c]
        memcpy(old, self.moved, (ROWS - 1) * wide * sizeof(double))

    cdef int vacancy(self) noexcept nogil:
        """Return a free place for a trial, -1 if there is none."""
        cdef int p
        for p in range(self.limit, 2 * self.limit):
            if self.pair[p].a == 0:
                return p
        return -1

    cdef bint known(self, int32_t a, int32_t b) noexcept nogil:
        """Return whether the two features vote or are on trial as a pair."""
        cdef int p
        for p in range(2 * self.limit):
            if self.pair[p].a == a and self.pair[p].b == b:
                return True
        return False

    # ---------------------------------------------------------------- keeping

    def voting(self):
        """Return the slots of every voting pair and the mean gain of its vote, in nats."""
        cdef int p
        return {(self.pair[p].a, self.pair[p].b): self.pair[p].credit / self.pair[p].credit_weight
                for p in range(self.limit) if self.pair[p].a}

    def dump(self, int classes):
        """Return the state as a dict of arrays, with the counts in the layout of the forests."""
        cdef int p, k, wide = canonical_width(classes)
        table = np.zeros((2 * self.limit, 3), dtype=np.int64)
        real = np.zeros((2 * self.limit, 5 + 2 * (BINS - 1)))
        count = np.zeros((2 * self.limit, ROWS, wide))
        cdef double[:, :, ::1] counts = count
        for p in range(2 * self.limit):
            table[p] = self.pair[p].a, self.pair[p].b, self.pair[p].seen
            real[p, :5] = (self.pair[p].credit, self.pair[p].square, self.pair[p].credit_weight, self.pair[p].factor,
                           self.pair[p].certainty)
            for k in range(BINS - 1):
                real[p, 5 + k] = self.pair[p].edge[0][k]
                real[p, 5 + BINS - 1 + k] = self.pair[p].edge[1][k]
        for p in range(2 * self.limit if wide else 0):
            for k in range(ROWS):
                memcpy(&counts[p, k, 0], self.count + (p * ROWS + k) * self.wide, wide * sizeof(double))
        return {"pairs": table, "pair_numbers": real, "pair_counts": count}

    def fill(self, dict arrays, int wide, numeric):
        """Restore the result of dump() for `wide` classes; `numeric` marks whether a slot is numeric with a forest."""
        cdef int p, k
        cdef const double[:, :, ::1] counts
        table = checked_array(arrays, "pairs", "i", (2 * self.limit, 3), 0, 1 << 53)
        real = checked_array(arrays, "pair_numbers", "f", (2 * self.limit, 5 + 2 * (BINS - 1)))
        count = checked_array(arrays, "pair_counts", "f", (2 * self.limit, ROWS, wide), 0)
        for a, b, seen in table.tolist():
            if (a or b or seen) and not (0 < a < b and numeric(a) and numeric(b)):
                raise ValueError(f"pairs holds {a} and {b}, which are no pair of numbers")
        if (real[:, 1:5] < 0.0).any() or (real[table[:, 0] > 0][:, 4] <= 0.0).any():
            raise ValueError("pair_numbers holds numbers below zero")
        for p in range(2 * self.limit):
            self.pair[p].a, self.pair[p].b, self.pair[p].seen = table[p].tolist()
            (self.pair[p].credit, self.pair[p].square, self.pair[p].credit_weight, self.pair[p].factor,
             self.pair[p].certainty) = real[p, :5].tolist()
            for k in range(BINS - 1):
                self.pair[p].edge[0][k] = real[p, 5 + k]
                self.pair[p].edge[1][k] = real[p, 5 + BINS - 1 + k]
        counts = count
        for p in range(2 * self.limit if wide else 0):
            for k in range(ROWS):
                memcpy(self.count + (p * ROWS + k) * self.wide, &counts[p, k, 0], wide * sizeof(double))

    def nbytes(self):
        """Return the number of bytes held."""
        return (2 * self.limit * (sizeof(Pair) + sizeof(int) + (ROWS + 1) * self.wide * sizeof(double))
                + (ROWS + 2) * self.wide * sizeof(double))

"""The forests of ORF3V: stumps on single features, read off class-wise t-digests and renewed as those grow."""

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove, memset

from varifold.forest._tdigest cimport Digest, digest_add, digest_at, digest_below, digest_flush, digest_sums
from varifold.forest._feature_state cimport Unit, Units

cdef double TIE = 1e-12


cdef inline uint64_t scramble(uint64_t z) noexcept nogil:
    """splitmix64: one step and its finaliser."""
    z += <uint64_t> 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline double chance(uint64_t seed, int64_t step, int64_t slot, int64_t k) noexcept nogil:
    """A number in [0, 1) that depends on its four arguments alone."""
    cdef uint64_t z = scramble(seed)
    z = scramble(z ^ <uint64_t> step)
    z = scramble(z ^ <uint64_t> slot)
    z = scramble(z ^ <uint64_t> k)
    return <double> (z >> 11) * (1.0 / 9007199254740992.0)


cdef double* larger(double* scratch, Py_ssize_t n) except NULL:
    """Scratch of n numbers in place of a smaller one, which stays if there is no memory."""
    cdef double* got = <double*> realloc(scratch, n * sizeof(double))
    if got == NULL:
        raise MemoryError
    return got


cdef class Stumps(Units):
    """A row is a forest's answer between two edges: the class it favours, then a vote for every class."""

    def __dealloc__(self):
        free(self.sums)
        free(self.below)
        free(self.mix)

    cdef int widen(self, int wide) except -1:
        self.below = larger(self.below, self.stumps * wide)
        self.mix = larger(self.mix, wide)
        Units.widen(self, wide)
        free(self.sums)
        self.sums = NULL
        self.sums_room = 0
        return 0

    # ---------------------------------------------------------------- learning a value

    cdef void learn_level(self, int32_t s, int32_t u, int y, double w, int64_t t) noexcept nogil:
        """A stump with a branch for every level of the column: weights by class, counted."""
        cdef double* level
        cdef double sum = 0.0
        cdef int c
        if not self.see(u, t) or (self.unit[s].level == NULL and not self.link(s, u)):
            return
        self.unit[u].texts += 1
        level = self.unit[s].level
        level[y] += w
        for c in range(self.classes):
            sum += level[c]
        for c in range(self.classes):
            self.mix[c] = (level[c] + self.smoothing * self.mass[c] / self.total) / (sum + self.smoothing)
        self.fill_row(level + self.wide, self.mix)

    cdef void learn_number(self, int32_t u, double x, int y, double w, int64_t t) noexcept nogil:
        cdef Unit* unit = &self.unit[u]
        if not self.see(u, t):
            return
        if unit.digest == NULL:
            unit.digest = <Digest*> self.grab(self.wide, sizeof(Digest))
            if unit.digest == NULL:
                return
        if not digest_add(&unit.digest[y], x, w, self.compression):
            self.space.starved = True
            return
        unit.numbers += 1
        if unit.forest == NULL:
            if unit.numbers >= self.grace:
                self.renew(u, t)
        elif unit.numbers - unit.refreshed >= min(self.r, <int64_t> (self.growth * unit.numbers)):
            self.renew(u, t)

    # ---------------------------------------------------------------- the forest

    cdef void renew(self, int32_t u, int64_t t) noexcept nogil:
        """A new forest, or one stump replaced; every side distribution is read off the digests again."""
        cdef Unit* unit = &self.unit[u]
        cdef int j, J = self.stumps
        if not self.ready(unit):
            return
        if unit.forest == NULL:
            unit.forest = <double*> self.grab(2 * J + (J + 1) * (1 + self.wide), sizeof(double))
            if unit.forest == NULL:
                return
            for j in range(J):
                self.insert_edge(unit, j, self.best_edge(u, t))
        else:
            self.drop_edge(u, t)
            self.insert_edge(unit, J - 1, self.best_edge(u, t))
        self.answer_rows(unit)
        unit.refreshed = unit.numbers

    cdef bint ready(self, Unit* unit) noexcept nogil:
        """Flush the unit's digests and add up their centroids. False: no memory."""
        cdef int c
        cdef Py_ssize_t room = 1
        for c in range(self.classes):
            digest_flush(&unit.digest[c], self.compression)
            room = max(room, unit.digest[c].n + 1)
        if room > self.sums_room:
            free(self.sums)
            self.sums = <double*> self.grab(2 * room * self.wide, sizeof(double))
            self.sums_room = 2 * room if self.sums != NULL else 0
            if self.sums == NULL:
                return False
        for c in range(self.classes):
            digest_sums(&unit.digest[c], self.sums + c * self.sums_room)
        return True

    cdef double candidate(self, Unit* unit, double u) noexcept nogil:
        """A threshold from a number in [0, 1): of the range, or of the values seen whatever their class."""
        cdef int c
        cdef double lo = 1e300, hi = -1e300, sum = 0.0
        cdef Digest* d
        for c in range(self.classes):
            d = &unit.digest[c]
            if d.n:
                lo = min(lo, d.lo)
                hi = max(hi, d.hi)
                sum += d.total
        if not self.quantiles:
            return lo + u * (hi - lo)
        u *= sum
        for c in range(self.classes):
            d = &unit.digest[c]
            if d.n and u < d.total:
                return digest_at(d, u)
            u -= d.total
        return hi

    cdef double impurity(self, Unit* unit, double edge) noexcept nogil:
        """Eq. 2: Gini impurity of both sides, by their weight."""
        cdef int c
        cdef double b, a, below = 0.0, above = 0.0, pure_below = 0.0, pure_above = 0.0
        for c in range(self.classes):
            b = digest_below(&unit.digest[c], self.sums + c * self.sums_room, edge)
            a = max(unit.digest[c].total - b, 0.0)
            below += b
            above += a
            pure_below += b * b
            pure_above += a * a
        b = pure_below / below if below > 0.0 else 0.0
        a = pure_above / above if above > 0.0 else 0.0
        return 1.0 - (b + a) / (below + above)

    cdef double best_edge(self, int32_t u, int64_t t) noexcept nogil:
        """The purest of K random thresholds."""
        cdef Unit* unit = &self.unit[u]
        cdef int k
        cdef double edge, found, best = 0.0, lowest = 2.0
        for k in range(self.candidates):
            edge = self.candidate(unit, chance(self.seed, t, u, unit.serial * self.candidates + k))
            found = self.impurity(unit, edge)
            if found < lowest - TIE:
                lowest = found
                best = edge
        return best

    cdef void insert_edge(self, Unit* unit, int held, double edge) noexcept nogil:
        """Put a threshold among `held` others, behind its equals."""
        cdef double* edges = unit.forest
        cdef double* serial = edges + self.stumps
        cdef int j = held
        while j > 0 and edges[j - 1] > edge:
            edges[j] = edges[j - 1]
            serial[j] = serial[j - 1]
            j -= 1
        edges[j] = edge
        serial[j] = <double> unit.serial
        unit.serial += 1

    cdef void drop_edge(self, int32_t u, int64_t t) noexcept nogil:
        """Take the oldest stump out, or a random one."""
        cdef Unit* unit = &self.unit[u]
        cdef double* edges = unit.forest
        cdef double* serial = edges + self.stumps
        cdef int j, out = 0
        if self.random_out:
            out = <int> (chance(self.seed, t, u, -1) * self.stumps)
        else:
            for j in range(1, self.stumps):
                if serial[j] < serial[out]:
                    out = j
        memmove(edges + out, edges + out + 1, (self.stumps - 1 - out) * sizeof(double))
        memmove(serial + out, serial + out + 1, (self.stumps - 1 - out) * sizeof(double))

    cdef void answer_rows(self, Unit* unit) noexcept nogil:
        """Eq. 6 for every stump, then their mean between any two edges, walking from the left."""
        cdef int c, j, J = self.stumps, k = self.classes
        cdef double* row = unit.forest + 2 * J
        cdef double a = self.smoothing, all = 0.0, below, b, prior
        memset(self.mix, 0, k * sizeof(double))
        for c in range(k):
            all += unit.digest[c].total
        for j in range(J):
            below = 0.0
            for c in range(k):
                b = digest_below(&unit.digest[c], self.sums + c * self.sums_room, unit.forest[j])
                self.below[j * k + c] = b
                below += b
            for c in range(k):
                prior = self.mass[c] / self.total
                b = self.below[j * k + c]
                self.mix[c] += (b + a * prior) / (below + a) / J
                self.below[j * k + c] = (
                    (max(unit.digest[c].total - b, 0.0) + a * prior) / (max(all - below, 0.0) + a)
                    - (b + a * prior) / (below + a)
                ) / J
        for j in range(J + 1):
            self.fill_row(row, self.mix)
            row += 1 + self.wide
            if j < J:
                for c in range(k):
                    self.mix[c] += self.below[j * k + c]

    cdef void fill_row(self, double* row, double* share) noexcept nogil:
        """A row from a distribution over the classes."""
        cdef int c, best = 0
        for c in range(self.classes):
            if share[c] > share[best] + TIE:
                best = c
            row[1 + c] = share[c] if self.paper_vote else log(max(share[c], TIE) * self.total / self.mass[c])
        row[0] = best


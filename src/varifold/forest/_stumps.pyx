"""Forests of ORF3V: stumps per feature, computed from class-wise t-digests and updated as those grow."""

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove, memset

from varifold._numeric.hashing cimport draw, mix, unit_interval
from varifold._numeric.memory cimport out_of_memory, resize
from varifold.forest._feature_files cimport SavedFeatureStates
from varifold.forest._feature_state cimport FeatureState, FeatureStates
from varifold.forest._pool cimport pool_take
from varifold.forest._tdigest cimport (
    FIRST_CAPACITY, Digest, Point, digest_add, digest_at, digest_below, digest_flush, digest_sums,
)

cdef double TIE = 1e-12


cdef inline double chance(uint64_t seed, int64_t step, int64_t slot, int64_t k) noexcept nogil:
    """Return a number in [0, 1) that depends on the four arguments only."""
    return unit_interval(mix(draw(seed, <uint64_t> step, <uint64_t> slot) ^ <uint64_t> k))


cdef class Stumps(SavedFeatureStates):
    """Maintain stumps. A row is a forest's vote between two edges: its favoured class, then a vote for every class."""

    def __dealloc__(self):
        free(self.sums)

    # ---------------------------------------------------------------- memory

    cdef int reserve_scratch(self, Py_ssize_t points, int wide) except -1 nogil:
        """Reserve scratch memory for digests of up to `points` points in each of `wide` classes."""
        if resize(<void**> &self.sums, (points + 1) * wide * sizeof(double)) < 0:
            return out_of_memory()
        return 0

    cdef int widen(self, int wide) except -1:
        self.reserve_scratch(self.sums_capacity, wide)
        return FeatureStates.widen(self, wide)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        FeatureStates.prepare(self, slots, n, n_new, y)
        if self.largest + 1 > self.sums_capacity:
            self.reserve_scratch(2 * self.largest, self.wide)
            self.sums_capacity = 2 * self.largest
        return 0

    # ---------------------------------------------------------------- learning a value

    cdef void learn_level(self, int32_t s, int32_t u, int y, double w, int64_t t) noexcept nogil:
        """Count the label in one branch of the column's stump, which has one branch per level."""
        cdef double* level
        cdef double sum = 0.0
        cdef int c
        self.see(u, t)
        if self.states[s].level == NULL:
            self.link(s, u)
        self.states[u].texts += 1
        if self.rule.by_gap and self.states[u].texts % self.rule.window == 0:
            self.prune_levels(u, s, t)
        level = self.states[s].level
        level[y] += w
        for c in range(self.classes):
            sum += level[c]
        for c in range(self.classes):
            self.mix[c] = (level[c] + self.smoothing * self.mass[c] / self.total) / (sum + self.smoothing)
        self.fill_row(level + self.wide, self.mix)

    cdef void learn_number(self, int32_t u, double x, int y, double w, int64_t t) noexcept nogil:
        """Add a value to the digest of its class; build the forest after `grace` values, update it when due."""
        cdef FeatureState* state = &self.states[u]
        self.see(u, t)
        if state.digest == NULL:
            state.digest = <Digest*> pool_take(&self.digests)
        if state.digest[y].capacity == 0:
            state.digest[y].point = <Point*> pool_take(&self.points)
            state.digest[y].capacity = FIRST_CAPACITY
        digest_add(&state.digest[y], x, w, self.compression)
        state.numbers += 1
        if state.forest == NULL:
            if state.numbers >= self.grace:
                self.renew(u, t)
        elif self.by_rounds:
            return
        elif state.numbers - state.refreshed >= min(self.r, <int64_t> (self.growth * state.numbers)):
            self.renew(u, t)

    # ---------------------------------------------------------------- the forest

    cdef void renew(self, int32_t u, int64_t t) noexcept nogil:
        """Build a forest, or replace one stump; recompute the distribution of every side from the digests."""
        cdef FeatureState* state = &self.states[u]
        cdef int j, J = self.stumps
        self.add_up(state)
        if state.forest == NULL:
            state.forest = <double*> pool_take(&self.forests)
            for j in range(J):
                self.insert_edge(state, j, self.best_edge(u, t))
        else:
            self.drop_edge(u, t)
            self.insert_edge(state, J - 1, self.best_edge(u, t))
        self.fill_rows(state)
        state.refreshed = state.numbers

    cdef void renew_all(self, int64_t t) noexcept nogil:
        """Update every forest that has seen values since its last update (lines 11 and 12 of Algorithm 1)."""
        cdef Py_ssize_t u
        for u in range(1, self.space.size):
            if self.states[u].forest != NULL and self.states[u].numbers > self.states[u].refreshed:
                self.renew(<int32_t> u, t)

    cdef void add_up(self, FeatureState* state) noexcept nogil:
        """Flush the feature's digests and sum the weights of their centroids."""
        cdef int c
        for c in range(self.classes):
            digest_flush(&state.digest[c], self.compression)
            digest_sums(&state.digest[c], self.sums + c * self.sums_capacity)

    cdef double candidate(self, FeatureState* state, double u) noexcept nogil:
        """Map a number in [0, 1) to a threshold: within the range, or a quantile over all classes."""
        cdef int c
        cdef double lo = 1e300, hi = -1e300, sum = 0.0
        cdef Digest* d
        for c in range(self.classes):
            d = &state.digest[c]
            if d.n:
                lo = min(lo, d.lo)
                hi = max(hi, d.hi)
                sum += d.total
        if not self.quantiles:
            return lo + u * (hi - lo)
        u *= sum
        for c in range(self.classes):
            d = &state.digest[c]
            if d.n and u < d.total:
                return digest_at(d, u)
            u -= d.total
        return hi

    cdef double impurity(self, FeatureState* state, double edge) noexcept nogil:
        """Return the Gini impurity of both sides, weighted by their weights (eq. 2)."""
        cdef int c
        cdef double b, a, below = 0.0, above = 0.0, pure_below = 0.0, pure_above = 0.0
        for c in range(self.classes):
            b = digest_below(&state.digest[c], self.sums + c * self.sums_capacity, edge)
            a = max(state.digest[c].total - b, 0.0)
            below += b
            above += a
            pure_below += b * b
            pure_above += a * a
        b = pure_below / below if below > 0.0 else 0.0
        a = pure_above / above if above > 0.0 else 0.0
        return 1.0 - (b + a) / (below + above)

    cdef double best_edge(self, int32_t u, int64_t t) noexcept nogil:
        """Return the purest of K random thresholds."""
        cdef FeatureState* state = &self.states[u]
        cdef int k
        cdef double edge, found, best = 0.0, lowest = 2.0
        for k in range(self.candidates):
            edge = self.candidate(state, chance(self.seed, t, u, state.serial * self.candidates + k))
            found = self.impurity(state, edge)
            if found < lowest - TIE:
                lowest = found
                best = edge
        return best

    cdef void insert_edge(self, FeatureState* state, int held, double edge) noexcept nogil:
        """Insert a threshold into `held` others, after its ties."""
        cdef double* edges = state.forest
        cdef double* serial = edges + self.stumps
        cdef int j = held
        while j > 0 and edges[j - 1] > edge:
            edges[j] = edges[j - 1]
            serial[j] = serial[j - 1]
            j -= 1
        edges[j] = edge
        serial[j] = <double> state.serial
        state.serial += 1

    cdef void drop_edge(self, int32_t u, int64_t t) noexcept nogil:
        """Remove the oldest stump, a random one, or the one with the highest impurity."""
        cdef FeatureState* state = &self.states[u]
        cdef double* edges = state.forest
        cdef double* serial = edges + self.stumps
        cdef int j, out = 0
        if self.random_out:
            out = <int> (chance(self.seed, t, u, -1) * self.stumps)
        elif self.worst_out:
            out = self.worst(state)
        else:
            for j in range(1, self.stumps):
                if serial[j] < serial[out]:
                    out = j
        memmove(edges + out, edges + out + 1, (self.stumps - 1 - out) * sizeof(double))
        memmove(serial + out, serial + out + 1, (self.stumps - 1 - out) * sizeof(double))

    cdef int worst(self, FeatureState* state) noexcept nogil:
        """Return the stump with the highest impurity (eq. 2); of equal ones the oldest."""
        cdef double* serial = state.forest + self.stumps
        cdef int j, out = 0
        cdef double found, highest = -1.0
        for j in range(self.stumps):
            found = self.impurity(state, state.forest[j])
            if found > highest + TIE or (found > highest - TIE and serial[j] < serial[out]):
                highest = found
                out = j
        return out

    cdef void fill_rows(self, FeatureState* state) noexcept nogil:
        """Compute the side distributions of every stump (eq. 6), then their mean between adjacent edges.

        An empty side has the class prior.
        """
        cdef int c, j, J = self.stumps, k = self.classes
        cdef double* row = state.forest + 2 * J
        cdef double a = self.smoothing, all = 0.0, above, below, b, prior, share_above, share_below
        memset(self.mix, 0, k * sizeof(double))
        for c in range(k):
            all += state.digest[c].total
        for j in range(J):
            below = 0.0
            for c in range(k):
                b = digest_below(&state.digest[c], self.sums + c * self.sums_capacity, state.forest[j])
                self.below[j * k + c] = b
                below += b
            above = max(all - below, 0.0)
            for c in range(k):
                prior = self.mass[c] / self.total
                b = self.below[j * k + c]
                share_below = (b + a * prior) / (below + a) if below + a > 0.0 else prior
                share_above = prior
                if above + a > 0.0:
                    share_above = (max(state.digest[c].total - b, 0.0) + a * prior) / (above + a)
                self.mix[c] += share_below / J
                self.below[j * k + c] = (share_above - share_below) / J
        for j in range(J + 1):
            self.fill_row(row, self.mix)
            row += 1 + self.wide
            if j < J:
                for c in range(k):
                    self.mix[c] += self.below[j * k + c]

    cdef void fill_row(self, double* row, double* share) noexcept nogil:
        """Fill a row from a distribution over the classes."""
        cdef int c, best = 0
        for c in range(self.classes):
            if share[c] > share[best] + TIE:
                best = c
            row[1 + c] = share[c] if self.paper_vote else log(max(share[c], TIE) * self.total / self.mass[c])
        row[0] = best


"""ORF3V: per feature a forest of stumps built from class-wise t-digests, and the weighted vote of those present."""

import numpy as np

from libc.math cimport exp, log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove, memset

from varifold._core.model cimport Model
from varifold._core.names cimport INDICATOR
from varifold._core.tdigest cimport Digest, digest_add, digest_at, digest_below, digest_flush, digest_sums
from varifold._core.units cimport Unit, Units, grab
from varifold._core.view cimport View

cdef double TIE = 1e-12    # differences below it are rounding


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


cdef class ORF3VModel(Units):
    """A row is a forest's answer between two edges: the class it favours, then a vote for every class."""

    def __cinit__(self, int stumps, int candidates, int grace, int64_t r, double growth, double alpha,
                  int64_t window, double delta, str prune, str replace, str thresholds, double compression,
                  double smoothing, str vote, bint tempered, uint64_t seed):
        self.stumps = stumps
        self.candidates = candidates
        self.grace = grace
        self.r = r
        self.growth = growth
        self.alpha = alpha
        self.compression = compression
        self.smoothing = smoothing
        self.seed = seed
        self.paper_vote = vote == "paper"
        self.tempered = tempered and not self.paper_vote
        self.quantiles = thresholds == "quantile"
        self.random_out = replace == "random"
        self.rule.window = window
        self.rule.words = (window + 63) // 64
        self.rule.log_delta = log(delta)
        self.rule.epsilon = (-log(delta) / (2.0 * window)) ** 0.5
        self.rule.by_bound = prune in ("hoeffding", "hoeffding+gap")
        self.rule.by_gap = prune in ("gap", "hoeffding+gap")
        self.temper = 1.0
        self.certainty = 1.0
        self.sees_empty = True

    def __dealloc__(self):
        free(self.sums)
        free(self.below)
        free(self.mix)
        free(self.evidence)

    cdef int widen(self, int wide) except -1:
        Units.widen(self, wide)
        free(self.below)
        free(self.mix)
        free(self.evidence)
        free(self.sums)
        self.below = <double*> grab(self.stumps * wide, sizeof(double))
        self.mix = <double*> grab(wide, sizeof(double))
        self.evidence = <double*> grab(wide, sizeof(double))
        self.sums = NULL
        self.sums_room = 0
        return 0

    # ---------------------------------------------------------------- the vote

    cdef double* voting_row(self, View* v, Py_ssize_t i, Unit** owner) noexcept nogil:
        """The row that answers entry i, NULL when it has no forest yet; its unit goes to `owner`."""
        cdef int32_t s = v.slot[i]
        cdef Unit* unit = &self.unit[s]
        cdef int low = 0, high = self.stumps, middle
        cdef double* edge
        owner[0] = unit
        if s == 0:
            return NULL
        if self.space.kind[s] & INDICATOR:
            owner[0] = &self.unit[self.space.column[s]]
            return unit.level + self.wide if unit.level != NULL and owner[0].texts >= self.grace else NULL
        edge = unit.forest
        if edge == NULL:
            return NULL
        while low < high:
            middle = (low + high) >> 1
            if edge[middle] <= v.raw[i]:
                low = middle + 1
            else:
                high = middle
        return edge + 2 * self.stumps + low * (1 + self.wide)

    cdef bint weigh(self, View* v, double* out) noexcept nogil:
        """Sum of weighted votes by class; whether there was any."""
        cdef Py_ssize_t i
        cdef int c
        cdef bint voted = False
        cdef double* row
        cdef Unit* unit
        memset(out, 0, self.classes * sizeof(double))
        for i in range(v.n):
            row = self.voting_row(v, i, &unit)
            if row == NULL:
                continue
            voted = True
            for c in range(self.classes):
                out[c] += unit.weight * row[1 + c]
        return voted

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        cdef bint voted = self.weigh(v, out)
        for c in range(self.classes):
            if not self.paper_vote:
                out[c] = log(self.mass[c] / self.total) + self.temper * out[c]
            elif not voted:
                out[c] = self.mass[c] / self.total

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        cdef int c
        cdef double sum = 0.0
        if not self.paper_vote:
            Model.proba(self, scores, out)
            return
        for c in range(self.classes):
            sum += scores[c]
        for c in range(self.classes):
            out[c] = scores[c] / sum

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double* row
        cdef Unit* unit
        cdef bint voted = False
        for i in range(v.n):
            row = self.voting_row(v, i, &unit)
            out[i] = 0.0
            if row != NULL:
                voted = True
                out[i] = unit.weight * row[1 + label] * (1.0 if self.paper_vote else self.temper)
        if v.n and v.slot[0] == 0:
            if not self.paper_vote:
                out[0] = log(self.mass[label] / self.total)
            elif not voted:
                out[0] = self.mass[label] / self.total

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef Unit* unit = &self.unit[slot]
        if unit.level != NULL:
            unit = &self.unit[self.space.column[slot]]
            return unit.weight if unit.texts >= self.grace else 0.0
        return unit.weight if unit.forest != NULL else 0.0

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int64_t t = v.step + 1
        cdef Py_ssize_t i
        cdef int32_t s
        if self.total > 0.0:
            self.judge(v, y, w)
        self.mass[y] += w
        self.total += w
        for i in range(v.n):
            s = v.slot[i]
            if s == 0:
                continue
            if self.space.kind[s] & INDICATOR:
                self.learn_level(s, self.space.column[s], y, w, t)
            else:
                self.learn_number(s, v.raw[i], y, w, t)
        self.prune(t)

    cdef void judge(self, View* v, int y, double w) noexcept nogil:
        """Eq. 8: a forest's weight follows how often its own vote is right. The temper follows the log loss."""
        cdef Py_ssize_t i
        cdef double* row
        cdef Unit* unit
        cdef double a = self.alpha * w
        cdef int c
        cdef bint voted = False
        memset(self.evidence, 0, self.classes * sizeof(double))
        for i in range(v.n):
            row = self.voting_row(v, i, &unit)
            if row == NULL:
                continue
            voted = True
            for c in range(self.classes):
                self.evidence[c] += unit.weight * row[1 + c]
            unit.weight = ((2.0 * a if <int> row[0] == y else 0.0) + unit.weight) / (1.0 + a)
        if self.tempered and voted and self.mass[y] > 0.0:
            self.adjust(y, w)

    cdef void adjust(self, int y, double w) noexcept nogil:
        """One Newton step of the log loss in the factor on the evidence."""
        cdef int c
        cdef double top = -1e300, sum = 0.0, first = 0.0, second = 0.0, p
        for c in range(self.classes):
            if self.mass[c] > 0.0:
                self.mix[c] = log(self.mass[c] / self.total) + self.temper * self.evidence[c]
                top = max(top, self.mix[c])
        for c in range(self.classes):
            self.mix[c] = exp(self.mix[c] - top) if self.mass[c] > 0.0 else 0.0
            sum += self.mix[c]
        for c in range(self.classes):
            p = self.mix[c] / sum
            first += p * self.evidence[c]
            second += p * self.evidence[c] * self.evidence[c]
        self.certainty += w * (second - first * first)
        self.temper += w * (self.evidence[y] - first) / self.certainty
        self.temper = min(max(self.temper, 0.01), 2.0)

    cdef void learn_level(self, int32_t s, int32_t u, int y, double w, int64_t t) noexcept nogil:
        """A stump with a branch for every level of the column: weights by class, counted."""
        cdef double* level
        cdef double sum = 0.0
        cdef int c
        self.see(u, t)
        self.unit[u].texts += 1
        if self.unit[s].level == NULL:
            self.link(s, u)
        level = self.unit[s].level
        level[y] += w
        for c in range(self.classes):
            sum += level[c]
        for c in range(self.classes):
            self.mix[c] = (level[c] + self.smoothing * self.mass[c] / self.total) / (sum + self.smoothing)
        self.fill_row(level + self.wide, self.mix)

    cdef void learn_number(self, int32_t u, double x, int y, double w, int64_t t) noexcept nogil:
        cdef Unit* unit = &self.unit[u]
        self.see(u, t)
        if unit.digest == NULL:
            unit.digest = <Digest*> grab(self.wide, sizeof(Digest))
        digest_add(&unit.digest[y], x, w, self.compression)
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
        self.ready(unit)
        if unit.forest == NULL:
            unit.forest = <double*> grab(2 * J + (J + 1) * (1 + self.wide), sizeof(double))
            for j in range(J):
                self.insert_edge(unit, j, self.best_edge(u, t))
        else:
            self.drop_edge(u, t)
            self.insert_edge(unit, J - 1, self.best_edge(u, t))
        self.answer_rows(unit)
        unit.refreshed = unit.numbers

    cdef void ready(self, Unit* unit) noexcept nogil:
        """Flush the unit's digests and add up their centroids."""
        cdef int c
        cdef Py_ssize_t room = 1
        for c in range(self.classes):
            digest_flush(&unit.digest[c], self.compression)
            room = max(room, unit.digest[c].n + 1)
        if room > self.sums_room:
            free(self.sums)
            self.sums_room = 2 * room
            self.sums = <double*> grab(self.sums_room * self.wide, sizeof(double))
        for c in range(self.classes):
            digest_sums(&unit.digest[c], self.sums + c * self.sums_room)

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

    # ---------------------------------------------------------------- looking inside

    def role(self, Py_ssize_t slot):
        cdef Unit* unit = &self.unit[slot]
        if unit.level != NULL:
            return "level" if self.unit[self.space.column[slot]].texts >= self.grace else "waiting"
        if unit.forest != NULL:
            return "forest"
        return "waiting" if unit.presence.count else "pruned"

    def unit_weights(self):
        """Weight by slot of every unit that votes: numbers by their own slot, levels by their column's."""
        cdef Py_ssize_t u
        return {u: self.unit[u].weight for u in range(1, self.capacity)
                if self.unit[u].forest != NULL or self.unit[u].texts >= self.grace}

    def portrait(self, Py_ssize_t slot):
        """(thresholds, by class the digest's values, weights and whether they are points) of a number's slot."""
        cdef Unit* unit = &self.unit[slot]
        cdef int c, j
        cdef Py_ssize_t i
        cdef Digest* d
        if unit.digest == NULL:
            return None
        edges = np.array([unit.forest[j] for j in range(self.stumps)] if unit.forest != NULL else [])
        classes = []
        for c in range(self.classes):
            d = &unit.digest[c]
            points = np.array([(d.point[i].at, d.point[i].mass) for i in range(d.n + d.held)]).reshape(-1, 2)
            points = points[np.argsort(points[:, 0], kind="stable")]
            classes.append((points[:, 0], np.abs(points[:, 1]), points[:, 1] > 0.0))
        return edges, classes

    def notes(self):
        if self.pruned:
            return [f"{self.pruned:,} features vanished and were given up; they start anew when they return"]
        return []

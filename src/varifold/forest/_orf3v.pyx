"""ORF3V: the weighted vote of the forests present, and what each of them has been worth."""

import numpy as np

from libc.math cimport INFINITY, exp, log, nextafter
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from varifold._numeric.hashing cimport draw
from varifold._engine.model cimport Model
from varifold._engine.names cimport INDICATOR, NUMERIC
from varifold.forest._pairs cimport (
    BINS, CELLS, SETTLED, START, Pair, Pairs, overlap_shares, position, quantile_edges,
)
from varifold.forest._stumps cimport TIE, Stumps, larger
from varifold.forest._tdigest cimport Digest, digest_below
from varifold.forest._feature_state cimport Unit
from varifold._engine.view cimport View


cdef class ORF3VModel(Stumps):
    """Forests that vote, are judged by their votes, and are given up when their features vanish."""

    def __cinit__(self, int stumps, int candidates, int grace, int64_t r, double growth, double alpha,
                  int64_t window, double delta, str prune, str replace, str thresholds, double compression,
                  double smoothing, str vote, bint tempered, uint64_t seed, int pairs=0):
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
        if pairs:
            self.pairs = Pairs(pairs, alpha)
            self.paired = True

    def __dealloc__(self):
        free(self.evidence)
        self.paired = False

    cdef int widen(self, int wide) except -1:
        self.evidence = larger(self.evidence, wide)
        if self.paired:
            self.pairs.widen(wide)
        Stumps.widen(self, wide)
        return 0

    cdef void clear_numbers(self, Unit* unit) noexcept nogil:
        if self.paired:
            self.pairs.leave(<int32_t> (unit - self.unit))
        Stumps.clear_numbers(self, unit)

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
        if self.paired and self.pairs.meet(v, self.classes, self.mass, self.total, False):
            for c in range(self.classes):
                out[c] += self.pairs.sum[c]

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
        if self.paired:
            self.share_out(v, label, out)

    cdef void share_out(self, View* v, int label, double* out) noexcept nogil:
        """A pair's vote goes half to each of its features."""
        cdef int p
        cdef double half
        self.pairs.meet(v, self.classes, self.mass, self.total, False)
        for p in range(self.pairs.limit):
            if self.pairs.cell[p] >= 0:
                half = self.pairs.pair[p].factor * self.pairs.lift[p * self.wide + label] / 2.0
                out[position(v, self.pairs.pair[p].a)] += half
                out[position(v, self.pairs.pair[p].b)] += half

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
        cdef bint judged = self.total > 0.0
        if judged:
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
        if self.paired and judged:
            self.pairs.absorb(y, w)
            self.pairs.decide()
            self.renew_grids()
            self.try_pair(v, t)

    cdef void renew_grids(self) noexcept nogil:
        """Move the edges of the pairs that are due to where the quantiles are by now."""
        cdef int p, k
        cdef double edge[2][BINS - 1]
        cdef double share[2][CELLS]
        cdef double old_upto[BINS - 1]
        cdef double new_upto[BINS - 1]
        cdef Pair* pair
        for p in range(self.pairs.limit):
            pair = &self.pairs.pair[p]
            if not pair.stale:
                continue
            pair.stale = False
            if not self.edges_of(pair.a, edge[0]):
                continue
            self.upto(pair.a, pair.edge[0], old_upto)
            self.upto(pair.a, edge[0], new_upto)
            overlap_shares(pair.edge[0], old_upto, edge[0], new_upto, share[0])
            if not self.edges_of(pair.b, edge[1]):
                continue
            self.upto(pair.b, pair.edge[1], old_upto)
            self.upto(pair.b, edge[1], new_upto)
            overlap_shares(pair.edge[1], old_upto, edge[1], new_upto, share[1])
            self.pairs.share_out(p, share[0], share[1])
            for k in range(BINS - 1):
                pair.edge[0][k] = edge[0][k]
                pair.edge[1][k] = edge[1][k]

    cdef void upto(self, int32_t s, double* edge, double* out) noexcept nogil:
        """Share of a number's values up to each edge; its digests were just added up."""
        cdef Unit* unit = &self.unit[s]
        cdef double total = 0.0
        cdef int c, k
        for c in range(self.classes):
            total += unit.digest[c].total
        for k in range(BINS - 1):
            out[k] = 0.0
            for c in range(self.classes):
                out[k] += digest_below(&unit.digest[c], self.sums + c * self.sums_room, nextafter(edge[k], INFINITY))
            out[k] /= total

    cdef void try_pair(self, View* v, int64_t t) noexcept nogil:
        """Put two features of the instance on trial, if a place is free: any two, or in turn two that tell more."""
        cdef int p = self.pairs.vacancy(), drawn
        cdef Py_ssize_t i, j
        cdef Pair* pair
        if p < 0 or v.n < 2:
            return
        drawn = 3 if t & 1 else 1
        i = self.drawn(v, t, 0, drawn)
        j = self.drawn(v, t, drawn, drawn)
        if v.slot[i] > v.slot[j]:
            i, j = j, i
        if i == j or not self.settled(v.slot[i]) or not self.settled(v.slot[j]):
            return
        pair = &self.pairs.pair[p]
        if self.pairs.known(v.slot[i], v.slot[j]) or not self.edges_of(v.slot[i], pair.edge[0]):
            return
        if self.edges_of(v.slot[j], pair.edge[1]):
            pair.a = v.slot[i]
            pair.b = v.slot[j]
            pair.factor = START
            pair.certainty = 1.0

    cdef Py_ssize_t drawn(self, View* v, int64_t t, int first, int times) noexcept nogil:
        """A random entry of the instance, the one that tells most of so many."""
        cdef Py_ssize_t i, best = 0
        cdef int k
        for k in range(times):
            i = <Py_ssize_t> (draw(self.seed, <uint64_t> t, first + k) % <uint64_t> v.n)
            if k == 0 or self.unit[v.slot[i]].told > self.unit[v.slot[best]].told + TIE:
                best = i
        return best

    cdef bint settled(self, int32_t s) noexcept nogil:
        """Whether a slot is a number's that is known well enough to be half of a pair."""
        return self.space.kind[s] & NUMERIC and self.unit[s].forest != NULL and self.unit[s].numbers >= SETTLED

    cdef bint edges_of(self, int32_t s, double* edge) noexcept nogil:
        return self.ready(&self.unit[s]) and quantile_edges(self.unit[s].digest, self.classes, edge)

    cdef void judge(self, View* v, int y, double w) noexcept nogil:
        """Eq. 8: a forest's weight follows how often its own vote is right. The temper follows the log loss.

        What a vote told about the label is kept beside it, for the weight alone does not tell good forests from bad
        ones: where classes are not balanced most of them favour the largest class, and are right as often as it is.
        """
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
            unit.told = (a * self.lesson(row, y) + unit.told) / (1.0 + a)
            unit.heard = (a + unit.heard) / (1.0 + a)
            unit.weight = ((2.0 * a if <int> row[0] == y else 0.0) + unit.weight) / (1.0 + a)
        if self.paired:
            self.pairs.meet(v, self.classes, self.mass, self.total, True)
        if (self.tempered or self.paired) and voted and self.mass[y] > 0.0:
            self.adjust(y, w)

    cdef double lesson(self, double* row, int y) noexcept nogil:
        """log P_i(y) / prior(y): what a forest's vote said about the label beyond the class prior."""
        if not self.paper_vote:
            return row[1 + y]
        return log(row[1 + y] * self.total / self.mass[y]) if row[1 + y] > 0.0 else 0.0

    cdef void adjust(self, int y, double w) noexcept nogil:
        """One Newton step of the log loss in the factor on the evidence, and in those on the votes of pairs."""
        cdef int c
        cdef double top = -1e300, sum = 0.0, first = 0.0, second = 0.0
        for c in range(self.classes):
            if self.mass[c] > 0.0:
                self.mix[c] = log(self.mass[c] / self.total) + self.temper * self.evidence[c]
                if self.paired:
                    self.mix[c] += self.pairs.sum[c]
                top = max(top, self.mix[c])
        for c in range(self.classes):
            self.mix[c] = exp(self.mix[c] - top) if self.mass[c] > 0.0 else 0.0
            sum += self.mix[c]
        for c in range(self.classes):
            self.mix[c] /= sum
            first += self.mix[c] * self.evidence[c]
            second += self.mix[c] * self.evidence[c] * self.evidence[c]
        if self.paired:
            self.pairs.judge(self.classes, self.mix, y, w, self.tempered)
        if self.tempered:
            self.certainty += w * (second - first * first)
            self.temper += w * (self.evidence[y] - first) / self.certainty
            self.temper = min(max(self.temper, 0.01), 2.0)

    # ---------------------------------------------------------------- looking inside

    def role(self, Py_ssize_t slot):
        cdef Unit* unit = &self.unit[slot]
        if unit.level != NULL:
            return "level" if self.unit[self.space.column[slot]].texts >= self.grace else "waiting"
        if unit.forest != NULL:
            return "forest"
        return "waiting"

    def unit_weights(self):
        """Weight by slot of every unit that votes: numbers by their own slot, levels by their column's."""
        cdef Py_ssize_t u
        return {u: self.unit[u].weight for u in range(1, self.capacity)
                if self.unit[u].forest != NULL or self.unit[u].texts >= self.grace}

    def unit_information(self):
        """By slot of every unit that votes: mean of log2 P(y) / prior(y) over its votes, recent ones counting more."""
        cdef Py_ssize_t u
        return {u: self.unit[u].told / self.unit[u].heard / log(2.0) if self.unit[u].heard > 0.0 else 0.0
                for u in self.unit_weights()}

    def pair_information(self):
        """By slots of every pair that votes: mean of log2 P(y) with its vote / P(y) without, recent ones counting more."""
        return {both: gain / log(2.0) for both, gain in self.pairs.voting().items()} if self.paired else {}

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
            return [f"{self.pruned:,} features vanished and were forgotten; they start anew when they return"]
        return []

    # ---------------------------------------------------------------- keeping

    def dump(self, Py_ssize_t size):
        arrays = Stumps.dump(self, size)
        return {**arrays, **self.pairs.dump()} if self.paired else arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        Stumps.fill(self, arrays, capacity)
        if self.paired:
            self.pairs.fill(arrays, lambda slot: slot < len(arrays["units"]) and self.settled(slot))

    def nbytes(self):
        return Stumps.nbytes(self) + (self.pairs.nbytes() if self.paired else 0)

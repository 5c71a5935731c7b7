"""ORF3V: the weighted vote of the present forests and the record of their accuracy."""

import numpy as np

from libc.math cimport INFINITY, exp, log, nextafter
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from varifold._numeric.hashing cimport draw
from varifold._numeric.memory cimport out_of_memory, resize
from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR, NUMERIC
from varifold.forest._pairs cimport (
    BINS, CELLS, SETTLED, START, Pair, Pairs, overlap_shares, position, quantile_edges,
)
from varifold.forest._stumps cimport TIE, Stumps
from varifold.forest._tdigest cimport Digest, Point, digest_below
from varifold.forest._feature_state cimport FeatureState
from varifold._engine.view cimport View

from varifold._engine.state import per_class


cdef class ORF3VModel(Stumps):
    """Combine forests by vote, weight them by accuracy and prune those of vanished features."""

    cdef readonly double alpha
    cdef readonly bint learns_temperature
    cdef readonly bint paired          # whether there are pairs
    cdef Pairs pairs
    # scratch
    cdef double* evidence              # [class]
    cdef Point* sorted_points          # of a feature's digests, with pairs only

    def __cinit__(self, int stumps, int candidates, int grace, int64_t r, double growth, double alpha,
                  int64_t window, double delta, str prune, str replace, str thresholds, double compression,
                  double smoothing, str vote, bint tempered, uint64_t seed, int pairs=0, str update="values"):
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
        self.learns_temperature = tempered and not self.paper_vote
        self.quantiles = thresholds == "quantile"
        self.random_out = replace == "random"
        self.worst_out = replace == "worst"
        self.by_rounds = update == "rounds"
        self.rule.window = window
        self.rule.words = (window + 63) // 64
        self.rule.log_delta = log(delta)
        self.rule.epsilon = (-log(delta) / (2.0 * window)) ** 0.5
        self.rule.by_bound = prune in ("hoeffding", "hoeffding+gap")
        self.rule.by_gap = prune in ("gap", "hoeffding+gap")
        self.temperature = 1.0
        self.certainty = 1.0
        self.sees_empty = True
        self.arrays.scratch(&self.evidence, per_class())
        self.arrays.scratch(&self.mix, per_class())
        self.arrays.scratch(&self.below, per_class(width=stumps))
        if pairs:
            self.pairs = Pairs(pairs, alpha)
            self.paired = True

    def __dealloc__(self):
        free(self.sorted_points)
        self.paired = False    # the pairs are freed before the states are cleared

    cdef int reserve_scratch(self, Py_ssize_t points, int wide) except -1 nogil:
        if self.paired and resize(<void**> &self.sorted_points, (points + 1) * wide * sizeof(Point)) < 0:
            return out_of_memory()
        return Stumps.reserve_scratch(self, points, wide)

    cdef int widen(self, int wide) except -1:
        if self.paired:
            self.pairs.widen(wide)
        return Stumps.widen(self, wide)

    cdef void clear_numbers(self, FeatureState* state) noexcept nogil:
        if self.paired:
            self.pairs.leave(<int32_t> (state - self.states))
        Stumps.clear_numbers(self, state)

    # ---------------------------------------------------------------- the vote

    cdef double* voting_row(self, View* v, Py_ssize_t i, FeatureState** owner) noexcept nogil:
        """Return the row that votes for entry i, NULL without a forest; store its state in `owner`."""
        cdef int32_t s = v.slot[i]
        cdef FeatureState* state = &self.states[s]
        cdef int low = 0, high = self.stumps, middle
        cdef double* edge
        owner[0] = state
        if s == 0:
            return NULL
        if self.space.kind[s] & INDICATOR:
            owner[0] = &self.states[self.space.column[s]]
            return state.level + self.wide if state.level != NULL and owner[0].texts >= self.grace else NULL
        edge = state.forest
        if edge == NULL:
            return NULL
        while low < high:
            middle = (low + high) >> 1
            if edge[middle] <= v.raw[i]:
                low = middle + 1
            else:
                high = middle
        return edge + 2 * self.stumps + low * (1 + self.wide)

    cdef bint sum_votes(self, View* v, double* out) noexcept nogil:
        """Sum the weighted votes by class; return whether there was any."""
        cdef Py_ssize_t i
        cdef int c
        cdef bint voted = False
        cdef double* row
        cdef FeatureState* state
        memset(out, 0, self.classes * sizeof(double))
        for i in range(v.n):
            row = self.voting_row(v, i, &state)
            if row == NULL:
                continue
            voted = True
            for c in range(self.classes):
                out[c] += state.weight * row[1 + c]
        return voted

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        cdef bint voted = self.sum_votes(v, out)
        for c in range(self.classes):
            if not self.paper_vote:
                out[c] = log(self.mass[c] / self.total) + self.temperature * out[c]
            elif not voted:
                out[c] = self.mass[c] / self.total
        if self.paired and self.pairs.look_up(v, self.classes, self.mass, self.total, False):
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
        cdef FeatureState* state
        cdef bint voted = False
        for i in range(v.n):
            row = self.voting_row(v, i, &state)
            out[i] = 0.0
            if row != NULL:
                voted = True
                out[i] = state.weight * row[1 + label] * (1.0 if self.paper_vote else self.temperature)
        if v.n and v.slot[0] == 0:
            if not self.paper_vote:
                out[0] = log(self.mass[label] / self.total)
            elif not voted:
                out[0] = self.mass[label] / self.total
        if self.paired:
            self.share_pair_votes(v, label, out)

    cdef void share_pair_votes(self, View* v, int label, double* out) noexcept nogil:
        """Split the vote of a pair evenly between its features."""
        cdef int p
        cdef double half
        self.pairs.look_up(v, self.classes, self.mass, self.total, False)
        for p in range(self.pairs.limit):
            if self.pairs.cell[p] >= 0:
                half = self.pairs.pair[p].factor * self.pairs.lift[p * self.pairs.wide + label] / 2.0
                out[position(v, self.pairs.pair[p].a)] += half
                out[position(v, self.pairs.pair[p].b)] += half

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef FeatureState* state = &self.states[slot]
        if state.level != NULL:
            state = &self.states[self.space.column[slot]]
            return state.weight if state.texts >= self.grace else 0.0
        return state.weight if state.forest != NULL else 0.0

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
        if self.by_rounds and t % self.r == 0:
            self.renew_all(t)
        if self.paired and judged:
            self.pairs.absorb(y, w)
            self.pairs.decide()
            self.renew_grids()
            self.try_pair(v, t)

    cdef void renew_grids(self) noexcept nogil:
        """Move the edges of the pairs that are due to the current quantiles."""
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
            self.shares_up_to(pair.a, pair.edge[0], old_upto)
            self.shares_up_to(pair.a, edge[0], new_upto)
            overlap_shares(pair.edge[0], old_upto, edge[0], new_upto, share[0])
            if not self.edges_of(pair.b, edge[1]):
                continue
            self.shares_up_to(pair.b, pair.edge[1], old_upto)
            self.shares_up_to(pair.b, edge[1], new_upto)
            overlap_shares(pair.edge[1], old_upto, edge[1], new_upto, share[1])
            self.pairs.share_out(p, share[0], share[1])
            for k in range(BINS - 1):
                pair.edge[0][k] = edge[0][k]
                pair.edge[1][k] = edge[1][k]

    cdef void shares_up_to(self, int32_t s, double* edge, double* out) noexcept nogil:
        """Compute the share of a number's values up to each edge; its digests were flushed and summed before."""
        cdef FeatureState* state = &self.states[s]
        cdef double total = 0.0
        cdef int c, k
        for c in range(self.classes):
            total += state.digest[c].total
        for k in range(BINS - 1):
            out[k] = 0.0
            for c in range(self.classes):
                out[k] += digest_below(&state.digest[c], self.sums + c * self.sums_capacity,
                                       nextafter(edge[k], INFINITY))
            out[k] /= total

    cdef void try_pair(self, View* v, int64_t t) noexcept nogil:
        """Put two features of the instance on trial if a place is free; every other time prefer high credit."""
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
        """Return the entry with the highest credit among `times` random ones of the instance."""
        cdef Py_ssize_t i, best = 0
        cdef int k
        for k in range(times):
            i = <Py_ssize_t> (draw(self.seed, <uint64_t> t, first + k) % <uint64_t> v.n)
            if k == 0 or self.states[v.slot[i]].credit > self.states[v.slot[best]].credit + TIE:
                best = i
        return best

    cdef bint settled(self, int32_t s) noexcept nogil:
        """Return whether the slot is numeric and has enough values to be part of a pair."""
        return self.space.kind[s] & NUMERIC and self.states[s].forest != NULL and self.states[s].numbers >= SETTLED

    cdef bint edges_of(self, int32_t s, double* edge) noexcept nogil:
        """Compute the current bin edges of a number; return False if all its values are equal."""
        self.add_up(&self.states[s])
        return quantile_edges(self.states[s].digest, self.classes, self.sorted_points, edge)

    cdef void judge(self, View* v, int y, double w) noexcept nogil:
        """Update forest weights by the accuracy of their own votes (eq. 8), and the temperature by the log loss.

        The information of a vote about the label is kept with it, since the weight alone does not separate good
        forests from bad ones: where classes are not balanced, most of them favour the largest class,
        and are right as often as it is frequent.
        """
        cdef Py_ssize_t i
        cdef double* row
        cdef FeatureState* state
        cdef double a = self.alpha * w
        cdef int c
        cdef bint voted = False
        memset(self.evidence, 0, self.classes * sizeof(double))
        for i in range(v.n):
            row = self.voting_row(v, i, &state)
            if row == NULL:
                continue
            voted = True
            for c in range(self.classes):
                self.evidence[c] += state.weight * row[1 + c]
            state.credit = (a * self.information(row, y) + state.credit) / (1.0 + a)
            state.credit_weight = (a + state.credit_weight) / (1.0 + a)
            state.weight = ((2.0 * a if <int> row[0] == y else 0.0) + state.weight) / (1.0 + a)
        if self.paired:
            self.pairs.look_up(v, self.classes, self.mass, self.total, True)
        if (self.learns_temperature or self.paired) and voted and self.mass[y] > 0.0:
            self.learn_factors(y, w)

    cdef double information(self, double* row, int y) noexcept nogil:
        """Return log P_i(y) / prior(y): the information of a forest's vote about the label beyond the class prior."""
        if not self.paper_vote:
            return row[1 + y]
        return log(row[1 + y] * self.total / self.mass[y]) if row[1 + y] > TIE else 0.0

    cdef void learn_factors(self, int y, double w) noexcept nogil:
        """Take one Newton step of the log loss in the factor on the evidence and in those on the pairs' votes."""
        cdef int c
        cdef double top = -1e300, sum = 0.0, first = 0.0, second = 0.0
        for c in range(self.classes):
            if self.mass[c] > 0.0:
                self.mix[c] = log(self.mass[c] / self.total) + self.temperature * self.evidence[c]
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
            self.pairs.judge(self.classes, self.mix, y, w, self.learns_temperature)
        if self.learns_temperature:
            self.certainty += w * (second - first * first)
            self.temperature += w * (self.evidence[y] - first) / self.certainty
            self.temperature = min(max(self.temperature, 0.01), 2.0)

    # ---------------------------------------------------------------- looking inside

    def check_slot(self, Py_ssize_t slot):
        """Raise an error for an invalid slot."""
        if not 0 <= slot < self.space.size:
            raise IndexError(f"no feature has the slot {slot}; there are {self.space.size}")

    def role(self, Py_ssize_t slot):
        """Return 'forest' or 'level' if the slot votes, otherwise 'waiting'."""
        self.check_slot(slot)
        cdef FeatureState* state = &self.states[slot]
        if state.level != NULL:
            return "level" if self.states[self.space.column[slot]].texts >= self.grace else "waiting"
        if state.forest != NULL:
            return "forest"
        return "waiting"

    def feature_weights(self):
        """Return the weight of every voting feature by slot: numbers by their own slot, levels by their column's."""
        cdef Py_ssize_t u
        return {u: self.states[u].weight for u in range(1, self.capacity)
                if self.states[u].forest != NULL or self.states[u].texts >= self.grace}

    def feature_information(self):
        """Return the mean of log2 P(y) / prior(y) over each feature's votes by slot, weighted towards recent votes."""
        cdef Py_ssize_t u
        return {u: self.states[u].credit / self.states[u].credit_weight / log(2.0) if self.states[u].credit_weight > 0.0 else 0.0
                for u in self.feature_weights()}

    def pair_information(self):
        """Return the mean of log2 P(y) with / without the vote of each voting pair, weighted towards recent ones."""
        return {both: gain / log(2.0) for both, gain in self.pairs.voting().items()} if self.paired else {}

    def feature_distribution(self, Py_ssize_t slot):
        """Return (thresholds; by class: digest values, weights, whether they are points) of a numeric slot."""
        self.check_slot(slot)
        cdef FeatureState* state = &self.states[slot]
        cdef int c, j
        cdef Py_ssize_t i
        cdef Digest* d
        if state.digest == NULL:
            return None
        edges = np.array([state.forest[j] for j in range(self.stumps)] if state.forest != NULL else [])
        classes = []
        for c in range(self.classes):
            d = &state.digest[c]
            points = np.array([(d.point[i].at, d.point[i].mass) for i in range(d.n + d.held)]).reshape(-1, 2)
            points = points[np.argsort(points[:, 0], kind="stable")]
            classes.append((points[:, 0], np.abs(points[:, 1]), points[:, 1] > 0.0))
        return edges, classes

    def notes(self):
        if self.pruned:
            return [f"{self.pruned:,} features vanished and were forgotten; they start again when they return"]
        return []

    # ---------------------------------------------------------------- keeping

    def dump(self, Py_ssize_t size):
        arrays = Stumps.dump(self, size)
        return {**arrays, **self.pairs.dump(self.classes)} if self.paired else arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        Stumps.fill(self, arrays, capacity)
        if self.paired:
            self.pairs.fill(arrays, len(arrays["mass"]), lambda slot: slot < len(arrays["units"]) and self.settled(slot))

    def nbytes(self):
        return Stumps.nbytes(self) + (self.pairs.nbytes() if self.paired else 0)

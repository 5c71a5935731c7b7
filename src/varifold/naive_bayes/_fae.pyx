"""FAE (Wenerstrom, Giraud-Carrier 2006): naive Bayes classifiers on the features that were the best when they began.

All features are ranked by chi-square of presence and class after every instance. A member of the ensemble keeps the
features that ranked first when it was created; a member is added when the ranking or the accuracy has changed.
"""

import numpy as np

from libc.math cimport fabs, log
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax, softmax
from varifold.naive_bayes._class_table cimport PresenceTable
from varifold.naive_bayes._members cimport Members

from varifold._engine.state import checked_array, fixed, per_class, per_slot

cdef struct Worth:
    float chi2
    int32_t slot

cdef double TIE = 1e-9         # probabilities that differ by less are ties, so that rounding decides no prediction
cdef double CANCELLED = 0.01   # evidence cancels if its sum is less than this share of its absolute sum


cdef inline int likeliest(int k, const double* chance) noexcept nogil:
    """Return the most probable class, the first among ties."""
    cdef int c, best = argmax(k, chance)
    for c in range(best):
        if chance[c] > chance[best] - TIE:
            return c
    return best


cdef inline bint better(Worth* a, Worth* b) noexcept nogil:
    """Test whether a ranks before b: larger chi-square, among ties the smaller slot."""
    return a.chi2 > b.chi2 or (a.chi2 == b.chi2 and a.slot < b.slot)


cdef void bring_best(Worth* worth, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Move the k best of n to the front, in any order (Hoare's selection)."""
    cdef Py_ssize_t low = 0, high = n - 1, i, j
    cdef Worth pivot, kept
    while low < high:
        pivot = worth[(low + high) >> 1]
        i = low
        j = high
        while i <= j:
            while better(&worth[i], &pivot):
                i += 1
            while better(&pivot, &worth[j]):
                j -= 1
            if i <= j:
                kept = worth[i]
                worth[i] = worth[j]
                worth[j] = kept
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


cdef int by_slot(const void* a, const void* b) noexcept nogil:
    return -1 if (<const int32_t*> a)[0] < (<const int32_t*> b)[0] else 1


cdef class FAEModel(PresenceTable):
    """Counts of NB3 over all instances, which rank the features, and the members, which predict."""

    cdef Members members
    cdef readonly Py_ssize_t best        # maximum number of features of a new member (M)
    cdef readonly Py_ssize_t maturity    # instances before a member votes (m)
    cdef readonly Py_ssize_t patience    # consecutive judgements below the threshold that remove a member (p)
    cdef readonly double change          # share of the best features whose change triggers a new member (f)
    cdef readonly Py_ssize_t growth      # instances before falling accuracy may trigger a new member (r)
    cdef readonly bint hard              # members vote for one label instead of by their probabilities
    cdef uint8_t* recent                 # ring: 1 where the ensemble's last predictions were correct, twice the members' span
    cdef readonly int64_t predicted       # predictions so far
    cdef Worth* worth                    # scratch [slot]
    cdef int32_t* chosen                 # scratch [slot]
    cdef uint8_t* here                   # scratch [slot], 0 between calls: whether the instance has the slot
    cdef double* chance                  # scratch [class]
    cdef double* mean                    # scratch [class]
    cdef double* product                 # scratch [class]
    cdef double* evidence                # scratch [slot]: evidence of a member's features for a label
    cdef double* part                    # scratch [slot]: contribution of a feature to a score
    cdef int32_t* prediction             # scratch [member]
    cdef double* vote_weight             # scratch [member]

    def __cinit__(self, double prior, Py_ssize_t best, Py_ssize_t maturity, Py_ssize_t patience, double change,
                  Py_ssize_t growth, Py_ssize_t span, Py_ssize_t most, bint hard):
        self.declare_table(1, prior)
        self.best = best
        self.maturity = maturity
        self.patience = patience
        self.change = change
        self.growth = growth
        self.hard = hard
        self.prepares = True
        self.members = Members(most, span)
        self.arrays.declare("recent", &self.recent, fixed(2 * span, low=0, high=1))
        self.arrays.scratch_bytes(<void**> &self.worth, sizeof(Worth), per_slot())
        self.arrays.scratch(&self.chosen, per_slot())
        self.arrays.scratch(&self.here, per_slot())
        self.arrays.scratch(&self.evidence, per_slot())
        self.arrays.scratch(&self.part, per_slot())
        self.arrays.scratch(&self.product, per_class())
        self.arrays.scratch(&self.chance, per_class())
        self.arrays.scratch(&self.mean, per_class())
        self.arrays.scratch(&self.prediction, fixed(most))
        self.arrays.scratch(&self.vote_weight, fixed(most))

    # ---------------------------------------------------------------- memory

    cdef int reserve_class(self) except -1:
        PresenceTable.reserve_class(self)
        return self.members.reserve_classes(self.classes + 1)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Reserve memory for one more member."""
        with gil:
            self.members.reserve(min(self.best, self.space.features + n_new))
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        PresenceTable.forget(self, slot)
        self.members.forget(slot)

    # ---------------------------------------------------------------- predicting

    cdef void mark(self, View* v, bint on) noexcept nogil:
        """Mark the slots of the instance, or clear the marks."""
        cdef Py_ssize_t i
        for i in range(v.n):
            self.here[v.slot[i]] = on

    cdef void posterior(self, Py_ssize_t j, Py_ssize_t start, double* out) noexcept nogil:
        """Compute member j's class probabilities for the marked instance; its entries begin at `start`."""
        cdef Py_ssize_t e, found = 0
        cdef int c
        cdef double total = 0.0
        cdef double* row
        cdef double* counts = self.members.counts + j * self.members.records.classes
        for c in range(self.classes):
            total += counts[c]
            self.product[c] = 1.0
            out[c] = 0.0
        for e in range(start, start + self.members.size[j]):
            if not self.here[self.members.slot[e]]:
                continue
            found += 1
            row = self.members.present + e * self.members.entries.classes
            for c in range(self.classes):
                self.product[c] *= row[c] + self.prior
                if not 1e-200 < self.product[c] < 1e200:
                    out[c] += log(self.product[c])
                    self.product[c] = 1.0
        for c in range(self.classes):
            out[c] += (log(self.product[c]) - found * log(counts[c] + 2.0 * self.prior)
                       + log((counts[c] + self.prior) / (total + self.classes * self.prior)))
        softmax(self.classes, out, out)

    cdef bint mature(self, Py_ssize_t j) noexcept nogil:
        """Test whether a member is old enough to vote, and not on probation."""
        return self.members.age[j] >= self.maturity and self.members.marks[j] == 0

    cdef double weigh(self) noexcept nogil:
        """Compute the weight of every member's vote, the accuracy of mature ones; return their sum.

        Without mature members all vote by age; if the mature ones were always wrong, they vote with equal weights.
        """
        cdef Py_ssize_t j, ripe = 0
        cdef double sum = 0.0
        for j in range(self.members.n):
            ripe += self.mature(j)
        for j in range(self.members.n):
            if ripe:
                self.vote_weight[j] = self.members.accuracy(j) if self.mature(j) else 0.0
            else:
                self.vote_weight[j] = <double> self.members.age[j]
            sum += self.vote_weight[j]
        if sum > 0.0:
            return sum
        for j in range(self.members.n):
            self.vote_weight[j] = 1.0 if self.mature(j) else 0.0
        return <double> ripe

    cdef void vote(self, double* out) noexcept nogil:
        """Compute the weighted mean of the members' votes by class; write their own predictions to `prediction`."""
        cdef Py_ssize_t j, start = 0
        cdef int c
        cdef double sum = self.weigh()
        memset(out, 0, self.classes * sizeof(double))
        for j in range(self.members.n):
            self.posterior(j, start, self.chance)
            self.prediction[j] = likeliest(self.classes, self.chance)
            start += self.members.size[j]
            if self.vote_weight[j] <= 0.0:
                continue
            if self.hard:
                out[self.prediction[j]] += self.vote_weight[j] / sum
                continue
            for c in range(self.classes):
                out[c] += self.vote_weight[j] / sum * self.chance[c]

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.mark(v, True)
        self.vote(out)
        self.mark(v, False)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Normalise the votes to sum to one; uniform when there are none."""
        cdef int c
        cdef double sum = 0.0
        for c in range(self.classes):
            sum += scores[c]
        for c in range(self.classes):
            out[c] = scores[c] / sum if sum > 0.0 else 1.0 / self.classes

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.absorb(v, y, w, self.mean)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        self.absorb(v, y, w, scores)
        if probs != NULL:
            self.proba(scores, probs)

    cdef void absorb(self, View* v, int y, double w, double* out) noexcept nogil:
        """Score the instance, judge members and ensemble, count, rank the features, add a member if one is due."""
        cdef Py_ssize_t j, n
        self.mark(v, True)
        self.vote(out)
        if self.members.n:
            self.recent[self.predicted % (2 * self.members.span)] = likeliest(self.classes, out) == y
            self.predicted += 1
        for j in range(self.members.n):
            self.members.judge(j, self.prediction[j] == y)
        PresenceTable.learn(self, v, y, w)
        self.members.absorb(self.here, y, w)
        n = self.choose()
        if self.members.n == 0 or self.renewal_due(n):
            self.make_way()
            self.members.add(self.chosen, n, self.here, y, w)
        self.mark(v, False)

    cdef double recent_accuracy(self, Py_ssize_t span) noexcept nogil:
        """Return the accuracy of the ensemble's last `span` predictions, or of all if there are fewer."""
        cdef Py_ssize_t i, length = 2 * self.members.span, n = <Py_ssize_t> min(self.predicted, <int64_t> span)
        cdef Py_ssize_t right = 0
        for i in range(n):
            right += self.recent[(self.predicted - 1 - i) % length]
        return <double> right / n if n else 1.0

    cdef Py_ssize_t choose(self) noexcept nogil:
        """Write the best features to `chosen`, ascending; return their number. Compares chi-square in single precision."""
        cdef Py_ssize_t n = 0, i, k
        cdef int32_t slot
        for slot in range(1, <int32_t> self.space.size):
            if self.presence(slot) > 0.0:
                self.worth[n].chi2 = <float> self.chi2(slot)
                self.worth[n].slot = slot
                n += 1
        k = min(n, self.best)
        if k < n:
            bring_best(self.worth, n, k)
        for i in range(k):
            self.chosen[i] = self.worth[i].slot
        if k < n:
            qsort(self.chosen, k, sizeof(int32_t), by_slot)
        return k

    cdef bint renewal_due(self, Py_ssize_t n) noexcept nogil:
        """Test whether the best features differ too much from the newest member's, or accuracy falls."""
        cdef Py_ssize_t youngest = self.members.n - 1, size = self.members.size[youngest], common = 0, i = 0, e
        for e in range(self.members.used - size, self.members.used):
            while i < n and self.chosen[i] < self.members.slot[e]:
                i += 1
            common += i < n and self.chosen[i] == self.members.slot[e]
        if n + size - 2 * common > self.change * n:
            return True
        return (self.members.age[youngest] > self.growth
                and self.recent_accuracy(self.members.span) < self.recent_accuracy(2 * self.members.span))

    cdef void make_way(self) noexcept nogil:
        """Mark members below the middle of the accuracies; remove those marked too often, and the worst if full."""
        cdef Py_ssize_t j, worst = 0
        cdef double least = 1.0, most = 0.0, threshold
        for j in range(self.members.n):
            least = min(least, self.members.accuracy(j))
            most = max(most, self.members.accuracy(j))
        threshold = (least + most) / 2.0
        for j in range(self.members.n - 1, -1, -1):
            if self.members.accuracy(j) >= threshold:
                self.members.marks[j] = 0
                continue
            self.members.marks[j] = self.members.marks[j] + 1
            if self.members.marks[j] >= self.patience:
                self.members.remove(j)
        if self.members.n == self.members.most:
            for j in range(1, self.members.n):
                if self.members.accuracy(j) < self.members.accuracy(worst):
                    worst = j
            self.members.remove(worst)

    # ---------------------------------------------------------------- explaining

    cdef double gather_evidence(self, Py_ssize_t j, Py_ssize_t start, int label) noexcept nogil:
        """Compute the evidence of prior (slot 0) and features of member j for a label; return the sum, 0 if it cancels.

        It is log P(class) and log P(present | class), each less its mean over the classes.
        """
        cdef Py_ssize_t e
        cdef int c, k = self.classes
        cdef double rate, own, sum, size
        cdef double* row
        cdef double* counts = self.members.counts + j * self.members.records.classes
        own = log(counts[label] + self.prior)
        rate = log(counts[label] + 2.0 * self.prior)
        for c in range(k):
            own -= log(counts[c] + self.prior) / k
            rate -= log(counts[c] + 2.0 * self.prior) / k
        self.evidence[0] = sum = own
        size = fabs(own)
        for e in range(start, start + self.members.size[j]):
            own = 0.0
            if self.here[self.members.slot[e]]:
                row = self.members.present + e * self.members.entries.classes
                own = log(row[label] + self.prior) - rate
                for c in range(k):
                    own -= log(row[c] + self.prior) / k
            self.evidence[self.members.slot[e]] = own
            sum += own
            size += fabs(own)
        return sum if fabs(sum) > CANCELLED * size else 0.0

    cdef void explain_member(self, Py_ssize_t j, Py_ssize_t start, int label, double weight) noexcept nogil:
        """Distribute a member's vote above 1 / labels over `part`, in proportion to the evidence.

        If the evidence cancels, nothing is distributed: the intercept gets the rest of a score.
        """
        cdef Py_ssize_t e
        cdef double above, sum = self.gather_evidence(j, start, label)
        self.posterior(j, start, self.chance)
        above = self.chance[label]
        if self.hard:
            above = 1.0 if likeliest(self.classes, self.chance) == label else 0.0
        above = weight * (above - 1.0 / self.classes)
        for e in range(start, start + self.members.size[j]):
            if sum != 0.0:
                self.part[self.members.slot[e]] += above * self.evidence[self.members.slot[e]] / sum

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i, j, start = 0
        cdef double sum = self.weigh(), rest
        memset(self.part, 0, self.space.size * sizeof(double))
        self.mark(v, True)
        self.vote(self.mean)
        for j in range(self.members.n):
            if self.vote_weight[j] > 0.0:
                self.explain_member(j, start, label, self.vote_weight[j] / sum)
            start += self.members.size[j]
        self.mark(v, False)
        rest = self.mean[label]
        for i in range(v.n):
            out[i] = self.part[v.slot[i]]
            rest -= out[i] if v.slot[i] else 0.0
        for i in range(v.n):
            if v.slot[i] == 0:
                out[i] = rest

    # ---------------------------------------------------------------- looking inside

    def role(self, Py_ssize_t slot):
        """Return 'chosen' if a member of the ensemble has the feature, else ''."""
        cdef Py_ssize_t e
        for e in range(self.members.used):
            if self.members.slot[e] == slot:
                return "chosen"
        return ""

    def summaries(self):
        """Return (age, accuracy, marks, weight of its vote, slots of its features) per member, oldest first."""
        cdef Py_ssize_t j, e, start = 0
        cdef double sum = self.weigh()
        found = []
        for j in range(self.members.n):
            slots = [self.members.slot[e] for e in range(start, start + self.members.size[j])]
            found.append((self.members.age[j], self.members.accuracy(j), self.members.marks[j],
                          max(0.0, self.vote_weight[j]) / sum, slots))
            start += self.members.size[j]
        return found

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {**PresenceTable.dump(self, size), **self.members.dump(self.classes),
                "predicted": np.array([self.predicted], dtype=np.int64)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        PresenceTable.fill(self, arrays, capacity)
        self.members.fill(arrays, self.space.size, self.classes)
        self.predicted = int(checked_array(arrays, "predicted", "i", (1,), 0, 1 << 53)[0])

    def nbytes(self):
        return PresenceTable.nbytes(self) + self.members.nbytes()

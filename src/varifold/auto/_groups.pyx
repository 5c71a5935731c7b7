"""Linear expert on groups of columns that are near copies: quotes of many agents, redundant sensors, versions of one value.

A rule with one weight per column learns each copy separately, and again when copies are replaced by others. Here columns
that correlate form a group, and the rule sees one number per group: the mean of the scaled values present, each with its
sign. A new copy joins the group after about 50 values, and takes over what was learned from the others.

A numeric column is a *candidate* first. After SETTLE values it is compared with all groups present; from TRIAL
comparisons with a group on it joins the one that it correlates with most, if that is at least LIKE. A candidate compared
with all groups present founds the next group, or stays alone if there are MOST. As long as no group has two members the
rule sees none: where there are no near copies, the expert predicts by its intercept, and costs little.
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.names.table cimport NUMERIC
from varifold._engine.view cimport View

from varifold._engine.state import checked_array, fixed, per_slot

cdef enum:
    MOST = 32          # groups, and candidates at a time
    NUMBERS = 4        # of a comparison: count, and sums of the products xy, xx, yy
    ALONE = -1         # in place of the group of a column that stays without one

cdef double SETTLE = 16.0     # values of a candidate before the first comparison, while its scale is found
cdef double TRIAL = 32.0      # comparisons before a decision
cdef double LIKE = 0.9        # correlation of near copies


cdef class GroupsModel(Model):
    """A rule whose slots are groups, and by column the group it belongs to."""

    cdef BinaryRule rule
    cdef int32_t* group            # [slot]: 1 to MOST, 0 for none yet, ALONE
    cdef double* sign              # [slot]: 1 or -1 in a group
    cdef int32_t* candidate        # [MOST]: slot, 0 for none
    cdef double* compared          # [MOST][1 + MOST * NUMBERS]: values of the candidate, comparisons with each group
    cdef int64_t* members          # [1 + MOST]: columns by group
    cdef int pairs                 # groups with two members or more
    cdef int live                  # groups with members
    cdef int candidates
    cdef int32_t* place            # [slot]: 1 + position in `candidate`
    # the groups of the instance at hand
    cdef double* total             # [1 + MOST]: sum of the values present
    cdef int64_t* present          # [1 + MOST]: their number
    cdef View view                 # what the rule sees
    cdef int32_t* view_slot
    cdef double* view_x
    cdef uint8_t* view_is_new      # all zero
    cdef double* share             # [1 + MOST]

    def __cinit__(self, BinaryRule rule not None):
        self.rule = rule
        self.hold("rule.", rule)
        self.arrays.declare("group", &self.group, per_slot(low=ALONE, high=MOST))
        self.arrays.declare("sign", &self.sign, per_slot(low=-1, high=1))
        self.arrays.declare("candidate", &self.candidate, fixed(MOST, low=0))
        self.arrays.declare("compared", &self.compared, fixed(MOST, width=1 + MOST * NUMBERS))
        self.arrays.scratch(&self.members, fixed(1 + MOST))
        self.arrays.scratch(&self.place, per_slot())
        self.arrays.scratch(&self.total, fixed(1 + MOST))
        self.arrays.scratch(&self.present, fixed(1 + MOST))
        self.arrays.scratch(&self.view_slot, fixed(1 + MOST))
        self.arrays.scratch(&self.view_x, fixed(1 + MOST))
        self.arrays.scratch(&self.view_is_new, fixed(1 + MOST))
        self.arrays.scratch(&self.share, fixed(1 + MOST))

    # ---------------------------------------------------------------- memory

    cdef int grow(self, Py_ssize_t capacity) except -1:
        return Model.grow(self, max(capacity, 1 + MOST))    # the rule has a slot per group

    cdef void forget(self, int32_t slot) noexcept nogil:
        if self.place[slot]:
            self.end_trial(slot)
        if self.group[slot] > 0:
            self.leave(slot)
        self.arrays.forget(slot)

    cdef void join(self, int32_t slot, int g, double sign) noexcept nogil:
        """Add a column to a group."""
        self.group[slot] = g
        self.sign[slot] = sign
        self.members[g] += 1
        self.pairs += self.members[g] == 2
        self.live += self.members[g] == 1

    cdef void leave(self, int32_t slot) noexcept nogil:
        """Remove a column from its group; the weights of an empty group are forgotten."""
        cdef int32_t g = self.group[slot]
        cdef int i
        self.members[g] -= 1
        self.pairs -= self.members[g] == 1
        if self.members[g] == 0:
            self.live -= 1
            self.rule.forget(g)
            for i in range(MOST):
                memset(self.comparison(i, g), 0, NUMBERS * sizeof(double))

    cdef inline double* comparison(self, int i, int g) noexcept nogil:
        """Return the numbers that compare candidate i with group g."""
        return self.compared + i * (1 + MOST * NUMBERS) + 1 + (g - 1) * NUMBERS

    cdef void begin_trial(self, int32_t slot) noexcept nogil:
        """Make a column a candidate, if there is a place."""
        cdef int i
        if self.candidates == MOST:
            return
        for i in range(MOST):
            if self.candidate[i] == 0:
                self.candidate[i] = slot
                self.place[slot] = i + 1
                self.candidates += 1
                return

    cdef void end_trial(self, int32_t slot) noexcept nogil:
        cdef int i = self.place[slot] - 1
        memset(self.compared + i * (1 + MOST * NUMBERS), 0, (1 + MOST * NUMBERS) * sizeof(double))
        self.candidate[i] = 0
        self.place[slot] = 0
        self.candidates -= 1

    # ---------------------------------------------------------------- one instance

    cdef void add_up(self, View* v) noexcept nogil:
        """Add up the values of each group, and write what the rule sees."""
        cdef Py_ssize_t i, n = 0
        cdef int32_t g
        memset(self.present, 0, (1 + MOST) * sizeof(int64_t))
        memset(self.total, 0, (1 + MOST) * sizeof(double))
        if self.live:
            for i in range(v.n):
                g = self.group[v.slot[i]]
                if g > 0:
                    self.total[g] += self.sign[v.slot[i]] * v.x[i]
                    self.present[g] += 1
        if v.n and v.slot[0] == 0:
            self.view_slot[0], self.view_x[0] = 0, 1.0
            n = 1
        for g in range(1, 1 + MOST if self.pairs else 0):
            if self.present[g]:
                self.view_slot[n], self.view_x[n] = g, self.total[g] / self.present[g]
                n += 1
        self.view = v[0]
        self.view.n = n
        self.view.columns = 0
        self.view.slot = self.view_slot
        self.view.x = self.view.raw = self.view_x
        self.view.is_new = self.view_is_new

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.add_up(v)
        self.rule.scores(&self.view, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.add_up(v)
        self.rule.learn(&self.view, y, w)
        self.compare(v)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        self.add_up(v)
        self.rule.learn_scored(&self.view, y, w, scores, probs)
        self.compare(v)

    # ---------------------------------------------------------------- the groups

    cdef void compare(self, View* v) noexcept nogil:
        """Compare the columns that have no group yet with the groups present; one of them may found a group."""
        cdef Py_ssize_t i
        cdef int32_t slot
        cdef bint founded = False
        for i in range(v.n):
            slot = v.slot[i]
            if slot == 0 or self.group[slot] != 0 or not self.space.kind[slot] & NUMERIC:
                continue
            if self.place[slot] == 0:
                self.begin_trial(slot)
            elif not self.compare_one(slot, v.x[i]) and not founded:
                founded = self.decide(slot)

    cdef bint compare_one(self, int32_t slot, double x) noexcept nogil:
        """Compare a candidate with each group present; return whether it joined one."""
        cdef int i = self.place[slot] - 1, g, best = 0
        cdef double* s
        cdef double y, r, most = LIKE
        self.compared[i * (1 + MOST * NUMBERS)] += 1.0
        if self.compared[i * (1 + MOST * NUMBERS)] <= SETTLE:
            return False
        for g in range(1, 1 + MOST):
            if not self.present[g]:
                continue
            s = self.comparison(i, g)
            y = self.total[g] / self.present[g]
            s[0] += 1.0
            s[1] += x * y
            s[2] += x * x
            s[3] += y * y
            if s[0] >= TRIAL and s[2] > 0.0 and s[3] > 0.0:
                r = s[1] / sqrt(s[2] * s[3])
                if r >= most or -r >= most:
                    most, best = (r if r > 0.0 else -r), (g if r > 0.0 else -g)
        if best:
            self.end_trial(slot)
            self.join(slot, best if best > 0 else -best, 1.0 if best > 0 else -1.0)
        return best != 0

    cdef bint decide(self, int32_t slot) noexcept nogil:
        """End the trial of a candidate that is like no group present: it founds a group (True) or stays alone."""
        cdef int i = self.place[slot] - 1, g
        if self.compared[i * (1 + MOST * NUMBERS)] < SETTLE + TRIAL:
            return False
        for g in range(1, 1 + MOST):
            if self.present[g] and self.comparison(i, g)[0] < TRIAL:
                return False
        self.end_trial(slot)
        for g in range(1, 1 + MOST):
            if self.members[g] == 0:
                self.join(slot, g, 1.0)
                self.present[g] = 0    # others are compared with it from the next instance on
                return True
        self.group[slot] = ALONE
        return False

    # ---------------------------------------------------------------- looking inside

    def groups(self):
        """Return the groups of two columns or more: the names of the members, those with the opposite sign after "-"."""
        found = {}
        for slot in self.space.columns():
            if self.group[<Py_ssize_t> slot] > 0:
                name = str(self.space.name_of(slot))
                found.setdefault(self.group[<Py_ssize_t> slot], []).append(
                    name if self.sign[<Py_ssize_t> slot] > 0 else f"-{name}")
        return [names for names in found.values() if len(names) > 1]

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef int32_t g = self.group[slot]
        return self.rule.magnitude(g) / self.members[g] if g > 0 else 0.0

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Share the contribution of a group out by the values present."""
        cdef Py_ssize_t i
        cdef int32_t g
        memset(out, 0, v.n * sizeof(double))
        self.add_up(v)
        self.rule.contributions(&self.view, label, self.share)
        memset(self.view_x, 0, (1 + MOST) * sizeof(double))
        for i in range(self.view.n):
            self.view_x[self.view_slot[i]] = self.share[i]
        for i in range(v.n):
            g = self.group[v.slot[i]]
            if v.slot[i] == 0:
                out[i] = self.view_x[0]
            elif g > 0 and self.total[g] != 0.0:
                out[i] = self.view_x[g] * self.sign[v.slot[i]] * v.x[i] / self.total[g]

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        """Return the state with the comparisons of candidates only."""
        arrays = Model.dump(self, size)
        rows = np.flatnonzero(arrays["candidate"])
        return {**arrays, "candidate": arrays["candidate"][rows], "places": rows, "compared": arrays["compared"][rows]}

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Restore what dump() returned; count members and candidates again."""
        cdef Py_ssize_t i
        rows = checked_array(arrays, "places", "i", (None,), 0, MOST - 1)
        columns = checked_array(arrays, "candidate", "i", (len(rows),), 1, self.space.size - 1)
        numbers = checked_array(arrays, "compared", "f", (len(rows), 1 + MOST * NUMBERS))
        group = checked_array(arrays, "group", "i", (None,), ALONE, MOST)
        if len(set(rows.tolist())) != len(rows) or len(set(columns.tolist())) != len(rows) or group[columns].any():
            raise ValueError("candidates for a group that occur twice or have one")
        candidate, compared = np.zeros(MOST, dtype=np.int32), np.zeros((MOST, 1 + MOST * NUMBERS))
        candidate[rows], compared[rows] = columns, numbers
        Model.fill(self, {**arrays, "candidate": candidate, "compared": compared}, capacity)
        for i in range(MOST):
            if self.candidate[i]:
                self.place[self.candidate[i]] = <int32_t> i + 1
                self.candidates += 1
        for i in range(len(group)):
            if self.group[i] > 0:
                self.join(<int32_t> i, self.group[i], self.sign[i])

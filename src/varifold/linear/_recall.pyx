"""Diagonal AROW that sees which columns are absent, and their earlier values: for features that fall silent.

In addition to the values present an instance has, for each of the columns seen last (`most` of them):

- of a number two *levels*, running means of its scaled values with the rates LEVEL and SLOW, this value included;
- of an absent column 1 for *absence* and its *silence*, age / (age + HALF), age being the instances since it was seen;
- of an absent number its level in the place of its value, under the value's weights, and the level times the silence.

So a reading missed once is replaced by the last ones, and a sensor that stays silent loses influence as far as the
labels support it. With bins, value and first level also add 1 for their octile of the normal distribution.
Columns that others have pushed out of the list have no influence until they are seen again.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport NUMERIC
from varifold._engine.models.one_vs_rest cimport at
from varifold._engine.view cimport View
from varifold.linear._diagonal cimport DiagonalRule, Input, pair_at

from varifold._engine.state import per_slot

cdef enum:
    BINS = 8

cdef double[BINS - 1] OCTILES = [-1.1503, -0.6745, -0.3186, 0.0, 0.3186, 0.6745, 1.1503]
cdef double LEVEL = 0.6
cdef double SLOW = 0.15
cdef double HALF = 10.0
cdef int MOST_INPUTS = 8    # of a slot: value and level with their bins, slow level, absence, silence, level in silence


cdef inline int bin_of(double x) noexcept nogil:
    """Return the bin of a scaled value, counted from 1."""
    cdef int b, k = 1
    for b in range(BINS - 1):
        k += x > OCTILES[b]
    return k


cdef class RecallRule(DiagonalRule):
    """Per slot and problem mean and precision of each weight: a pair for every kind of input, value first."""

    cdef readonly int most       # columns recalled
    cdef readonly bint binned
    cdef int level_pair          # first pair of a slot's level; pairs before it belong to its value
    cdef int slow_pair
    cdef int absence_pair
    cdef int silence_pair
    cdef int faded_pair          # of level times silence
    cdef double* level           # [slot]: running mean of the scaled values
    cdef double* slow            # [slot]: the same with a slower rate
    cdef int64_t* last           # [slot]: latest step that had the column, counted from 1; 0: none
    cdef int32_t* newer          # [slot]: linked list of columns by the step they were last seen, 0 at the ends
    cdef int32_t* older
    cdef int32_t newest
    cdef int32_t* place          # [slot]: scratch of collect()

    def __cinit__(self, double r, bint binned=False, double memory=0.0, int most=64):
        self.level_pair = 1 + BINS if binned else 1
        self.slow_pair = 2 * self.level_pair
        self.absence_pair = self.slow_pair + 1
        self.silence_pair = self.slow_pair + 2
        self.faded_pair = self.slow_pair + 3
        self.declare_inputs(self.faded_pair + 1, MOST_INPUTS, r, memory)
        self.wants_columns = True
        self.learns_unlabelled = True
        self.binned = binned
        self.most = most
        self.arrays.declare("level", &self.level, per_slot())
        self.arrays.declare("slow", &self.slow, per_slot())
        self.arrays.declare("last", &self.last, per_slot(low=0, high=1 << 53))
        self.arrays.scratch(&self.newer, per_slot())
        self.arrays.scratch(&self.older, per_slot())
        self.arrays.scratch(&self.place, per_slot())

    # ---------------------------------------------------------------- columns in the order last seen

    cdef void unlink(self, int32_t slot) noexcept nogil:
        """Remove a column from the list."""
        cdef int32_t newer = self.newer[slot], older = self.older[slot]
        if newer:
            self.older[newer] = older
        else:
            self.newest = older
        if older:
            self.newer[older] = newer

    cdef void link(self, int32_t slot) noexcept nogil:
        """Put a column at the head of the list."""
        self.newer[slot] = 0
        self.older[slot] = self.newest
        if self.newest:
            self.newer[self.newest] = slot
        self.newest = slot

    cdef void touch(self, View* v) noexcept nogil:
        """Move the columns present to the head; a new number's levels start at its first value."""
        cdef Py_ssize_t i
        cdef int32_t slot
        for i in range(v.n):
            if self.last[v.slot[i]] == 0 and self.space.kind[v.slot[i]] & NUMERIC:
                self.level[v.slot[i]] = v.x[i]
                self.slow[v.slot[i]] = v.x[i]
        for i in range(v.columns):
            slot = v.column[i]
            if self.last[slot]:
                self.unlink(slot)
            self.link(slot)
            self.last[slot] = v.step + 1

    cdef void forget(self, int32_t slot) noexcept nogil:
        if self.last[slot]:
            self.unlink(slot)
        DiagonalRule.forget(self, slot)

    # ---------------------------------------------------------------- an instance's inputs

    cdef inline void add(self, int32_t slot, int pair, int32_t entry, double x) noexcept nogil:
        cdef Input* p = &self.inputs[self.count]
        p.slot = slot
        p.pair = <Py_ssize_t> slot * self.width + 2 * pair
        p.entry = entry
        p.x = x
        self.count += 1

    cdef inline void add_number(self, int32_t slot, int pair, int32_t entry, double x) noexcept nogil:
        """Add a value or level, and its bin."""
        self.add(slot, pair, entry, x)
        if self.binned:
            self.add(slot, pair + bin_of(x), entry, 1.0)

    cdef void collect(self, View* v) noexcept nogil:
        """Write the instance's inputs; `place` is 1 + entry of a present slot, -1 for a column without a number."""
        cdef Py_ssize_t i
        cdef int32_t slot
        cdef int left = self.most
        self.count = 0
        for i in range(v.n):
            slot = v.slot[i]
            self.place[slot] = <int32_t> i + 1
            if self.space.kind[slot] & NUMERIC:
                self.add_number(slot, 0, <int32_t> i, v.x[i])
            else:
                self.add(slot, 0, <int32_t> i, v.x[i])
        for i in range(v.columns):
            if self.place[v.column[i]] == 0:
                self.place[v.column[i]] = -1
        slot = self.newest
        while slot and left > 0:
            self.recall(v, slot)
            slot = self.older[slot]
            left -= 1
        for i in range(v.n):
            self.place[v.slot[i]] = 0
        for i in range(v.columns):
            self.place[v.column[i]] = 0

    cdef void recall(self, View* v, int32_t slot) noexcept nogil:
        """Add the inputs of one of the recent columns, except its value."""
        cdef int32_t entry = self.place[slot] - 1
        cdef double level = self.level[slot], slow = self.slow[slot], age, silence
        if entry >= 0:
            self.add_number(slot, self.level_pair, entry, level + LEVEL * (v.x[entry] - level))
            self.add(slot, self.slow_pair, entry, slow + SLOW * (v.x[entry] - slow))
        elif entry == -1:
            age = <double> (v.step + 1 - self.last[slot])
            silence = age / (age + HALF)
            self.add(slot, self.absence_pair, -1, 1.0)
            self.add(slot, self.silence_pair, -1, silence)
            if self.space.kind[slot] & NUMERIC:
                self.add_number(slot, 0, -1, level)
                self.add_number(slot, self.level_pair, -1, level)
                self.add(slot, self.slow_pair, -1, slow)
                self.add(slot, self.faded_pair, -1, level * silence)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.touch(v)
        DiagonalRule.learn(self, v, y, w)
        self.move_levels(v)

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Remember the values and when the columns were seen."""
        self.touch(v)
        self.move_levels(v)

    cdef void move_levels(self, View* v) noexcept nogil:
        """Update the levels with the values present."""
        cdef Py_ssize_t i
        cdef int32_t slot
        for i in range(v.n):
            slot = v.slot[i]
            if self.space.kind[slot] & NUMERIC:
                self.level[slot] += LEVEL * (v.x[i] - self.level[slot])
                self.slow[slot] += SLOW * (v.x[i] - self.slow[slot])

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        Model.learn_scored(self, v, y, w, scores, probs)  # learning moves the columns before the step

    # ---------------------------------------------------------------- looking inside

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Sum the linear weights of value, levels and absence."""
        cdef double total = 0.0
        cdef double* s
        cdef int c
        for c in range(self.problems):
            s = at(self, slot, c)
            total += (fabs(s[0]) + fabs(s[2 * self.level_pair * self.plane]) + fabs(s[2 * self.slow_pair * self.plane])
                      + fabs(s[2 * self.absence_pair * self.plane]))
        return total

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c = label if self.problems > 1 else 0
        cdef double sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        cdef Input* p
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2:
            return
        self.collect(v)
        for i in range(self.count):
            p = &self.inputs[i]
            if p.entry >= 0:
                out[p.entry] += sign * pair_at(self, p, c, self.plane)[0] * p.x

    cdef dict absent_contributions(self, View* v, int label):
        cdef Py_ssize_t i
        cdef int c = label if self.problems > 1 else 0
        cdef double sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        cdef Input* p
        found = {}
        if self.classes < 2:
            return found
        self.collect(v)
        for i in range(self.count):
            p = &self.inputs[i]
            if p.entry < 0:
                found[p.slot] = found.get(p.slot, 0.0) + sign * pair_at(self, p, c, self.plane)[0] * p.x
        return found

    # ---------------------------------------------------------------- files

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Rebuild the list from the steps; columns of one instance are ordered by slot."""
        cdef int32_t slot
        DiagonalRule.fill(self, arrays, capacity)
        self.newest = 0
        last = np.asarray(arrays["last"])
        for slot in np.lexsort((np.arange(len(last)), last)).tolist():
            if slot and self.last[slot]:
                self.link(slot)

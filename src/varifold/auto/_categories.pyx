"""String columns with many levels, as one column: frequent levels, and a statistic of the label for the others.

A column is *wide* when more than WIDE levels of it are known. Of a wide column an expert sees the levels that hold at
least 1 / WIDE of its instances, of which there are at most WIDE, and in place of any other level one number in the
slot of the column itself: the *statistic* of the level. The lift of class c in level l is

    log((n_lc + m p_c) / ((n_l + m) p_c)),

n_lc being the weight of class c among the instances of the level so far, p_c the share of the class in the column and
m the `smoothing`; the statistic is the lift of the second class less that of the first or, with more than two
classes, the lift of the most frequent one. It is asked for before the instance is counted, so that no label reaches
its own instance, and divided by its root mean square. As an expert, the model adds up the lifts of an instance's levels.
"""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.model cimport Model
from varifold._engine.names cimport COLUMN, INDICATOR, NUMERIC
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax

from varifold._engine.state import checked_array, per_class, per_slot, per_slot_and_class

cdef int32_t WIDE = 32         # levels beyond which a column is wide
cdef double FEW = 5.0          # instances that a frequent level has at least
cdef double MEMORY = 1000.0    # statistics that their mean square remembers
cdef double LEAST = 1e-4       # added to the mean square
cdef double LARGEST = 3.0      # bound of a statistic over its root mean square


cdef class CategoriesModel(Model):
    """Per level its weight by class, and the same of each column in the column's own slot."""

    def __cinit__(self, double smoothing):
        self.smoothing = smoothing
        self.wants_columns = True
        self.arrays.declare("counts", &self.counts, per_slot_and_class(low=0))
        self.arrays.declare("spread", &self.spread, per_slot(low=0))
        self.arrays.declare("class_weight", &self.class_weight, per_class(low=0))
        self.arrays.scratch(&self.levels, per_slot())
        self.arrays.scratch(&self.lift, per_class())
        self.arrays.scratch(&self.prepared, per_slot())
        self.arrays.scratch(&self.slot, per_slot())
        self.arrays.scratch(&self.x, per_slot())
        self.arrays.scratch(&self.raw, per_slot())
        self.arrays.scratch(&self.is_new, per_slot())
        self.arrays.scratch(&self.origin, per_slot())
        self.arrays.reserve_classes(2)
        self.stride = self.arrays.classes

    # ---------------------------------------------------------------- memory

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        self.stride = self.arrays.classes
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        if self.space.kind[slot] & INDICATOR and self.weight_of(slot) > 0.0:
            self.count_level(slot, -1)
        if not self.space.kind[slot] & COLUMN:    # a column may lose its numbers and keep its levels
            Model.forget(self, slot)

    cdef void count_level(self, int32_t slot, int change) noexcept nogil:
        """A level of a column was added or went."""
        cdef int32_t column = self.space.column[slot]
        self.wide_columns -= self.levels[column] > WIDE
        self.levels[column] += change
        self.wide_columns += self.levels[column] > WIDE

    # ---------------------------------------------------------------- levels

    cdef double weight_of(self, int32_t slot) noexcept nogil:
        """Weight learned of a level, or of all levels of a column."""
        cdef int c
        cdef double total = 0.0
        for c in range(self.classes):
            total += self.counts[slot * self.stride + c]
        return total

    cdef bint is_wide_level(self, int32_t slot) noexcept nogil:
        """Whether the slot is a level of a wide column."""
        return self.space.kind[slot] & INDICATOR and self.levels[self.space.column[slot]] > WIDE

    cdef bint is_frequent(self, int32_t slot) noexcept nogil:
        """Whether a level of a wide column is one of those that are shown."""
        cdef double n = self.weight_of(slot)
        return n >= FEW and WIDE * n >= self.weight_of(self.space.column[slot])

    cdef bint find_lift(self, int32_t slot) noexcept nogil:
        """Write a level's lift by class; False for a level that was never learned."""
        cdef int c, k = self.classes
        cdef double* level = self.counts + slot * self.stride
        cdef double* column = self.counts + self.space.column[slot] * self.stride
        cdef double n = self.weight_of(slot), total = self.weight_of(self.space.column[slot]), p
        if n <= 0.0:
            return False
        for c in range(k):
            p = (column[c] + 0.5) / (total + 0.5 * k)
            self.lift[c] = log((level[c] + self.smoothing * p) / ((n + self.smoothing) * p))
        return True

    cdef double statistic(self) noexcept nogil:
        """The statistic of the level that find_lift() was called for."""
        if self.classes == 2:
            return self.lift[1] - self.lift[0]
        return self.lift[argmax(self.classes, self.class_weight)]

    cdef double scaled(self, double statistic, int32_t column) noexcept nogil:
        """A statistic over its root mean square."""
        return min(max(statistic / sqrt(self.spread[column] + LEAST), -LARGEST), LARGEST)

    # ---------------------------------------------------------------- wide columns bounded

    cdef void rewrite(self, View* v) noexcept nogil:
        """Write the instance into `bounded`, in order of slots; levels that were never learned are left out."""
        cdef Py_ssize_t i, j, n = 0
        cdef int32_t slot, column
        cdef double x, raw
        for i in range(v.n):
            slot, x, raw = v.slot[i], v.x[i], v.raw[i]
            if self.is_wide_level(slot) and not self.is_frequent(slot):
                column = self.space.column[slot]
                if self.space.kind[column] & NUMERIC or not self.find_lift(slot):
                    continue
                raw = self.statistic()
                x = self.scaled(raw, column)
                slot = column
            j = self.make_room(n, slot)
            if j < 0:
                continue    # a second level of the column
            self.slot[j], self.x[j], self.raw[j], self.origin[j] = slot, x, raw, <int32_t> i
            self.is_new[j] = v.is_new[i] and slot == v.slot[i]
            n += 1
        self.bounded = v[0]
        self.bounded.n = n
        self.bounded.slot = self.slot
        self.bounded.x = self.x
        self.bounded.raw = self.raw
        self.bounded.is_new = self.is_new

    cdef Py_ssize_t make_room(self, Py_ssize_t n, int32_t slot) noexcept nogil:
        """Move the last of n entries up to make room for a slot; returns where, -1 if it is there already."""
        cdef Py_ssize_t i, at = n
        while at > 0 and self.slot[at - 1] > slot:
            at -= 1
        if at > 0 and self.slot[at - 1] == slot:
            return -1
        for i in range(n, at, -1):
            self.slot[i], self.x[i], self.raw[i] = self.slot[i - 1], self.x[i - 1], self.raw[i - 1]
            self.is_new[i], self.origin[i] = self.is_new[i - 1], self.origin[i - 1]
        return at

    cdef Py_ssize_t slots_to_prepare(self, const int32_t* slots, Py_ssize_t n) noexcept nogil:
        """Write these slots, and those of their wide columns, into `prepared`; returns how many there are."""
        cdef Py_ssize_t i, found = n
        memcpy(self.prepared, slots, n * sizeof(int32_t))
        for i in range(n):
            if self.is_wide_level(slots[i]) and found < self.capacity:    # a row of a block may hold levels of one column
                self.prepared[found] = self.space.column[slots[i]]
                found += 1
        return found

    cdef int32_t seen_as(self, int32_t slot) noexcept nogil:
        """The slot under which the feature of a slot stands in `bounded`."""
        return self.space.column[slot] if self.is_wide_level(slot) and not self.is_frequent(slot) else slot

    cdef double value_of(self, int32_t slot) noexcept nogil:
        """The size of the number that stands for the feature of a slot in `bounded`; 1 for what stands for itself."""
        if self.seen_as(slot) == slot:
            return 1.0
        return fabs(self.scaled(self.statistic(), self.space.column[slot])) if self.find_lift(slot) else 0.0

    # ---------------------------------------------------------------- as an expert

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c
        for c in range(self.classes):
            out[c] = log(self.class_weight[c] + 0.5)
        for i in range(v.n):
            if self.is_wide_level(v.slot[i]) and self.find_lift(v.slot[i]):
                for c in range(self.classes):
                    out[c] += self.lift[c]

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        memset(out, 0, v.n * sizeof(double))
        for i in range(v.n):
            if v.slot[i] == 0:
                out[i] = log(self.class_weight[label] + 0.5)
            elif self.is_wide_level(v.slot[i]) and self.find_lift(v.slot[i]):
                out[i] = self.lift[label]

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i
        cdef int32_t slot, column
        cdef double rate
        for i in range(v.n):
            slot = v.slot[i]
            if not self.space.kind[slot] & INDICATOR:
                continue
            column = self.space.column[slot]
            if self.is_wide_level(slot) and self.find_lift(slot):
                rate = 1.0 / min(max(self.weight_of(column), 1.0), MEMORY)
                self.spread[column] += rate * (self.statistic() ** 2 - self.spread[column])
            if self.weight_of(slot) == 0.0:
                self.count_level(slot, 1)
            self.counts[slot * self.stride + y] += w
            self.counts[column * self.stride + y] += w
        self.class_weight[y] += w

    # ---------------------------------------------------------------- looking inside and files

    def wide(self):
        """Names of the columns that are wide."""
        return [self.space.name_of(slot) for slot in self.space.columns() if self.levels[<Py_ssize_t> slot] > WIDE]

    def dump(self, Py_ssize_t size):
        """Rows of slots that are no level and no column are left out."""
        arrays = Model.dump(self, size)
        held = np.flatnonzero(arrays["counts"].any(axis=1))
        return {**arrays, "slots": held, "counts": arrays["counts"][held, :self.classes], "spread": arrays["spread"][held]}

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t slot
        slots = checked_array(arrays, "slots", "i", (None,), 1, self.space.size - 1)
        classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        counts, spread = np.zeros((self.space.size, max(classes, 1))), np.zeros(self.space.size)
        counts[slots, :classes] = checked_array(arrays, "counts", "f", (len(slots), classes))
        spread[slots] = checked_array(arrays, "spread", "f", (len(slots),))
        Model.fill(self, {**arrays, "counts": counts, "spread": spread}, capacity)
        self.stride = self.arrays.classes
        for slot in slots:
            if self.space.kind[slot] & INDICATOR:
                self.count_level(<int32_t> slot, 1)

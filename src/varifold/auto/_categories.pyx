"""String columns with many levels: the frequent levels, and one statistic of the label in place of each other level.

A column is *wide* when more than WIDE levels of it are known. Of a wide column some experts see only the levels that
hold at least 1 / WIDE of its instances, of which there are at most WIDE, and in place of any other level one number in
the slot of the column itself: the *statistic* of the level. The lift of class c in level l is

    log((n_lc + m p_c) / ((n_l + m) p_c)),

where n_lc is the weight of class c among the instances of the level so far, p_c the share of the class in the column
and m the `smoothing`. The statistic is the lift of the second class less that of the first or, with more than two
classes, the lift of the most frequent one. It is computed before the instance is counted, so that no label leaks into
its own instance, and divided by its root mean square. As an expert, the model adds up the lifts of the levels.
"""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport COLUMN, INDICATOR, NUMERIC
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax

from varifold._engine.state import checked_array, per_class, per_slot, per_slot_and_class

cdef int32_t WIDE = 32         # levels beyond which a column is wide
cdef double FEWEST = 5.0       # instances of a frequent level
cdef double MEMORY = 1000.0    # instances over which the squares of statistics are averaged
cdef double SMALLEST = 1e-4    # added to the mean square
cdef double LARGEST = 3.0      # bound of a statistic divided by its root mean square


cdef class CategoriesModel(Model):
    """Weight by class of each level and, in the slot of its column, of all levels of the column."""

    def __cinit__(self, double smoothing):
        self.smoothing = smoothing
        self.wants_columns = True
        self.arrays.declare("counts", &self.counts, per_slot_and_class(low=0))
        self.arrays.declare("mean_square", &self.mean_square, per_slot(low=0))
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
        if not self.space.kind[slot] & COLUMN:    # a column may lose its numeric values and keep its levels
            Model.forget(self, slot)

    cdef void count_level(self, int32_t slot, int change) noexcept nogil:
        """Count a level that was added to its column (1) or removed (-1)."""
        cdef int32_t column = self.space.column[slot]
        self.wide_columns -= self.levels[column] > WIDE
        self.levels[column] += change
        self.wide_columns += self.levels[column] > WIDE

    # ---------------------------------------------------------------- levels

    cdef double weight_of(self, int32_t slot) noexcept nogil:
        """Return the weight learned of a level, or of all levels of a column."""
        cdef int c
        cdef double total = 0.0
        for c in range(self.classes):
            total += self.counts[slot * self.stride + c]
        return total

    cdef bint is_wide_level(self, int32_t slot) noexcept nogil:
        """Return whether the slot is a level of a wide column."""
        return self.space.kind[slot] & INDICATOR and self.levels[self.space.column[slot]] > WIDE

    cdef bint is_frequent(self, int32_t slot) noexcept nogil:
        """Return whether a level of a wide column is one that bounded experts see."""
        cdef double n = self.weight_of(slot)
        return n >= FEWEST and WIDE * n >= self.weight_of(self.space.column[slot])

    cdef bint find_lift(self, int32_t slot) noexcept nogil:
        """Compute a level's lift by class (see above); False for a level that was never learned."""
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
        """Return the statistic of the level of the last find_lift()."""
        if self.classes == 2:
            return self.lift[1] - self.lift[0]
        return self.lift[argmax(self.classes, self.class_weight)]

    cdef double scaled(self, double statistic, int32_t column) noexcept nogil:
        """Divide a statistic by its root mean square."""
        return min(max(statistic / sqrt(self.mean_square[column] + SMALLEST), -LARGEST), LARGEST)

    # ---------------------------------------------------------------- what bounded experts see

    cdef void bound(self, View* v) noexcept nogil:
        """Write the instance into `bounded`, in order of slots, without levels that were never learned."""
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
            j = self.insert(n, slot)
            if j < 0:
                continue    # another level of the column has the slot
            self.slot[j], self.x[j], self.raw[j], self.origin[j] = slot, x, raw, <int32_t> i
            self.is_new[j] = v.is_new[i] and slot == v.slot[i]
            n += 1
        self.bounded = v[0]
        self.bounded.n = n
        self.bounded.slot = self.slot
        self.bounded.x = self.x
        self.bounded.raw = self.raw
        self.bounded.is_new = self.is_new

    cdef Py_ssize_t insert(self, Py_ssize_t n, int32_t slot) noexcept nogil:
        """Shift the last of n entries to make a gap for the slot; return its position, -1 if the slot is present."""
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
        """Write these slots, and those of their wide columns, into `prepared`; return their number."""
        cdef Py_ssize_t i, count = n
        memcpy(self.prepared, slots, n * sizeof(int32_t))
        for i in range(n):
            if self.is_wide_level(slots[i]) and count < self.capacity:    # a block may hold several levels of a column
                self.prepared[count] = self.space.column[slots[i]]
                count += 1
        return count

    cdef int32_t seen_as(self, int32_t slot) noexcept nogil:
        """Return the slot that a feature has in `bounded`."""
        return self.space.column[slot] if self.is_wide_level(slot) and not self.is_frequent(slot) else slot

    cdef double value_of(self, int32_t slot) noexcept nogil:
        """Return the size of the statistic that replaces a feature in `bounded`; 1 if it is not replaced."""
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
                self.mean_square[column] += rate * (self.statistic() ** 2 - self.mean_square[column])
            if self.weight_of(slot) == 0.0:
                self.count_level(slot, 1)
            self.counts[slot * self.stride + y] += w
            self.counts[column * self.stride + y] += w
        self.class_weight[y] += w

    # ---------------------------------------------------------------- looking inside and files

    def wide(self):
        """Return the names of the wide columns."""
        return [self.space.name_of(slot) for slot in self.space.columns() if self.levels[<Py_ssize_t> slot] > WIDE]

    def dump(self, Py_ssize_t size):
        """Return the state without the rows of slots that are neither a level nor a column."""
        arrays = Model.dump(self, size)
        rows = np.flatnonzero(arrays["counts"].any(axis=1))
        return {**arrays, "slots": rows, "counts": arrays["counts"][rows, :self.classes],
                "mean_square": arrays["mean_square"][rows]}

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t slot
        slots = checked_array(arrays, "slots", "i", (None,), 1, self.space.size - 1)
        classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        counts, mean_square = np.zeros((self.space.size, max(classes, 1))), np.zeros(self.space.size)
        counts[slots, :classes] = checked_array(arrays, "counts", "f", (len(slots), classes))
        mean_square[slots] = checked_array(arrays, "mean_square", "f", (len(slots),))
        Model.fill(self, {**arrays, "counts": counts, "mean_square": mean_square}, capacity)
        self.stride = self.arrays.classes
        for slot in slots:
            if self.space.kind[slot] & INDICATOR:
                self.count_level(<int32_t> slot, 1)

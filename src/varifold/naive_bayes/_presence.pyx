"""Naive Bayes on which columns are present and which are absent; values are not used.

A column is present in an instance of class c at the rate (present_c + 1) / (n_c - before_c + 2), counted since the
column was first seen: before that its absence is no information.

Where most of many columns are absent, as in text, absence is not looked at: the score of a class is log P(class) + sum
over the columns present of log P(class | present) / P(class), where one instance with the classes' shares smooths
P(class | present). With the rates above a word that hardly ever occurs would favour the rarest class, and the absence of
thousands of words would outweigh those that occur.
"""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memmove

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold._numeric.ascending cimport place_among

from varifold._engine.state import checked_array, per_class, per_slot, per_slot_and_class

cdef enum:
    MANY_COLUMNS = 256     # with more columns, of which an instance has less than one in SPARSE, and
    SPARSE = 8
    MOST_COLUMNS = 2048    # with more columns in any case only those present are looked at

cdef double UNKNOWN = 1.0    # marks a logarithm as not computed: logarithms of rates are never positive
cdef int FEW = 2             # number of classes up to which computing logarithms is cheaper than caching them


cdef inline double sum_of(int k, double* row) noexcept nogil:
    cdef int c
    cdef double total = 0.0
    for c in range(k):
        total += row[c]
    return total


cdef inline double log_rate(double present, double seen, bint here) noexcept nogil:
    """Return the logarithm of the rate at which a column is present in a class, or absent from it."""
    cdef double rate = (present + 1.0) / (seen + 2.0)
    rate = min(max(rate, 1e-9), 1.0 - 1e-9)
    return log(rate if here else 1.0 - rate)


cdef class PresenceModel(Model):
    """Rate of presence per column and class since the column was first seen; its view consists of columns."""

    cdef double* present                   # [slot][class]: weight of the class's instances that had the column
    cdef double* before                    # [slot][class]: weight of the class before the column was first seen
    cdef double* counts                    # [class]: weight learned
    cdef double* share                     # scratch [class]: P(class), while scoring
    cdef double* product                   # scratch [class]
    cdef double* logs                      # scratch [slot][class][absent, present]: logarithms of rates
    cdef Py_ssize_t stride                 # reserved classes
    cdef int32_t* columns                  # slots of the columns seen, ascending
    cdef Py_ssize_t n_columns

    def __cinit__(self):
        self.arrays.declare("present", &self.present, per_slot_and_class(low=0))
        self.arrays.declare("before", &self.before, per_slot_and_class(low=0))
        self.arrays.declare("counts", &self.counts, per_class(low=0))
        self.arrays.scratch(&self.logs, per_slot_and_class(width=2, first=UNKNOWN))
        self.arrays.scratch(&self.columns, per_slot())
        self.arrays.scratch(&self.share, per_class())
        self.arrays.scratch(&self.product, per_class())
        self.arrays.reserve_classes(2)
        self.stride = self.arrays.classes

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        self.stride = self.arrays.classes
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef Py_ssize_t at = place_among(self.columns, self.n_columns, slot)
        if at < self.n_columns and self.columns[at] == slot:
            self.n_columns -= 1
            memmove(self.columns + at, self.columns + at + 1, (self.n_columns - at) * sizeof(int32_t))
        Model.forget(self, slot)

    cdef void forget_logs(self, int32_t slot) noexcept nogil:
        """Mark a column's logarithms for recomputation."""
        cdef Py_ssize_t i
        for i in range(2 * slot * self.stride, 2 * (slot + 1) * self.stride):
            self.logs[i] = UNKNOWN

    cdef void add_column(self, int32_t slot) noexcept nogil:
        """Add a column that was not seen before."""
        cdef Py_ssize_t at = place_among(self.columns, self.n_columns, slot)
        memmove(self.columns + at + 1, self.columns + at, (self.n_columns - at) * sizeof(int32_t))
        self.columns[at] = slot
        self.n_columns += 1

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Score all classes; with more than FEW, recompute only the logarithms that changed."""
        cdef Py_ssize_t at, slot, i = 0
        cdef int c
        cdef bint here
        cdef double* present
        cdef double* before
        cdef double* known
        for c in range(self.classes):
            out[c] = log(self.counts[c] + 0.5)
        if self.is_sparse(v.n):
            self.add_present(v, out)
            return
        for at in range(self.n_columns):
            slot = self.columns[at]
            while i < v.n and v.slot[i] < slot:
                i += 1
            here = i < v.n and v.slot[i] == slot
            present = self.present + slot * self.stride
            before = self.before + slot * self.stride
            if self.classes <= FEW:
                for c in range(self.classes):
                    out[c] += log_rate(present[c], self.counts[c] - before[c], here)
                continue
            known = self.logs + 2 * slot * self.stride + here
            for c in range(self.classes):
                if known[2 * c] == UNKNOWN:
                    known[2 * c] = log_rate(present[c], self.counts[c] - before[c], here)
                out[c] += known[2 * c]

    cdef bint is_sparse(self, Py_ssize_t present) noexcept nogil:
        """Return whether most columns are absent, so that only those present are read."""
        return (self.n_columns >= MANY_COLUMNS and SPARSE * present < self.n_columns) or self.n_columns >= MOST_COLUMNS

    cdef void add_present(self, View* v, double* out) noexcept nogil:
        """Add log P(class | present) / P(class) of the columns present to the scores."""
        cdef Py_ssize_t i
        cdef int c
        cdef double present, total = sum_of(self.classes, self.counts) + 0.5 * self.classes
        cdef double* row
        for c in range(self.classes):
            self.share[c] = (self.counts[c] + 0.5) / total
            self.product[c] = 1.0
        for i in range(v.n):
            if v.slot[i] == 0:
                continue
            row = self.present + v.slot[i] * self.stride
            present = 1.0 + sum_of(self.classes, row)
            for c in range(self.classes):
                self.product[c] *= (row[c] + self.share[c]) / (self.share[c] * present)
                if not 1e-200 < self.product[c] < 1e200:
                    out[c] += log(self.product[c])
                    self.product[c] = 1.0
        for c in range(self.classes):
            out[c] += log(self.product[c])

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i, at
        cdef double* present
        for i in range(v.n):
            if v.slot[i] == 0:
                continue
            present = self.present + v.slot[i] * self.stride
            if sum_of(self.classes, present) == 0.0:
                self.add_column(v.slot[i])
                memcpy(self.before + v.slot[i] * self.stride, self.counts, self.classes * sizeof(double))
                self.forget_logs(v.slot[i])
            present[y] += w
        self.counts[y] += w
        for i in range(self.n_columns if self.classes > FEW else 0):
            at = 2 * (self.columns[i] * self.stride + y)
            self.logs[at] = self.logs[at + 1] = UNKNOWN

    def dump(self, Py_ssize_t size):
        """Save both arrays as one, `table`, with one column per class."""
        arrays = Model.dump(self, size)
        arrays["table"] = np.stack([arrays.pop("present"), arrays.pop("before")])[:, :, :self.classes].copy()
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        table = checked_array(arrays, "table", "f", (2, None, None))
        if table.shape[2] == 0:
            table = np.zeros((2, table.shape[1], 1))
        Model.fill(self, {**arrays, "present": table[0], "before": table[1]}, capacity)
        self.stride = self.arrays.classes
        for slot in np.flatnonzero(table[0].any(axis=1)).tolist():
            self.add_column(slot)

    def notes(self):
        if self.n_columns >= MOST_COLUMNS:
            return [f"more than {MOST_COLUMNS:,} columns: their absence is not looked at"]
        return []

"""Nearest neighbours among the last instances, compared on the features that both have."""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

cdef double UNLIKE = 2.0    # mean squared difference of two unrelated standardised values
cdef double DOUBT = 2.0     # features' worth of it that every comparison starts with


cdef class NeighboursModel(Model):
    """A ring of instances (slot, scaled value, label); the vote of the k nearest, shrunk to the class frequencies."""

    def __cinit__(self, int k, Py_ssize_t window, Py_ssize_t widest=512):
        self.k = k
        self.window = window
        self.widest = widest
        self.row = <Row*> calloc(window, sizeof(Row))
        if self.row == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.row != NULL:
            for i in range(self.window):
                free(self.row[i].slot)
                free(self.row[i].x)
        free(self.row)
        free(self.counts)
        free(self.dense)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t i
        if capacity <= self.capacity:
            return 0
        self.dense = <double*> realloc(self.dense, capacity * sizeof(double))
        if self.dense == NULL:
            raise MemoryError
        for i in range(capacity):
            self.dense[i] = 1e300
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        if self.classes + 1 > self.room:
            self.room = 2 * self.classes + 4
            self.counts = <double*> realloc(self.counts, self.room * sizeof(double))
            if self.counts == NULL:
                raise MemoryError
        self.counts[self.classes] = 0.0
        Model.add_class(self)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Take the slot out of every instance kept: its number may come to mean another feature."""
        cdef Py_ssize_t i, j, n
        for i in range(self.window):
            n = 0
            for j in range(self.row[i].n):
                if self.row[i].slot[j] != slot:
                    self.row[i].slot[n] = self.row[i].slot[j]
                    self.row[i].x[n] = self.row[i].x[j]
                    n += 1
            self.row[i].n = n

    cdef int make_row(self, Row* r, Py_ssize_t n) noexcept nogil:
        cdef int32_t* slot
        cdef double* x
        if n > r.room:
            slot = <int32_t*> realloc(r.slot, n * sizeof(int32_t))
            if slot == NULL:
                return -1
            r.slot = slot
            x = <double*> realloc(r.x, n * sizeof(double))
            if x == NULL:
                return -1
            r.x = x
            r.room = n
        r.n = n
        return 0

    cdef double far(self, Row* r) noexcept nogil:
        """Mean squared difference over the shared features, shrunk to that of unrelated ones."""
        cdef Py_ssize_t j
        cdef double d, total = UNLIKE * DOUBT, shared = DOUBT
        for j in range(r.n):
            d = self.dense[r.slot[j]]
            if d < 1e299:
                d -= r.x[j]
                total += d * d
                shared += 1.0
        return total / shared

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef double[64] near
        cdef int[64] label
        cdef double[64] weight
        cdef Py_ssize_t i, held = min(self.taken, <int64_t> self.window)
        cdef int c, j, found = 0
        cdef double d, total = 0.0
        for i in range(v.n):
            if v.slot[i] != 0:
                self.dense[v.slot[i]] = v.x[i]
        for i in range(held):
            d = self.far(&self.row[i])
            if found == self.k and d >= near[found - 1]:
                continue
            j = found if found < self.k else found - 1
            while j > 0 and near[j - 1] > d:
                near[j] = near[j - 1]
                label[j] = label[j - 1]
                weight[j] = weight[j - 1]
                j -= 1
            near[j] = d
            label[j] = self.row[i].y
            weight[j] = self.row[i].w
            if found < self.k:
                found += 1
        for i in range(v.n):
            self.dense[v.slot[i]] = 1e300
        for c in range(self.classes):
            total += self.counts[c]
        for c in range(self.classes):
            out[c] = (self.counts[c] + 1e-9) / (total + 1e-9)
        for j in range(found):
            out[label[j]] += weight[j]
        for c in range(self.classes):
            out[c] = log(out[c])

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Row* r = &self.row[self.taken % self.window]
        cdef Py_ssize_t first = 1 if v.n and v.slot[0] == 0 else 0
        cdef Py_ssize_t n = min(v.n - first, self.widest)
        self.counts[y] += w
        if self.make_row(r, n) < 0:
            return
        memcpy(r.slot, v.slot + first, n * sizeof(int32_t))
        memcpy(r.x, v.x + first, n * sizeof(double))
        r.y = y
        r.w = w
        self.taken += 1

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """How much a feature's absence would lower the score; the rest goes to the intercept."""
        cdef double* scores = <double*> calloc(self.classes, sizeof(double))
        cdef int32_t* slot = <int32_t*> calloc(v.n + 1, sizeof(int32_t))
        cdef double* x = <double*> calloc(v.n + 1, sizeof(double))
        cdef View part = v[0]
        cdef Py_ssize_t i
        cdef double whole, total = 0.0
        memset(out, 0, v.n * sizeof(double))
        if scores != NULL and slot != NULL and x != NULL:
            self.scores(v, scores)
            whole = scores[label]
            part.slot = slot
            part.x = x
            part.n = v.n - 1
            for i in range(1, v.n):
                memcpy(slot, v.slot, i * sizeof(int32_t))
                memcpy(slot + i, v.slot + i + 1, (v.n - 1 - i) * sizeof(int32_t))
                memcpy(x, v.x, i * sizeof(double))
                memcpy(x + i, v.x + i + 1, (v.n - 1 - i) * sizeof(double))
                self.scores(&part, scores)
                out[i] = whole - scores[label]
                total += out[i]
            out[0] = whole - total
        free(scores)
        free(slot)
        free(x)

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t i, j, held = min(self.taken, <int64_t> self.window)
        ends = np.zeros(held + 1, dtype=np.int64)
        for i in range(held):
            ends[i + 1] = ends[i] + self.row[i].n
        slots = np.zeros(ends[held], dtype=np.int32)
        x = np.zeros(ends[held])
        for i in range(held):
            for j in range(self.row[i].n):
                slots[ends[i] + j] = self.row[i].slot[j]
                x[ends[i] + j] = self.row[i].x[j]
        return {
            **Model.dump(self, size), "ends": ends, "slots": slots, "x": x,
            "y": np.array([self.row[i].y for i in range(held)], dtype=np.int64),
            "w": np.array([self.row[i].w for i in range(held)], dtype=np.float64),
            "taken": np.array([self.taken], dtype=np.int64),
            "counts": np.array([self.counts[i] for i in range(self.classes)], dtype=np.float64),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t i, j, lo, hi
        Model.fill(self, arrays, capacity)
        self.grow(capacity)
        held = len(checked_array(arrays, "y", "i", (None,), 0, self.classes - 1))
        ends = checked_array(arrays, "ends", "i", (held + 1,), 0, len(arrays["x"]))
        checked_array(arrays, "w", "f", (held,), 0)
        checked_array(arrays, "x", "f", (int(ends[held]),))
        checked_array(arrays, "slots", "i", (int(ends[held]),), 0, capacity - 1)
        checked_array(arrays, "counts", "f", (self.classes,), 0)
        taken = int(checked_array(arrays, "taken", "i", (1,), 0)[0])
        if held != min(taken, self.window) or ends[0] != 0 or (np.diff(ends.astype(np.int64)) < 0).any():
            raise ValueError("the instances kept do not fit the window")
        self.room = 2 * self.classes + 4
        self.counts = <double*> realloc(self.counts, self.room * sizeof(double))
        if self.counts == NULL:
            raise MemoryError
        for i in range(self.classes):
            self.counts[i] = arrays["counts"][i]
        self.taken = int(arrays["taken"][0])
        for i in range(len(arrays["y"])):
            lo, hi = int(arrays["ends"][i]), int(arrays["ends"][i + 1])
            if self.make_row(&self.row[i], hi - lo) < 0:
                raise MemoryError
            for j in range(hi - lo):
                self.row[i].slot[j] = arrays["slots"][lo + j]
                self.row[i].x[j] = arrays["x"][lo + j]
            self.row[i].y = arrays["y"][i]
            self.row[i].w = arrays["w"][i]

    def nbytes(self):
        cdef Py_ssize_t i
        return (self.window * sizeof(Row) + self.capacity * sizeof(double)
                + sum(self.row[i].room * (sizeof(int32_t) + sizeof(double)) for i in range(self.window)))

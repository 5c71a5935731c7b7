"""Naive Bayes on which columns are there and which are not: what absence alone says of the label."""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import checked_array


cdef class PresenceModel(Model):
    """Per column and class a Bernoulli rate of presence since the column was first met; its view holds columns."""

    def __cinit__(self, Py_ssize_t max_columns=2048):
        self.max_columns = max_columns

    def __dealloc__(self):
        free(self.met)
        free(self.since)
        free(self.counts)

    cdef int fit(self, Py_ssize_t capacity, Py_ssize_t room) except -1:
        """Room for slots and classes, what is held laid out anew."""
        cdef double* met = <double*> calloc(capacity * room + 1, sizeof(double))
        cdef double* since = <double*> calloc(capacity * room + 1, sizeof(double))
        cdef double* counts = <double*> calloc(room + 1, sizeof(double))
        cdef Py_ssize_t slot, held = min(self.capacity, capacity)
        if met == NULL or since == NULL or counts == NULL:
            raise MemoryError
        if self.room:
            for slot in range(held):
                memcpy(met + slot * room, self.met + slot * self.room, self.classes * sizeof(double))
                memcpy(since + slot * room, self.since + slot * self.room, self.classes * sizeof(double))
            memcpy(counts, self.counts, self.classes * sizeof(double))
        free(self.met)
        free(self.since)
        free(self.counts)
        self.met = met
        self.since = since
        self.counts = counts
        self.capacity = capacity
        self.room = room
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if capacity > self.capacity:
            self.fit(capacity, max(self.room, 2))
        return 0

    cdef int add_class(self) except -1:
        if self.classes + 1 > self.room:
            self.fit(self.capacity, 2 * self.room)
        Model.add_class(self)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        memset(self.met + slot * self.room, 0, self.room * sizeof(double))
        memset(self.since + slot * self.room, 0, self.room * sizeof(double))

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t slot, i
        cdef int c
        cdef double total, rate
        for c in range(self.classes):
            out[c] = log(self.counts[c] + 0.5)
        if self.space.size > self.max_columns:
            return
        i = 0
        for slot in range(1, self.space.size):
            while i < v.n and v.slot[i] < slot:
                i += 1
            total = 0.0
            for c in range(self.classes):
                total += self.met[slot * self.room + c]
            if total == 0.0:
                continue
            for c in range(self.classes):
                rate = (self.met[slot * self.room + c] + 1.0) / (
                    self.counts[c] - self.since[slot * self.room + c] + 2.0)
                rate = min(max(rate, 1e-9), 1.0 - 1e-9)
                out[c] += log(rate if i < v.n and v.slot[i] == slot else 1.0 - rate)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef Py_ssize_t i, slot
        cdef int c
        cdef double total
        for i in range(v.n):
            slot = v.slot[i]
            if slot == 0:
                continue
            total = 0.0
            for c in range(self.classes):
                total += self.met[slot * self.room + c]
            if total == 0.0:
                memcpy(self.since + slot * self.room, self.counts, self.classes * sizeof(double))
            self.met[slot * self.room + y] += w
        self.counts[y] += w

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t slot
        cdef int c
        arrays = Model.dump(self, size)
        arrays["counts"] = np.array([self.counts[c] for c in range(self.classes)], dtype=np.float64)
        table = np.zeros((2, size, self.classes))
        for slot in range(size):
            for c in range(self.classes):
                table[0, slot, c] = self.met[slot * self.room + c]
                table[1, slot, c] = self.since[slot * self.room + c]
        arrays["table"] = table
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t slot
        cdef int c
        classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        table = checked_array(arrays, "table", "f", (2, None, classes), 0)
        checked_array(arrays, "counts", "f", (classes,), 0)
        if table.shape[1] > capacity:
            raise ValueError("the table of columns does not belong to this model")
        self.fit(capacity, max(2, classes))
        Model.fill(self, arrays, capacity)
        for c in range(self.classes):
            self.counts[c] = arrays["counts"][c]
        for slot in range(table.shape[1]):
            for c in range(self.classes):
                self.met[slot * self.room + c] = table[0, slot, c]
                self.since[slot * self.room + c] = table[1, slot, c]

    def notes(self):
        if self.space.size > self.max_columns:
            return [f"more than {self.max_columns} columns: their presence is not looked at"]
        return []

    def nbytes(self):
        return 2 * self.capacity * self.room * sizeof(double)

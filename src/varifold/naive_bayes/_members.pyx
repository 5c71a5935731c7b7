"""Members of an ensemble of naive Bayes classifiers, each with its own features, oldest first."""

import numpy as np

from libc.stdint cimport int32_t, uint8_t

from varifold._engine.entries cimport cut_entries
from varifold._engine.state cimport State

from varifold._engine.state import checked_array, per_slot, per_slot_and_class


cdef class Members:
    """List of at most `most` members. Call reserve() before add()."""

    def __cinit__(self, Py_ssize_t most, Py_ssize_t span):
        self.most = most
        self.span = span
        self.records = State()
        self.entries = State()
        self.records.declare("member.size", &self.size, per_slot(low=0))
        self.records.declare("member.age", &self.age, per_slot(low=1, high=1e15))
        self.records.declare("member.marks", &self.marks, per_slot(low=0, high=1e6))
        self.records.declare("member.right", &self.right, per_slot(width=span, low=0, high=1))
        self.records.declare("member.counts", &self.counts, per_slot_and_class(low=0))
        self.records.scratch(&self.rights, per_slot())
        self.entries.declare("entry.slot", &self.slot, per_slot())
        self.entries.declare("entry.present", &self.present, per_slot_and_class(low=0))
        self.reserve_classes(2)

    # ---------------------------------------------------------------- memory

    cdef int reserve(self, Py_ssize_t features) except -1:
        """Reserve memory for one more member of this many features."""
        cdef Py_ssize_t members = min(self.most, self.n + 1), needed = self.used + features
        if members > self.records.slots:
            self.records.reserve_slots(min(self.most, members + members // 2))
        if needed > self.entries.slots:
            self.entries.reserve_slots(needed + needed // 2)
        return 0

    cdef int reserve_classes(self, Py_ssize_t classes) except -1:
        self.records.reserve_classes(classes)
        self.entries.reserve_classes(classes)
        return 0

    # ---------------------------------------------------------------- learning

    cdef double accuracy(self, Py_ssize_t j) noexcept nogil:
        """Return the accuracy of a member's last predictions; 1 before the first."""
        cdef Py_ssize_t judged = min(self.span, <Py_ssize_t> self.age[j] - 1)
        return <double> self.rights[j] / judged if judged else 1.0

    cdef void judge(self, Py_ssize_t j, bint right) noexcept nogil:
        """Record whether a member's prediction for the instance about to be learned was correct."""
        cdef uint8_t* place = self.right + j * self.span + (self.age[j] - 1) % self.span
        self.rights[j] += <int32_t> right - <int32_t> place[0]
        place[0] = right

    cdef void absorb(self, const uint8_t* here, int y, double w) noexcept nogil:
        """Count the instance, whose slots are marked in `here`, in every member."""
        cdef Py_ssize_t j, e, stride = self.entries.classes
        for j in range(self.n):
            self.age[j] += 1
            self.counts[j * self.records.classes + y] += w
        for e in range(self.used):
            if here[self.slot[e]]:
                self.present[e * stride + y] += w

    cdef void add(self, const int32_t* slots, Py_ssize_t size, const uint8_t* here, int y, double w) noexcept nogil:
        """Add a member with these features and count its first instance; call reserve() first."""
        cdef Py_ssize_t i, e
        for i in range(size):
            e = self.used + i
            self.slot[e] = slots[i]
            self.present[e * self.entries.classes + y] = w if here[slots[i]] else 0.0
        self.size[self.n] = <int32_t> size
        self.age[self.n] = 1
        self.counts[self.n * self.records.classes + y] = w
        self.used += size
        self.n += 1

    cdef void remove(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t i, start = 0, size = self.size[j]
        for i in range(j):
            start += self.size[i]
        cut_entries(self.entries, start, size, self.used)
        cut_entries(self.records, j, 1, self.n)
        self.used -= size
        self.n -= 1

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove a feature from every member that has it."""
        cdef Py_ssize_t j, e = 0, end
        for j in range(self.n):
            end = e + self.size[j]
            while e < end and self.slot[e] < slot:
                e += 1
            if e < end and self.slot[e] == slot:
                cut_entries(self.entries, e, 1, self.used)
                self.used -= 1
                self.size[j] -= 1
                end -= 1
            e = end

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t classes):
        """Return the members and their entries as arrays."""
        return {**self.records.dump(self.n, classes), **self.entries.dump(self.used, classes)}

    def fill(self, dict arrays, Py_ssize_t capacity, Py_ssize_t classes):
        """Restore and validate the arrays from dump(); slots are below `capacity`."""
        cdef Py_ssize_t j
        sizes = checked_array(arrays, "member.size", "i", (None,), 0, capacity)
        slots = checked_array(arrays, "entry.slot", "i", (int(sizes.sum()),), 1, capacity - 1)
        if len(sizes) > self.most:
            raise ValueError(f"{len(sizes)} members where {self.most} are allowed")
        ends = np.cumsum(sizes)
        for end, size in zip(ends.tolist(), sizes.tolist()):
            if (np.diff(slots[end - size:end].astype(np.int64)) <= 0).any():
                raise ValueError("the features of a member are not in order")
        self.records.fill(arrays, len(sizes), len(sizes), classes)
        self.entries.fill(arrays, len(slots), len(slots), classes)
        self.n = len(sizes)
        self.used = len(slots)
        for j in range(self.n):
            self.rights[j] = int(arrays["member.right"][j].sum())

    def nbytes(self):
        """Return the allocated bytes."""
        return self.records.nbytes() + self.entries.nbytes()

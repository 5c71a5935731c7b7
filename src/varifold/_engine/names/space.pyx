"""A learner's feature space: slots with first seen, last seen and count."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from varifold._engine.names.table cimport NameTable
from varifold._numeric.memory cimport resize_zeroed


cdef class Space(NameTable):
    """Feature name -> slot, and when each was seen."""

    def __cinit__(self):
        # a base class's __cinit__ calls only its own grow(), so the first memory is allocated here
        self.grow(self.capacity)

    def __dealloc__(self):
        free(self.seen)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        NameTable.grow(self, capacity)
        if capacity > self.seen_capacity:
            if resize_zeroed(<void**> &self.seen, self.seen_capacity * sizeof(Seen), capacity * sizeof(Seen)) < 0:
                raise MemoryError
            self.seen_capacity = capacity
        return 0

    cdef int remove(self, int32_t i) except -1:
        NameTable.remove(self, i)
        self.evictions += 1
        return 0

    cdef int erase(self, int32_t i) except -1:
        NameTable.erase(self, i)
        memset(&self.seen[i], 0, sizeof(Seen))
        return 0

    def seen_table(self):
        """Return (first, last, count) by slot, as an int64 array of three columns."""
        out = np.zeros((self.size, 3), dtype=np.int64)
        cdef int64_t[:, ::1] view = out
        cdef Py_ssize_t i
        for i in range(self.size):
            view[i, 0] = seen_first(&self.seen[i])
            view[i, 1] = seen_last(&self.seen[i])
            view[i, 2] = seen_count(&self.seen[i])
        return out

    def restore_seen(self, table):
        """Restore what seen_table() returned."""
        cdef int64_t[:, ::1] view = np.ascontiguousarray(table, dtype=np.int64)
        cdef Py_ssize_t i
        if view.shape[0] != self.size or view.shape[1] != 3:
            raise ValueError("the table of seen features does not fit the names")
        for i in range(self.size):
            seen_set(&self.seen[i], view[i, 0], view[i, 1], view[i, 2])

    def joint_occurrences(self, dict changes):
        """Return {slot: (first, last, count)} of features renamed to known names, both counted together."""
        cdef Seen* a
        cdef Seen* b
        found = {}
        for slot, name in changes.items():
            other = self.id_of(name)
            if other >= 0 and other not in changes:
                a, b = &self.seen[<Py_ssize_t> slot], &self.seen[<Py_ssize_t> other]
                first = min([step for step in (seen_first(a), seen_first(b)) if step], default=0)
                last = max(seen_last(a), seen_last(b))
                # instances with both count at most once
                found[slot] = first, last, min(seen_count(a) + seen_count(b), last - first + 1 if first else 0)
        return found

    def set_occurrences(self, dict occurrences):
        """Set what joint_occurrences() returned."""
        for slot, (first, last, count) in occurrences.items():
            seen_set(&self.seen[<Py_ssize_t> slot], first, last, count)

    def nbytes(self):
        """Return bytes of names and counts, without the name objects themselves."""
        per_id = sizeof(void*) + sizeof(int32_t) + 1
        return {"names": self.capacity * per_id + (self.mask + 1) * sizeof(int32_t), "seen": self.capacity * sizeof(Seen)}

"""Features that appear and vanish: new names are checked and admitted, old ones evicted or renamed.

Space, scaler and model grow and forget together here. Memory for an instance is reserved before anything changes: if
there is none, the learner is as it was.
"""

import numpy as np

from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_READ_CHAR
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from varifold._engine.conformal.levels cimport Conformal
from varifold._engine.instance cimport Instance
from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport FREE, INDICATOR, NUMERIC
from varifold._engine.names.reading cimport conflict_error
from varifold._engine.names.space cimport Space, seen_last
from varifold._numeric.hashing cimport mix
from varifold._numeric.memory cimport resize_zeroed

from varifold._engine.state import checked_array

cdef enum:
    WIDE = 1024          # limit from which on a new name must come back before another is evicted for it,
    SOON = 3             # this many times; two bits of a fingerprint
    MOST_WAITING = 1 << 20   # most places for names that wait: a limit that is never reached costs at most 4 MB


def pending_order(entry):
    """Order ints before strs."""
    return (type(entry[0]) is str, entry[0])


cdef int sort_pending(list pending) except -1:
    """Order new names, which differ: ints before strs."""
    cdef tuple entry
    for entry in pending:
        if type(entry[0]) is not str:
            pending.sort(key=pending_order)
            return 0
    pending.sort()
    return 0


cdef uint64_t name_hash(object name) except? 0:
    """Return a hash of a name that is the same in every process; 1 and "1" differ."""
    cdef str text = name if type(name) is str else f"\0{name}"
    cdef uint64_t h = 0
    cdef Py_ssize_t i
    for i in range(len(text)):
        h = mix(h ^ <uint64_t> PyUnicode_READ_CHAR(text, i))
    return h


cdef class Admission:
    """Keeps space, scaler and model consistent while features appear and vanish."""

    def __cinit__(self, Instance instance not None, Model model not None, Conformal conformal, max_features, str evict):
        self.instance = instance
        self.space = instance.space
        self.scaler = instance.scaler
        self.model = model
        self.conformal = conformal
        self.max_features = 0 if max_features is None else max_features
        self.lightest = evict == "lightest"
        self.scaler.grow(self.space.capacity)
        self.model.attach(self.space)
        self.fitted = self.space.capacity
        if self.max_features >= WIDE:
            self.n_waiting = WIDE
            while self.n_waiting < self.max_features and self.n_waiting < MOST_WAITING:
                self.n_waiting *= 2
            if resize_zeroed(<void**> &self.waiting, 0, self.n_waiting * sizeof(uint32_t)) < 0:
                raise MemoryError

    def __dealloc__(self):
        free(self.waiting)

    # ---------------------------------------------------------------- admit

    cdef Py_ssize_t check(self, list pending) except -1:
        """Reject new names that clash with each other or with known ones; return how many ids they need."""
        cdef set names = set()
        cdef set columns = set()
        cdef Py_ssize_t needed = len(pending)
        cdef bint levels = False
        cdef tuple entry
        for entry in pending:
            if entry[1] is not None:
                levels = True
                if self.space.find(<PyObject*> entry[0]) >= 0:
                    raise conflict_error(entry[0], self.space.step + 1)
            if entry[0] in names:
                raise conflict_error(entry[0], self.space.step + 1)
            names.add(entry[0])
        if not levels:
            return needed
        for name, column, level, value in pending:
            if column is None:
                continue
            if column in names and type(column) is str:
                raise conflict_error(column, self.space.step + 1)
            if column not in columns and self.space.find(<PyObject*> column) < 0:
                columns.add(column)
                needed += 1
        return needed

    cdef int reserve(self) except -1 with gil:
        """Check the unknown names of the gathered instance and reserve the memory to admit them."""
        cdef Instance instance = self.instance
        cdef Py_ssize_t needed, capacity
        instance.pending = instance.unknown_pairs()
        needed = self.check(instance.pending)
        self.space.reserve(needed)
        instance.reserve(instance.n + len(instance.pending))
        needed += self.space.size
        # The space is larger than twice that if it grew for an instance for which the model then had no memory.
        capacity = min(self.space.capacity, 2 * needed)
        if needed > self.fitted and capacity > self.fitted:
            self.scaler.grow(capacity)
            self.model.grow(capacity)
            self.fitted = capacity  # only now: if a part of it failed, the next attempt grows again
        if instance.row_ids != NULL and self.space.capacity > instance.binding.slots:
            instance.binding.fit(self.space)
        return 0

    cdef int admit(self) except -1 with gil:
        """Assign slots to the unknown names, in sorted order, and append their pairs; reserve() was called before."""
        cdef Instance instance = self.instance
        cdef list pending = instance.pending
        cdef Py_ssize_t k = len(pending)
        cdef int32_t s
        sort_pending(pending)
        instance.ordered = False
        instance.n_noted = 0  # they get slots, and their columns may move when others are evicted
        if self.max_features and self.space.features + k > self.max_features:
            if self.n_waiting:
                pending = self.returning(pending)
            k = self.evict(len(pending))
        for name, column, level, value in pending[:k]:
            if column is None:
                s = self.space.ensure_numeric(name)
            else:
                s = self.space.ensure_level(column, level)
            instance.append(s, value)
        instance.bind_admitted()
        return 0

    cdef list returning(self, list pending):
        """Return the new names that came SOON times before, while no slot was left; the others wait.

        Most words of a stream of texts are rare. Without this each of them would evict another.
        """
        cdef list found = []
        cdef uint64_t h
        cdef uint32_t mark, times
        cdef uint32_t* place
        for entry in pending:
            h = name_hash(entry[0])
            mark = <uint32_t> (h >> 32) & ~<uint32_t> SOON
            place = self.waiting + (h & <uint64_t> (self.n_waiting - 1))
            times = place[0] & SOON if place[0] & ~<uint32_t> SOON == mark else 0
            if times == SOON:
                found.append(entry)
                place[0] = 0
            else:
                place[0] = mark + times + 1
        return found

    # ---------------------------------------------------------------- files

    def dump(self):
        """Return the names that wait, as arrays by name."""
        marks = np.zeros(self.n_waiting, dtype=np.uint32)
        cdef uint32_t[::1] view = marks
        if self.n_waiting == 0:
            return {}
        memcpy(&view[0], self.waiting, self.n_waiting * sizeof(uint32_t))
        return {"space.waiting": marks}

    def fill(self, dict arrays):
        """Restore what dump() returned."""
        if self.n_waiting == 0:
            return
        cdef const uint32_t[::1] view = checked_array(arrays, "space.waiting", "i", (self.n_waiting,)).astype(np.uint32)
        memcpy(self.waiting, &view[0], self.n_waiting * sizeof(uint32_t))

    def nbytes(self):
        """Return bytes of state."""
        return self.n_waiting * sizeof(uint32_t)

    # ---------------------------------------------------------------- evict

    cdef Py_ssize_t evict(self, Py_ssize_t needed) except -1:
        """Evict features so that `needed` new ones fit, but none of the gathered ones; return how many fit.

        A sixteenth of the limit goes at a time, so that many new features share the cost of one search.
        """
        cdef Py_ssize_t free = self.max_features - self.space.features
        cdef int32_t slot
        needed = min(needed, self.max_features - self.instance.n)
        if needed > free:
            for slot in self.first_to_go(max(needed - free, self.max_features // 16)):
                self.drop(slot)
        return max(needed, 0)

    cdef list first_to_go(self, Py_ssize_t count):
        """Return up to `count` slots in the order of eviction: lightest or oldest first, none of the instance at hand."""
        cdef Py_ssize_t i, n = 0
        cdef Space space = self.space
        slots, last, size = np.empty(space.size, np.int64), np.empty(space.size, np.int64), np.empty(space.size)
        spared = np.zeros(space.size, np.uint8)
        cdef int64_t[::1] slot_view = slots, last_view = last
        cdef double[::1] size_view = size
        cdef uint8_t[::1] is_spared = spared
        for i in range(1, self.instance.n + 1):
            is_spared[self.instance.slots[i]] = 1
        for i in range(1, space.size):
            if space.kind[i] & (NUMERIC | INDICATOR) and not is_spared[i]:
                slot_view[n] = i
                last_view[n] = seen_last(&space.seen[i])
                size_view[n] = self.model.magnitude(<int32_t> i) if self.lightest else <double> last_view[n]
                n += 1
        if n > count:  # order only those that can be among the first
            near = np.flatnonzero(size[:n] <= np.partition(size[:n], count - 1)[count - 1])
        else:
            near = np.arange(n)
        order = np.lexsort((slots[near], last[near], size[near]))[:count]
        return slots[near][order].tolist()

    cdef int shrink(self) except -1:
        """Evict features beyond the limit; a merged learner may hold more."""
        if self.max_features and self.space.features > self.max_features:
            self.instance.n = 0  # no instance is at hand, so none of its features is spared
            self.evict(0)
        return 0

    cdef int drop(self, int32_t slot) except -1:
        """Forget a feature: its name, its statistics, what the model learned, and where blocks find it."""
        cdef int32_t column = self.space.column[slot]
        if self.instance.binding is not None:
            self.instance.binding.release(slot)
        self.model.forget(slot)
        self.scaler.forget(slot)
        if self.conformal is not None:
            self.conformal.forget(slot)
        self.space.remove(slot)
        if self.space.kind[column] == FREE:
            self.model.forget(column)  # the column was evicted with its last level
            if self.instance.binding is not None:
                self.instance.binding.release_column(column)
        return 0

    cdef int drop_marked(self) except -1 with gil:
        """Drop the features that the model marked while it learned, in slot order."""
        cdef Py_ssize_t i
        cdef int32_t slot
        for slot in sorted({self.model.evicted[i] for i in range(self.model.n_evicted)}):
            if self.space.kind[slot] & (NUMERIC | INDICATOR):
                self.drop(slot)
        self.model.n_evicted = 0
        return 0

    # ---------------------------------------------------------------- rename

    cdef Py_ssize_t rename(self, dict names, bint partial) except -1:
        """Move the state of features to new names, {old: new}; return how many slots got a new name.

        A feature that already has a new name is dropped, and its occurrences are added. If anything is wrong, or
        memory runs out, nothing has changed.
        """
        changes, replaced = self.space.renaming(names, partial)
        self.space.reserve(2 * len(changes))
        occurrences = self.space.joint_occurrences(changes)
        for slot in sorted(replaced, reverse=True):
            if self.space.kind[<Py_ssize_t> slot] & INDICATOR:
                self.drop(slot)
        for slot in replaced:
            if self.space.kind[<Py_ssize_t> slot] & NUMERIC:
                self.drop(slot)
        self.space.rename(changes)
        self.space.set_occurrences(occurrences)
        self.instance.binding = None
        return len(changes)

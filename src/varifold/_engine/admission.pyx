"""Names that come and go: new ones get slots, evicted ones give theirs back.

Space, scaler and model grow and forget together here. Memory for an instance is taken before anything changes: when
there is none the learner is as it was.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t

from varifold._engine.binding cimport slot_of
from varifold._engine.vocabulary cimport Vocabulary
from varifold._engine.guard cimport claim, release
from varifold._engine.intake cimport Intake
from varifold._engine.names cimport FREE, INDICATOR, NUMERIC
from varifold._engine.reading cimport conflict_error
from varifold._engine.space cimport Space, seen_last


def pending_order(entry):
    """Ints before strs, each in their own order."""
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


cdef class Admission(Intake):
    """Space, scaler and model in step while features come and go."""

    cdef int check_pending(self, list pending) except -1:
        """Refuse new names that clash with each other or with known ones; count the ids they need."""
        cdef set taken = set()
        cdef set columns = set()
        cdef Py_ssize_t needed = len(pending)
        cdef bint levels = False
        cdef tuple entry
        for entry in pending:
            if entry[1] is not None:
                levels = True
                if self.space.find(<PyObject*> entry[0]) >= 0:
                    raise conflict_error(entry[0], self.step + 1)
            taken.add(entry[0])
        if len(taken) < len(pending):
            names = [entry[0] for entry in pending]
            raise conflict_error(next(name for i, name in enumerate(names) if name in names[:i]), self.step + 1)
        if not levels:
            return needed
        for name, column, level, value in pending:
            if column is None:
                continue
            if column in taken and type(column) is str:
                raise conflict_error(column, self.step + 1)
            if column not in columns and self.space.find(<PyObject*> column) < 0:
                columns.add(column)
                needed += 1
        return needed

    def check(self, x):
        """Refuse an instance that learning would refuse, with the same error; the state stays as it is."""
        cdef list pending
        claim(self)
        try:
            pending = self.gather(x)
            if pending is not None:
                self.check_pending(pending)
        finally:
            release(self)

    cdef int make_ready(self, list pending, int y) except -1:
        """Take the memory for learning the gathered instance with these new names; y is the class, -1 if it is new."""
        cdef Py_ssize_t n_new = 0 if pending is None else len(pending)
        if pending is not None:
            self.space.reserve(self.check_pending(pending))
            self.reserve(self.n + n_new)
            if self.space.capacity > self.fitted:
                self.scaler.grow(self.space.capacity)
                self.model.grow(self.space.capacity)
                self.fitted = self.space.capacity  # a model that found memory for a part of it is asked again
        if self.model.prepares:
            self.model.prepare(self.slots + 1, self.n, n_new, y)
        return 0

    cdef int admit(self, list pending) except -1:
        """Give the pending names slots, in sorted order; make_ready() took the memory."""
        cdef int32_t s
        cdef Py_ssize_t k = len(pending)
        sort_pending(pending)
        self.ordered = False
        if self.max_features and self.space.features + k > self.max_features:
            k = self.make_room(k)
        for name, column, level, value in pending[:k]:
            if column is None:
                s = self.space.ensure_numeric(name)
            else:
                s = self.space.ensure_level(column, level)
            self.append(s, value)
        return 0

    cdef int admit_row(self, const int32_t* idx, const double* val, Py_ssize_t m, int y) except -1 with gil:
        """Admit the unknown names of a block's row, to be learned as class y (-1: a new one)."""
        cdef Py_ssize_t k
        cdef Vocabulary vocabulary = self.binding.vocabulary
        cdef list pending = []
        for k in range(m):
            if self.binding.slot[idx[k]] == 0:
                name = <object> vocabulary.key[idx[k]]
                if vocabulary.kind[idx[k]] & INDICATOR:
                    column, level = vocabulary.level_of(idx[k])
                    pending.append((name, column, level, val[k]))
                else:
                    pending.append((name, None, None, val[k]))
        self.make_ready(pending, y)
        if self.space.capacity > self.binding.slots:
            self.binding.fit(self.space)
        self.admit(pending)
        for k in range(m):
            if self.binding.slot[idx[k]] == 0:
                s = slot_of(self.space, vocabulary, idx[k])
                if s > 0:
                    self.binding.slot[idx[k]] = s
                    self.binding.source[s] = idx[k]
        return 0

    cdef int make_room(self, Py_ssize_t needed) except -1:
        """Evict so that `needed` new features fit, sparing those of this instance; returns how many fit.

        A sixteenth of the bound goes at a time, so that an eviction's search is paid for by many new features.
        """
        cdef Py_ssize_t i, room
        cdef Space space = self.space
        cdef set spared = {self.slots[i] for i in range(1, self.n + 1)}
        needed = min(needed, self.max_features - len(spared))
        room = self.max_features - space.features
        if needed > room:
            candidates = [i for i in space.live() if i not in spared]
            if self.lightest:
                candidates.sort(key=lambda i: (self.model.magnitude(i), seen_last(&space.seen[<int32_t> i]), i))
            else:
                candidates.sort(key=lambda i: (seen_last(&space.seen[<int32_t> i]), i))
            for i in candidates[:max(needed - room, self.max_features // 16)]:
                self.drop(<int32_t> i)
        return max(needed, 0)

    def shrink(self):
        """Evict features beyond the bound; a merged learner may hold more of them."""
        if self.max_features and self.space.features > self.max_features:
            self.n = 0  # no instance is spared
            self.make_room(0)

    cdef int drop(self, int32_t slot) except -1:
        """Forget a feature: its name, its statistics, what the model holds, and where a block finds it."""
        cdef int32_t head = self.space.column[slot]
        if self.binding is not None and self.binding.slots > slot:
            self.binding.slot[self.binding.source[slot]] = 0
            self.binding.source[slot] = 0
        self.model.forget(slot)
        self.scaler.forget(slot)
        if self.conformal is not None:
            self.conformal.forget(slot)
        self.space.remove(slot)
        if self.space.kind[head] == FREE:
            self.model.forget(head)  # a column went with its last level
        return 0

    def rename(self, dict names, bint partial=False):
        """Features take their state to new names ({old: new}); returns how many slots were renamed.

        A feature that is known under a new name gives way: its own state is dropped, its sights are counted in. When
        anything is wrong, or memory runs out, nothing has changed.
        """
        claim(self)
        try:
            changes, giving_way = self.space.renaming(names, partial)
            self.space.reserve(2 * len(changes))
            sights = self.space.joint_sights(changes)
            for slot in sorted(giving_way, reverse=True):
                if self.space.kind[<Py_ssize_t> slot] & INDICATOR:
                    self.drop(slot)
            for slot in giving_way:
                if self.space.kind[<Py_ssize_t> slot] & NUMERIC:
                    self.drop(slot)
            self.space.rename(changes)
            self.space.set_sights(sights)
            self.binding = None
            return len(changes)
        finally:
            release(self)

    cdef int apply_evictions(self) except -1 with gil:
        """After a learn: drop the features that the model marked, in slot order."""
        cdef Py_ssize_t i
        cdef int32_t slot
        for slot in sorted({self.model.evicted[i] for i in range(self.model.n_evicted)}):
            if self.space.kind[slot] & (NUMERIC | INDICATOR):
                self.drop(slot)
        self.model.n_evicted = 0
        return 0

"""Phases: which columns live, when new ones join, and when old ones have gone.

Told phases count steps. Found ones rest on how often each column was there while it lived: a column that is absent is
gone only when its absence would be very unlikely as flicker, and a switch needs columns that joined before. Columns
that go and come back with nothing new beside them are an outage, not a switch.
"""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from varifold._engine.names cimport COLUMN, NUMERIC
from varifold._engine.space cimport Seen, Space, seen_count, seen_first, seen_last
from varifold._engine.view cimport View
from varifold.evolving._feature_map import checked, reals

cdef double LIVING = 0.5        # a column that shows in fewer of its instances says nothing by its absence
cdef double DENSE = 0.4         # share of the settled columns an instance must show for a join to mean anything
cdef double CERTAIN = 13.8      # nats: odds of a million to one
cdef double STRAY = 0.02        # chance that a column thought gone shows
cdef int KNOWN = 8              # instances that must have held a column before its absence says anything
cdef int UNSEEN = 4             # instances to wait for the old columns when none showed them beside the new ones


cdef inline double availability(Seen* s) noexcept nogil:
    """Share of instances that held the column between its first and its last, shrunk away from 0 and 1."""
    return (seen_count(s) + 1.0) / (seen_last(s) - seen_first(s) + 3.0)


cdef class Phases:
    def __cinit__(self, told_switch=None, Py_ssize_t told_overlap=0, Py_ssize_t settle=30, Py_ssize_t patience=100):
        self.told_switch = -1 if told_switch is None else told_switch
        self.told_overlap = told_overlap
        self.settle = settle
        self.patience = patience
        self.density = 1.0

    def __dealloc__(self):
        free(self.group)
        free(self.found)

    cdef int grow(self, Space space, Py_ssize_t capacity) except -1:
        self.space = space
        if capacity <= self.capacity:
            return 0
        self.group = <uint8_t*> realloc(self.group, capacity)
        if self.group == NULL:
            raise MemoryError
        memset(self.group + self.capacity, UNKNOWN, capacity - self.capacity)
        self.capacity = capacity
        return 0

    cdef bint meet(self, View* v, Py_ssize_t* joined, Py_ssize_t* old) noexcept nogil:
        """Sort the instance's columns into groups; True when an unknown one joined what is settled."""
        cdef Py_ssize_t i, before = self.settled
        cdef int32_t c
        cdef uint8_t mixed = NUMERIC | COLUMN
        cdef bint fresh, join = False, joins
        if self.told_switch >= 0:
            joins = self.told_switch - self.told_overlap <= v.step < self.told_switch and self.switches == 0
        else:
            joins = v.step >= self.settle and before > 0 and self.density >= DENSE
        for i in range(v.columns):
            c = v.column[i]
            # a reused id still has the group of the column that was evicted
            fresh = self.group[c] == UNKNOWN or (
                seen_count(&self.space.seen[c]) == 0 and self.space.kind[c] & mixed != mixed and self.group[c] != JOINED)
            if fresh:
                self.settled -= self.group[c] == SETTLED
                self.group[c] = JOINED if joins else SETTLED
                self.settled += not joins
                join = join or joins
            elif self.group[c] == GONE:
                self.group[c] = SETTLED
                self.settled += 1
            elif self.group[c] == SETTLED:
                old[0] += 1
            if self.group[c] == JOINED:
                joined[0] += 1
        return join

    cdef int observe(self, View* v) noexcept nogil:
        """Take note of an instance to learn; the Event it brings about."""
        cdef Py_ssize_t joined = 0, old = 0, before = self.settled
        cdef bint join = self.meet(v, &joined, &old)
        self.pairs = False
        if self.told_switch >= 0:
            return self.told(v, join)
        if self.overlapping:
            return self.weigh(v)
        if join:
            self.overlapping = True
            self.joined_at = v.step + 1
            self.evidence = 0.0
            self.pairs = 2 * old >= before
            self.paired = self.pairs
            return JOIN
        if before > 0:
            self.density += (<double> old / before - self.density) / 16.0
        return NOTHING

    cdef int told(self, View* v, bint fresh) noexcept nogil:
        if self.switches:
            return NOTHING
        if v.step >= self.told_switch:
            return SWITCH
        if v.step >= self.told_switch - self.told_overlap:
            self.pairs = True
            if not self.overlapping:
                self.overlapping = True
                self.joined_at = v.step + 1
                return JOIN
        return NOTHING

    cdef bint due(self, int64_t steps) noexcept nogil:
        """Whether a told switch is due after this many steps."""
        return self.told_switch >= 0 and self.switches == 0 and steps >= self.told_switch

    cdef int weigh(self, View* v) noexcept nogil:
        """During an overlap: does it go on, end in a switch, or come to nothing?"""
        cdef Py_ssize_t c, k = 0, living = 0, shown = 0, joined = 0, joined_shown = 0
        cdef int64_t now = v.step + 1, gap
        cdef Seen* s
        cdef double p, row = 0.0, longest = 0.0
        cdef bint there
        for c in range(1, self.space.size):
            if self.group[c] != SETTLED and self.group[c] != JOINED:
                continue
            while k < v.columns and v.column[k] < c:
                k += 1
            there = k < v.columns and v.column[k] == c
            s = &self.space.seen[c]
            if self.group[c] == JOINED:
                if (seen_count(s) + there + 1.0) / (now - (seen_first(s) if seen_count(s) else now) + 2.0) >= DENSE:
                    joined += 1
                    joined_shown += there
                continue
            p = availability(s)
            if seen_count(s) < KNOWN or p < LIVING or seen_last(s) < self.joined_at - self.patience:
                continue
            living += 1
            if there:
                shown += 1
                row += log(STRAY / p)
                continue
            gap = now - seen_last(s)
            row += log((1.0 - STRAY) / (1.0 - p))
            if gap > 1 and -gap * log(1.0 - p) > longest:
                longest = -gap * log(1.0 - p)
        if joined == 0 or now - self.joined_at >= self.patience:
            return ABSORB
        if joined_shown == 0:
            return NOTHING
        self.evidence += row
        if self.evidence < 0.0:
            self.evidence = 0.0
        if self.paired == 0 and now - self.joined_at < UNSEEN:
            return NOTHING
        if living and (self.evidence > CERTAIN or longest > CERTAIN + log(<double> living)):
            return SWITCH
        self.pairs = 2 * joined_shown >= joined and 2 * shown >= living
        self.paired += self.pairs
        return NOTHING

    cdef void absorb(self) noexcept nogil:
        """What joined is settled; the overlap is over."""
        cdef Py_ssize_t c
        for c in range(1, self.space.size):
            if self.group[c] == JOINED:
                self.group[c] = SETTLED
                self.settled += 1
        self.overlapping = False
        self.pairs = False

    cdef void turn(self, View* v) noexcept nogil:
        """A switch: what is not in this instance (NULL: nothing is) has gone, what joined is settled."""
        cdef Py_ssize_t c, k = 0
        cdef int64_t* found
        for c in range(1, self.space.size):
            if self.group[c] != SETTLED:
                continue
            if v != NULL:
                while k < v.columns and v.column[k] < c:
                    k += 1
                if k < v.columns and v.column[k] == c:
                    continue
            self.group[c] = GONE
            self.settled -= 1
        self.last_start = self.joined_at if self.overlapping else (v.step + 1 if v != NULL else self.told_switch + 1)
        self.absorb()
        if self.switches == self.room:
            found = <int64_t*> realloc(self.found, (2 * self.room + 4) * sizeof(int64_t))
            if found != NULL:
                self.found = found
                self.room = 2 * self.room + 4
        if self.switches < self.room:
            self.found[self.switches] = v.step + 1 if v != NULL else self.told_switch
        self.switches += 1

    cdef void forget(self, int32_t slot) noexcept nogil:
        if self.space.column[slot] == slot:
            self.settled -= self.group[slot] == SETTLED
            self.group[slot] = UNKNOWN

    def steps(self):
        """The learns at which switches were found (or told), counted from 1."""
        return [self.found[i] for i in range(min(self.switches, self.room))]

    def dump(self, Py_ssize_t size):
        """The state as a dict of arrays."""
        return {
            "phases.group": np.array([self.group[i] for i in range(size)], dtype=np.uint8),
            "phases.count": np.array([self.overlapping, self.settled, self.joined_at, self.switches,
                                      self.last_start, self.paired], dtype=np.int64),
            "phases.level": np.array([self.density, self.evidence]),
            "phases.found": np.array(self.steps(), dtype=np.int64),
        }

    def fill(self, dict arrays):
        """Take what dump() gave."""
        cdef Py_ssize_t i
        group = checked(arrays, "phases.group", -1, UNKNOWN, GONE + 1)
        count = checked(arrays, "phases.count", 6, 0, 2**62)
        found = checked(arrays, "phases.found", -1, 0, 2**62)
        level = reals(arrays, "phases.level", (2,))
        if len(group) > self.capacity:
            raise ValueError(f"{len(group)} columns do not belong to this model")
        if len(found) != count[3]:
            raise ValueError(f"{len(found)} steps of {count[3]} switches do not belong to this model")
        for i in range(len(group)):
            self.group[i] = group[i]
        self.overlapping = bool(count[0])
        self.settled, self.joined_at, self.switches = int(count[1]), int(count[2]), int(count[3])
        self.last_start, self.paired = int(count[4]), int(count[5])
        self.density, self.evidence = float(level[0]), float(level[1])
        self.room = len(found)
        self.found = <int64_t*> realloc(self.found, (self.room + 1) * sizeof(int64_t))
        if self.found == NULL:
            raise MemoryError
        for i in range(self.room):
            self.found[i] = found[i]

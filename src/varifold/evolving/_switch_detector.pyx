"""Detection of switches: which columns are in use, when new ones join, and when old ones have gone.

A known switch only needs a count of steps. A detected one depends on how often each column was present while in use: an
absent column has gone only if such an absence is very unlikely at its usual rate, and a switch needs columns that
joined before. Columns that disappear and return while no new ones join are an outage, not a switch.
"""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free

from varifold._engine.names.table cimport COLUMN, NUMERIC
from varifold._engine.names.space cimport Seen, Space, seen_count, seen_first, seen_last
from varifold._engine.state cimport State
from varifold._engine.view cimport View
from varifold._numeric.memory cimport out_of_memory, resize

from varifold._engine.state import checked_array, per_slot

cdef double LIVING = 0.5        # the absence of a column present in fewer of its instances carries no information
cdef double DENSE = 0.4         # share of the settled columns that instances must have for a join to count
cdef double CERTAIN = 13.8      # nats: odds of a million to one
cdef double STRAY = 0.02        # probability that a column presumed gone appears
cdef int KNOWN = 8              # instances that must have had a column before its absence counts
cdef int UNSEEN = 4             # instances to wait for the old columns when none had them together with the new ones


cdef inline double availability(Seen* s) noexcept nogil:
    """Return the share of instances, from its first to its last, that had the column, shrunk away from 0 and 1."""
    cdef double instances = seen_last(s) - seen_first(s) + 1.0
    return (min(<double> seen_count(s), instances) + 1.0) / (instances + 2.0)


cdef class SwitchDetector:
    """Sequential test: an overlap begins, is absorbed, or ends in a switch."""

    def __cinit__(self, known_switch=None, Py_ssize_t known_overlap=0, Py_ssize_t settle=30, Py_ssize_t patience=100):
        self.arrays = State()
        self.arrays.declare("phases.group", &self.group, per_slot(low=0, high=<double> <int> GONE))
        self.known_switch = -1 if known_switch is None else known_switch
        self.known_overlap = known_overlap
        self.settle = settle
        self.patience = patience
        self.density = 1.0

    def __dealloc__(self):
        free(self.switched_at)

    cdef int grow(self, Space space, Py_ssize_t capacity) except -1:
        """Reserve this many slots."""
        self.space = space
        return self.arrays.reserve_slots(capacity)

    cdef int prepare(self) except -1 nogil:
        """Reserve memory for one more switch."""
        if self.switches < self.capacity:
            return 0
        if resize(<void**> &self.switched_at, (2 * self.capacity + 4) * sizeof(int64_t)) < 0:
            return out_of_memory()
        self.capacity = 2 * self.capacity + 4
        return 0

    cdef bint may_join(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new) noexcept nogil:
        """Test whether an instance of these slots, n_new of them new, may begin an overlap or a known switch."""
        cdef Py_ssize_t i
        if self.known_switch >= 0:
            return self.switches == 0
        if self.settled == 0 or self.density < DENSE:
            return False
        for i in range(n):
            n_new += self.group[self.space.column[slots[i]]] == UNKNOWN
        return n_new > 0

    cdef bint group_columns(self, View* v, Py_ssize_t* old) noexcept nogil:
        """Assign the instance's columns to groups and count the settled ones; return whether an unknown one joins."""
        cdef Py_ssize_t i, before = self.settled
        cdef int32_t c
        cdef uint8_t mixed = NUMERIC | COLUMN
        cdef bint is_new, join = False, joins
        if self.known_switch >= 0:
            joins = self.known_switch - self.known_overlap <= v.step < self.known_switch and self.switches == 0
        else:
            joins = v.step >= self.settle and before > 0 and self.density >= DENSE
        for i in range(v.columns):
            c = v.column[i]
            # a reused id still has the group of the column that was evicted
            is_new = self.group[c] == UNKNOWN or (
                seen_count(&self.space.seen[c]) == 0 and self.space.kind[c] & mixed != mixed and self.group[c] != JOINED)
            if is_new:
                self.settled -= self.group[c] == SETTLED
                self.group[c] = JOINED if joins else SETTLED
                self.settled += not joins
                join = join or joins
            elif self.group[c] == GONE:
                self.group[c] = SETTLED
                self.settled += 1
            elif self.group[c] == SETTLED:
                old[0] += 1
        return join

    cdef int observe(self, View* v) noexcept nogil:
        """Process an instance before it is learned; return the Event it triggers."""
        cdef Py_ssize_t old = 0, before = self.settled
        cdef bint join = self.group_columns(v, &old)
        self.pairs = False
        if self.known_switch >= 0:
            return self.follow_known(v)
        if self.overlapping:
            return self.weigh_absence(v)
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

    cdef int follow_known(self, View* v) noexcept nogil:
        """Return the Event of this step according to the known switch and overlap."""
        if self.switches:
            return NOTHING
        if v.step >= self.known_switch:
            return SWITCH
        if v.step >= self.known_switch - self.known_overlap:
            self.pairs = True
            if not self.overlapping:
                self.overlapping = True
                self.joined_at = v.step + 1
                return JOIN
        return NOTHING

    cdef bint due(self, int64_t steps) noexcept nogil:
        """Test whether the known switch is due after this many steps."""
        return self.known_switch >= 0 and self.switches == 0 and steps >= self.known_switch

    cdef int weigh_absence(self, View* v) noexcept nogil:
        """Test sequentially whether the overlap continues, ends in a switch, or is absorbed; return the Event.

        Each instance adds the log-likelihood ratio of "the settled columns have gone" to "they are absent as often as
        before".
        """
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
        """End the overlap and settle the columns that joined."""
        cdef Py_ssize_t c
        for c in range(1, self.space.size):
            if self.group[c] == JOINED:
                self.group[c] = SETTLED
                self.settled += 1
        self.overlapping = False
        self.pairs = False

    cdef void record_switch(self, View* v) noexcept nogil:
        """Record a switch: settled columns absent from this instance (NULL: all) have gone, joined ones are settled.

        Call prepare() first.
        """
        cdef Py_ssize_t c, k = 0
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
        self.last_start = self.joined_at if self.overlapping else (v.step + 1 if v != NULL else self.known_switch + 1)
        self.absorb()
        self.switched_at[self.switches] = v.step + 1 if v != NULL else self.known_switch
        self.switches += 1

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove a column whose slot is evicted."""
        if self.space.column[slot] == slot:
            self.settled -= self.group[slot] == SETTLED
            self.group[slot] = UNKNOWN

    def steps(self):
        """Return the steps, counted from 1, at which switches were detected or known to occur."""
        return [self.switched_at[i] for i in range(self.switches)]

    def dump(self, Py_ssize_t size):
        """Return the state as a dict of arrays."""
        return {
            **self.arrays.dump(size, 0),
            "phases.count": np.array([self.overlapping, self.settled, self.joined_at, self.switches,
                                      self.last_start, self.paired], dtype=np.int64),
            "phases.level": np.array([self.density, self.evidence]),
            "phases.found": np.array(self.steps(), dtype=np.int64),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Restore the state from dump()."""
        cdef Py_ssize_t i
        self.arrays.fill(arrays, -1, capacity, 0)
        count = checked_array(arrays, "phases.count", "i", (6,), 0, 2**62)
        found = checked_array(arrays, "phases.found", "i", (None,), 0, 2**62)
        level = checked_array(arrays, "phases.level", "f", (2,))
        if len(found) != count[3]:
            raise ValueError(f"{len(found)} steps of {count[3]} switches do not belong to this model")
        self.overlapping = bool(count[0])
        self.settled, self.joined_at = int(count[1]), int(count[2])
        self.last_start, self.paired = int(count[4]), int(count[5])
        self.density, self.evidence = float(level[0]), float(level[1])
        for i in range(len(found)):
            self.prepare()
            self.switched_at[i] = found[i]
            self.switches = i + 1

    def nbytes(self):
        """Return the allocated bytes."""
        return self.arrays.nbytes() + self.capacity * sizeof(int64_t)

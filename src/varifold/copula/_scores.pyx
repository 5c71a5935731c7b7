"""Normal scores of an instance: of the features observed by their windows, of the absent by regression.

An instance's observed nodes get normal scores from their windows (intervals for ordinal features), `sweeps` rounds of
truncated-normal moments given the others place the intervals, and the absent nodes follow by regression. Nothing here
needs the GIL or allocates on the way; whoever predicts touches scratch only.
"""

import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from varifold.copula._dense cimport invert_scratch, invert_spd
from varifold.copula._marginals cimport Place, normal_density, normal_mass
from varifold._engine.names cimport INDICATOR
from varifold.copula._active_set cimport Nodes, fresh
from varifold._engine.space cimport Space
from varifold._engine.view cimport View

cdef double JITTER = 1e-6
cdef double FLOOR = 1e-9


cdef class Scores(Nodes):
    """Marginals and a correlation of the nodes; a subclass makes the marginals and learns the correlation."""

    def __dealloc__(self):
        cdef int i
        free(self.sigma); free(self.scratch); free(self.node); free(self.given); free(self.z); free(self.v)
        free(self.place); free(self.observed); free(self.score); free(self.memo_slot); free(self.memo_raw)
        free(self.work)
        for i in range(4):
            free(self.factor[i].node)
            free(self.factor[i].inverse)

    cdef int attach(self, Space space) except -1:
        self.space = space
        self.grow(space.capacity)
        return 0

    cdef int grow(self, Py_ssize_t slots) except -1:
        cdef Py_ssize_t room
        if slots <= self.slots:
            return 0
        self.grow_slots(slots)
        self.memo_slot = <int32_t*> fresh(self.memo_slot, slots * sizeof(int32_t))
        self.memo_raw = <double*> fresh(self.memo_raw, slots * sizeof(double))
        room = slots - 1 if slots - 1 < self.max_dense else self.max_dense
        if room > self.room:
            self.make_room(room)
        return 0

    cdef int make_room(self, Py_ssize_t room) except -1:
        """Space for `room` nodes: new ones are uncorrelated."""
        cdef Py_ssize_t old = self.room, i
        cdef double* sigma = <double*> calloc(room * room, sizeof(double))
        if sigma == NULL:
            raise MemoryError
        for i in range(room):
            if i < old:
                memcpy(sigma + i * room, self.sigma + i * old, old * sizeof(double))
            else:
                sigma[i * room + i] = 1.0
        free(self.sigma)
        self.sigma = sigma
        self.grow_nodes(room)
        self.observed = <uint8_t*> fresh(self.observed, room)
        memset(self.observed, 0, room)
        self.marginals.grow(room)
        self.node = <int32_t*> fresh(self.node, room * sizeof(int32_t))
        self.given = <double*> fresh(self.given, room * sizeof(double))
        self.z = <double*> fresh(self.z, room * sizeof(double))
        self.v = <double*> fresh(self.v, room * sizeof(double))
        self.score = <double*> fresh(self.score, room * sizeof(double))
        self.place = <Place*> fresh(self.place, room * sizeof(Place))
        self.work = <double*> fresh(self.work, room * sizeof(double))
        self.scratch = <double*> fresh(self.scratch, invert_scratch(room) * sizeof(double))
        for i in range(4):
            self.factor[i].node = <int32_t*> fresh(self.factor[i].node, room * sizeof(int32_t))
            self.factor[i].inverse = <double*> fresh(self.factor[i].inverse, room * room * sizeof(double))
        self.tick += 1
        return 0

    cdef void joined(self, Py_ssize_t node, int32_t slot) noexcept nogil:
        """An empty window; that of an indicator holds the zeros of its column's past."""
        self.marginals.clear(node)
        if self.space.kind[slot] & INDICATOR:
            self.marginals.start_at_zero(node, self.frequency(slot))

    cdef void left(self, Py_ssize_t node) noexcept nogil:
        """Clear the node's window and its correlations."""
        cdef Py_ssize_t i
        self.marginals.clear(node)
        for i in range(self.nodes):
            self.sigma[i * self.room + node] = 0.0
            self.sigma[node * self.room + i] = 0.0
        self.sigma[node * self.room + node] = 1.0

    # ---------------------------------------------------------------- one instance

    cdef void gather(self, View* v) noexcept nogil:
        """Observed nodes and their values into scratch, ascending; the other levels of a column given are zeros."""
        cdef Py_ssize_t i, k
        cdef int32_t slot, node, member
        for i in range(v.n):
            slot = v.slot[i]
            if slot == 0:
                continue
            member = self.first_of[self.space.column[slot]]
            while member:
                self.observed[member - 1] = 1
                self.score[member - 1] = 0.0
                member = self.next_of[member - 1]
            node = self.node_of[slot] - 1
            if node >= 0:
                self.observed[node] = 1
                self.score[node] = v.raw[i]
        k = 0
        for i in range(self.nodes):
            if self.observed[i]:
                self.observed[i] = 0
                self.node[k] = <int32_t> i
                self.given[k] = self.score[i]
                k += 1
        self.n = k

    cdef void observe(self, View* v) noexcept nogil:
        """All scores of an instance; what was computed for the same instance a moment ago stands."""
        cdef Py_ssize_t i
        cdef double* inverse
        if (self.memo_tick == self.tick and self.memo_n == v.n
                and memcmp(self.memo_slot, v.slot, v.n * sizeof(int32_t)) == 0
                and memcmp(self.memo_raw, v.raw, v.n * sizeof(double)) == 0):
            return
        self.gather(v)
        for i in range(self.n):
            self.marginals.place(self.node[i], self.given[i], &self.place[i])
            self.z[i] = self.place[i].z
            self.v[i] = 0.0
        memset(self.score, 0, self.nodes * sizeof(double))
        if self.n:
            inverse = self.invert()
            self.sweep(inverse, self.n == 1)
            self.regress_absent(inverse)
        memcpy(self.memo_slot, v.slot, v.n * sizeof(int32_t))
        memcpy(self.memo_raw, v.raw, v.n * sizeof(double))
        self.memo_n = v.n
        self.memo_tick = self.tick

    cdef double* invert(self) noexcept nogil:
        """The inverse of the observed nodes' correlation; instances with the same nodes share it."""
        cdef int f
        cdef Factor* held
        cdef Py_ssize_t i, j, o = self.n
        cdef double* a
        cdef double* row
        cdef double jitter = JITTER
        for f in range(4):
            held = &self.factor[f]
            if (held.version == self.version and held.n == o
                    and memcmp(held.node, self.node, o * sizeof(int32_t)) == 0):
                return held.inverse
        held = &self.factor[self.turn]
        if o == 0:
            return held.inverse
        self.turn = (self.turn + 1) & 3
        a = held.inverse
        while True:
            for i in range(o):
                row = self.sigma + <Py_ssize_t> self.node[i] * self.room
                for j in range(o):
                    a[i * o + j] = row[self.node[j]]
                a[i * o + i] += jitter
            if invert_spd(o, a, o, self.scratch):
                break
            jitter *= 10.0
            if jitter > 1e12:  # sigma holds no numbers that could be inverted: take it for the identity
                memset(a, 0, o * o * sizeof(double))
                for i in range(o):
                    a[i * o + i] = 1.0
                break
        memcpy(held.node, self.node, o * sizeof(int32_t))
        held.n = o
        held.version = self.version
        return a

    cdef void sweep(self, double* inverse, bint alone) noexcept nogil:
        """Truncated-normal moments of the interval nodes given the others, all at once, `sweeps` times."""
        cdef Py_ssize_t i, j, o = self.n
        cdef int s
        cdef bint any_interval = False
        cdef double total
        for i in range(o):
            any_interval = any_interval or self.place[i].interval
        if not any_interval:
            return
        if alone:
            truncated(&self.place[0], 0.0, 1.0, &self.z[0], &self.v[0])
            return
        for s in range(self.sweeps):
            for i in range(o):
                if self.place[i].interval:
                    total = 0.0
                    for j in range(o):
                        total += inverse[i * o + j] * self.z[j]
                    self.work[i] = total
            for i in range(o):
                if self.place[i].interval:
                    total = 1.0 / inverse[i * o + i]
                    truncated(&self.place[i], self.z[i] - total * self.work[i], sqrt(total), &self.z[i], &self.v[i])

    cdef void regress_absent(self, double* inverse) noexcept nogil:
        """Scores by node: the observed as they are, the absent by regression on them."""
        cdef Py_ssize_t i, j, o = self.n
        cdef double total
        cdef double* row
        for i in range(o):
            total = 0.0
            for j in range(o):
                total += inverse[i * o + j] * self.z[j]
            self.work[i] = total
        for i in range(o):
            row = self.sigma + <Py_ssize_t> self.node[i] * self.room
            total = self.work[i]
            for j in range(self.nodes):
                self.score[j] += row[j] * total
        for i in range(o):
            self.score[self.node[i]] = self.z[i]

    cdef double absent_variance(self, Py_ssize_t node, double* inverse) noexcept nogil:
        """Conditional variance of an absent node's score, the spread of the interval scores included."""
        cdef Py_ssize_t i, j, o = self.n
        cdef double* row = self.sigma + node * self.room
        cdef double variance = 1.0, slope
        for i in range(o):
            slope = 0.0
            for j in range(o):
                slope += inverse[i * o + j] * row[self.node[j]]
            variance += slope * (slope * self.v[i] - row[self.node[i]])
        return variance if variance > FLOOR else FLOOR

    def correlation(self):
        """(slots, matrix) of the nodes, in the order of slots."""
        cdef Py_ssize_t i, j
        nodes = sorted((self.slot_of[i], i) for i in range(self.nodes) if self.slot_of[i] != 0)
        out = np.eye(len(nodes))
        cdef double[:, ::1] view = out
        for i in range(len(nodes)):
            for j in range(len(nodes)):
                view[i, j] = self.sigma[<Py_ssize_t> nodes[i][1] * self.room + <Py_ssize_t> nodes[j][1]]
        return [slot for slot, _ in nodes], out


cdef void truncated(const Place* place, double mean, double sd, double* z, double* v) noexcept nogil:
    """Mean and variance of N(mean, sd^2) within the place's interval; too little mass leaves z and no spread."""
    cdef double low = (place.low - mean) / sd, high = (place.high - mean) / sd
    cdef double mass = normal_mass(low, high), at_low = 0.0, at_high = 0.0, ratio, slope = 0.0
    if mass < 1e-6:
        v[0] = 0.0
        return
    if low > -INFINITY:
        at_low = normal_density(low)
        slope += low * at_low
    if high < INFINITY:
        at_high = normal_density(high)
        slope -= high * at_high
    ratio = (at_low - at_high) / mass
    z[0] = mean + sd * ratio
    ratio = sd * sd * (1.0 + slope / mass - ratio * ratio)
    v[0] = ratio if ratio > 0.0 else 0.0

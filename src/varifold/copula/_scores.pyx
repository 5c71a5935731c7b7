"""Normal scores of an instance: of observed features from their windows, of absent ones by regression.

An observed node gets its normal score from its window: a point, or an interval for an ordinal feature. `sweeps` rounds
of truncated-normal moments given the other nodes place the scores in their intervals, and the absent nodes follow by
regression. This is the E-step of the copula (OVFM eq. 4 and 5). Nothing here allocates
or changes the state: a prediction writes scratch only.
"""

import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp, memcpy, memset

from varifold.copula._dense cimport invert_spd
from varifold.copula._marginals cimport Place, normal_density, normal_mass
from varifold._engine.names.table cimport INDICATOR
from varifold.copula._active_set cimport ActiveSet
from varifold._engine.names.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View

from varifold._engine.state import per_slot, per_slot_and_problem

cdef double JITTER = 1e-6          # added to the diagonal before inverting
cdef double LARGEST_JITTER = 1e12
cdef double SMALLEST_VARIANCE = 1e-9
cdef double SMALLEST_MASS = 1e-6   # minimum mass of a truncated normal; below it moments are not computed


cdef class Scores(ActiveSet):
    """Hold marginals and correlation of the nodes; a subclass creates the marginals and learns the correlation."""

    def __cinit__(self):
        cdef State per_node = self.node_arrays
        self.slot_arrays.scratch(&self.memo_slot, per_slot())
        self.slot_arrays.scratch(&self.memo_raw, per_slot())
        per_node.scratch(&self.observed, per_slot())
        per_node.scratch(&self.node, per_slot())
        per_node.scratch(&self.given, per_slot())
        per_node.scratch(&self.z, per_slot())
        per_node.scratch(&self.v, per_slot())
        per_node.scratch(&self.score, per_slot())
        per_node.scratch_bytes(<void**> &self.place, sizeof(Place), per_slot())
        per_node.scratch(&self.work, per_slot())
        # matrices, whose rows are the State's slots and whose columns its problems: both are nodes here
        self.squares = State()
        # an entry beyond 1e6 in a file could not be inverted
        self.squares.declare("sigma", &self.sigma, per_slot_and_problem(low=-1e6, high=1e6))
        self.squares.scratch(&self.schur, per_slot_and_problem())

    cdef int declare_inverses(self, Py_ssize_t wanted) except -1:
        """Cache this many inverses as long as they are small; `max_dense` is set."""
        cdef int i
        self.cached = <int> min(wanted, CACHED)
        if self.cached * self.max_dense * self.max_dense > SMALL:
            self.cached = FEW
        for i in range(self.cached):
            self.node_arrays.scratch(&self.inverse[i].node, per_slot())
            self.squares.scratch(&self.inverse[i].matrix, per_slot_and_problem())
        return 0

    cdef int attach(self, Space space) except -1:
        """Attach the space of the slots and reserve memory for it."""
        self.space = space
        self.grow(space.capacity)
        return 0

    cdef int grow(self, Py_ssize_t slots) except -1:
        """Reserve memory for this many slots, and for a node of each up to `max_dense`."""
        cdef Py_ssize_t nodes = min(slots, self.max_dense)
        self.reserve_slots(slots)
        if nodes > self.node_capacity:
            self.reserve_graph(nodes)
        return 0

    cdef int reserve_graph(self, Py_ssize_t nodes) except -1:
        """Reserve memory for this many nodes, their scores and correlations. `self.node_capacity` changes last."""
        cdef Py_ssize_t i
        for i in range(self.cached):
            self.inverse[i].version = 0    # rows are contiguous, not a stride apart, so growth moves them
        self.squares.reserve_problems(nodes)
        self.stride = self.squares.problems
        self.squares.reserve_slots(nodes)
        self.marginals.grow(nodes)
        self.reserve_nodes(nodes)
        self.tick += 1
        return 0

    cdef void joined(self, Py_ssize_t node, int32_t slot) noexcept nogil:
        """Start uncorrelated, with an empty window; that of an indicator has a zero per observation of its column."""
        self.sigma[node * self.stride + node] = 1.0    # here and not for all of the capacity, which may never be used
        self.marginals.clear(node)
        if self.space.kind[slot] & INDICATOR:
            self.marginals.start_at_zero(node, self.frequency(slot))

    cdef void left(self, Py_ssize_t node) noexcept nogil:
        """Clear the window of a node whose feature has left the active set, and make the node uncorrelated."""
        cdef Py_ssize_t i
        self.marginals.clear(node)
        for i in range(self.nodes):
            self.sigma[i * self.stride + node] = 0.0
            self.sigma[node * self.stride + i] = 0.0
        self.sigma[node * self.stride + node] = 1.0

    # ---------------------------------------------------------------- one instance

    cdef void gather(self, View* v) noexcept nogil:
        """List the observed nodes, ascending, and their values; the other levels of a present column are zeros."""
        cdef Py_ssize_t i, k
        cdef int32_t slot
        cdef int64_t node, member
        for i in range(v.n):
            slot = v.slot[i]
            if slot == 0:
                continue
            member = self.by_slot[self.space.column[slot]].first
            while member:
                self.observed[member - 1] = 1
                self.score[member - 1] = 0.0
                member = self.by_node[member - 1].next
            node = self.by_slot[slot].node - 1
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
        """Compute all scores of an instance, unless they are cached from the last call."""
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
        """Return the inverse of the observed nodes' correlation; instances with the same nodes share it."""
        cdef int k
        cdef Inverse* held
        cdef Py_ssize_t o = self.n
        for k in range(self.cached):
            held = &self.inverse[k]
            if (held.version == self.version and held.n == o
                    and memcmp(held.node, self.node, o * sizeof(int32_t)) == 0):
                return held.matrix
        held = &self.inverse[self.turn]
        if o == 0:
            return held.matrix
        self.turn = (self.turn + 1) % self.cached
        self.invert_sigma(held.matrix)
        memcpy(held.node, self.node, o * sizeof(int32_t))
        held.n = o
        held.version = self.version
        return held.matrix

    cdef void invert_sigma(self, double* a) noexcept nogil:
        """Invert the observed nodes' correlation, with as much jitter as necessary."""
        cdef Py_ssize_t i, j, o = self.n
        cdef double* row
        cdef double jitter = JITTER
        while jitter <= LARGEST_JITTER:
            for i in range(o):
                row = self.sigma + <Py_ssize_t> self.node[i] * self.stride
                for j in range(o):
                    a[i * o + j] = row[self.node[j]]
                a[i * o + i] += jitter
            if invert_spd(o, a, o, self.schur):
                return
            jitter *= 10.0
        # sigma cannot be inverted: use the identity
        memset(a, 0, o * o * sizeof(double))
        for i in range(o):
            a[i * o + i] = 1.0

    cdef void sweep(self, double* inverse, bint alone) noexcept nogil:
        """Compute truncated-normal moments of the interval nodes given the other nodes, `sweeps` times.

        They go to `z` and `v`. `inverse` is that of the observed nodes' correlation; `alone` means one observed node.
        """
        cdef Py_ssize_t i, j, o = self.n
        cdef int s
        cdef bint any_interval = False
        cdef double total, variance
        for i in range(o):
            any_interval = any_interval or self.place[i].interval
        if not any_interval:
            return
        if alone:
            truncated(&self.place[0], 0.0, 1.0, &self.z[0], &self.v[0])
            return
        for s in range(self.sweeps):
            # with P = inverse, z_i given the others is N(z_i - (P z)_i / P_ii, 1 / P_ii), all z from before the sweep
            for i in range(o):
                if self.place[i].interval:
                    total = 0.0
                    for j in range(o):
                        total += inverse[i * o + j] * self.z[j]
                    self.work[i] = total
            for i in range(o):
                if self.place[i].interval:
                    variance = 1.0 / inverse[i * o + i]
                    truncated(&self.place[i], self.z[i] - variance * self.work[i], sqrt(variance),
                              &self.z[i], &self.v[i])

    cdef void regress_absent(self, double* inverse) noexcept nogil:
        """Compute scores by node, absent ones by regression (eq. 5): Sigma_MO Sigma_OO^-1 z_O."""
        cdef Py_ssize_t i, j, o = self.n
        cdef double total
        cdef double* row
        for i in range(o):
            total = 0.0
            for j in range(o):
                total += inverse[i * o + j] * self.z[j]
            self.work[i] = total
        for i in range(o):
            row = self.sigma + <Py_ssize_t> self.node[i] * self.stride
            total = self.work[i]
            for j in range(self.nodes):
                self.score[j] += row[j] * total
        for i in range(o):
            self.score[self.node[i]] = self.z[i]

    cdef double absent_variance(self, Py_ssize_t node, double* inverse) noexcept nogil:
        """Return the conditional variance of an absent node's score, including the variance of the interval scores."""
        cdef Py_ssize_t i, j, o = self.n
        cdef double* row = self.sigma + node * self.stride
        cdef double variance = 1.0, slope
        for i in range(o):
            slope = 0.0
            for j in range(o):
                slope += inverse[i * o + j] * row[self.node[j]]
            variance += slope * (slope * self.v[i] - row[self.node[i]])
        return max(variance, SMALLEST_VARIANCE)

    def correlation(self):
        """Return (slots, matrix) of the nodes, in slot order."""
        cdef Py_ssize_t i, j
        nodes = sorted((self.by_node[i].slot, i) for i in range(self.nodes) if self.by_node[i].slot != 0)
        out = np.eye(len(nodes))
        cdef double[:, ::1] view = out
        for i in range(len(nodes)):
            for j in range(len(nodes)):
                view[i, j] = self.sigma[<Py_ssize_t> nodes[i][1] * self.stride + <Py_ssize_t> nodes[j][1]]
        return [slot for slot, _ in nodes], out


cdef void truncated(const Place* place, double mean, double sd, double* z, double* v) noexcept nogil:
    """Compute mean and variance of N(mean, sd^2) within the interval; with too little mass keep z without variance."""
    cdef double low = (place.low - mean) / sd, high = (place.high - mean) / sd
    cdef double mass = normal_mass(low, high), at_low = 0.0, at_high = 0.0, ratio, slope = 0.0
    if mass < SMALLEST_MASS:
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

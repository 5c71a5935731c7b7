"""The Gaussian copula, online: scores of the observed features, regression of the absent ones, correlation by EM.

Features under the copula are *nodes*. An instance's observed nodes get normal scores from their windows (intervals
for ordinal features), `sweeps` rounds of truncated-normal moments given the others place the intervals, and the absent
nodes follow by regression. Every `batch` instances the correlation moves towards that of the batch's expected second
moments. Nothing here needs the GIL or allocates on the way; whoever predicts touches scratch only.
"""

import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from varifold._core.dense cimport invert_scratch, invert_spd, multiply
from varifold._core.marginals cimport Marginals, Place, normal_density, normal_mass
from varifold._core.names cimport INDICATOR
from varifold._core.nodes cimport Nodes, fresh
from varifold._core.space cimport Space
from varifold._core.view cimport View

from varifold._core.model import expect

cdef double JITTER = 1e-6
cdef double FLOOR = 1e-9


cdef class Copula(Nodes):
    """Marginals and correlation of at most `max_dense` features."""

    def __cinit__(self, Py_ssize_t window=200, Py_ssize_t batch=20, Py_ssize_t levels=14, int sweeps=2,
                  double c=5.0, double gamma_min=0.05, Py_ssize_t max_dense=512):
        self.marginals = Marginals(window, levels)
        self.batch = batch
        self.sweeps = sweeps
        self.c = c
        self.gamma_min = gamma_min
        self.max_dense = max_dense
        self.remember(10.0 * window)
        self.version = 1
        self.tick = 1
        self.row_n = <Py_ssize_t*> calloc(batch, sizeof(Py_ssize_t))
        self.row_w = <double*> calloc(batch, sizeof(double))
        self.row_done = <uint8_t*> calloc(batch, 1)
        if self.row_n == NULL or self.row_w == NULL or self.row_done == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int i
        free(self.sigma); free(self.row_n); free(self.row_w); free(self.row_node); free(self.row_z); free(self.row_v)
        free(self.row_done); free(self.spread); free(self.scratch)
        free(self.node); free(self.given); free(self.z); free(self.v); free(self.place); free(self.observed)
        free(self.score); free(self.memo_slot); free(self.memo_raw); free(self.work); free(self.moment)
        free(self.cross); free(self.regress); free(self.product); free(self.full); free(self.absent)
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
        cdef Py_ssize_t old = self.room, i, square = room * room * sizeof(double)
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
        self.fit_rows(old, room)
        self.node = <int32_t*> fresh(self.node, room * sizeof(int32_t))
        self.absent = <int32_t*> fresh(self.absent, room * sizeof(int32_t))
        self.given = <double*> fresh(self.given, room * sizeof(double))
        self.z = <double*> fresh(self.z, room * sizeof(double))
        self.v = <double*> fresh(self.v, room * sizeof(double))
        self.score = <double*> fresh(self.score, room * sizeof(double))
        self.place = <Place*> fresh(self.place, room * sizeof(Place))
        self.work = <double*> fresh(self.work, room * sizeof(double))
        self.spread = <double*> fresh(self.spread, room * sizeof(double))
        self.moment = <double*> fresh(self.moment, square)
        self.cross = <double*> fresh(self.cross, square)
        self.regress = <double*> fresh(self.regress, square)
        self.product = <double*> fresh(self.product, square)
        self.scratch = <double*> fresh(self.scratch, invert_scratch(room) * sizeof(double))
        self.full = <double*> fresh(self.full, self.batch * room * sizeof(double))
        for i in range(4):
            self.factor[i].node = <int32_t*> fresh(self.factor[i].node, room * sizeof(int32_t))
            self.factor[i].inverse = <double*> fresh(self.factor[i].inverse, square)
        self.tick += 1
        return 0

    cdef int fit_rows(self, Py_ssize_t old, Py_ssize_t room) except -1:
        """Widen the rows of the mini-batch, the last one first."""
        cdef Py_ssize_t i, k
        self.row_node = <int32_t*> fresh(self.row_node, self.batch * room * sizeof(int32_t))
        self.row_z = <double*> fresh(self.row_z, self.batch * room * sizeof(double))
        self.row_v = <double*> fresh(self.row_v, self.batch * room * sizeof(double))
        for i in range(self.rows - 1, 0, -1):
            for k in range(self.row_n[i] - 1, -1, -1):
                self.row_node[i * room + k] = self.row_node[i * old + k]
                self.row_z[i * room + k] = self.row_z[i * old + k]
                self.row_v[i * room + k] = self.row_v[i * old + k]
        return 0

    cdef void joined(self, Py_ssize_t node, int32_t slot) noexcept nogil:
        """An empty window; that of an indicator holds the zeros of its column's past."""
        self.marginals.clear(node)
        if self.space.kind[slot] & INDICATOR:
            self.marginals.start_at_zero(node, self.frequency(slot))

    cdef void left(self, Py_ssize_t node) noexcept nogil:
        """Clear the node's window, its correlations and its part in the mini-batch."""
        cdef Py_ssize_t i, k, kept
        self.marginals.clear(node)
        for i in range(self.nodes):
            self.sigma[i * self.room + node] = 0.0
            self.sigma[node * self.room + i] = 0.0
        self.sigma[node * self.room + node] = 1.0
        for i in range(self.rows):
            kept = 0
            for k in range(self.row_n[i]):
                if self.row_node[i * self.room + k] != node:
                    self.row_node[i * self.room + kept] = self.row_node[i * self.room + k]
                    self.row_z[i * self.room + kept] = self.row_z[i * self.room + k]
                    self.row_v[i * self.room + kept] = self.row_v[i * self.room + k]
                    kept += 1
            self.row_n[i] = kept

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

    # ---------------------------------------------------------------- learning

    cdef int32_t learn(self, View* v, double w) noexcept nogil:
        """Commit the instance; `score` holds its scores under the correlation before it.

        Returns the slot that lost its node to a more frequent feature, 0 for none.
        """
        cdef Py_ssize_t i
        cdef int32_t left = self.admit(v)
        self.observe(v)
        for i in range(self.n):
            self.marginals.commit(self.node[i], self.given[i])
        self.keep_row(w)
        self.tick += 1
        if self.rows == self.batch:
            self.update()
        return left

    cdef void keep_row(self, double w) noexcept nogil:
        cdef Py_ssize_t at = self.rows * self.room
        memcpy(self.row_node + at, self.node, self.n * sizeof(int32_t))
        memcpy(self.row_z + at, self.z, self.n * sizeof(double))
        memcpy(self.row_v + at, self.v, self.n * sizeof(double))
        self.row_n[self.rows] = self.n
        self.row_w[self.rows] = w
        self.rows += 1

    cdef void update(self) noexcept nogil:
        """M-step: the batch's mean expected second moments, mixed into the correlation and scaled back to one."""
        cdef Py_ssize_t i, j, d = self.nodes
        cdef double gamma, mixed, total = 0.0
        gamma = self.c / (self.updates + self.c)
        if gamma < self.gamma_min:
            gamma = self.gamma_min
        memset(self.moment, 0, d * d * sizeof(double))
        memset(self.full, 0, self.rows * d * sizeof(double))
        memset(self.row_done, 0, self.rows)
        for i in range(self.rows):
            if not self.row_done[i]:
                self.add_moments(self.take_group(i))
        if d:
            multiply(c'N', c'T', d, d, self.rows, 1.0, self.full, d, self.full, d, 1.0, self.moment, d)
        for i in range(self.rows):
            total += self.row_w[i]
        for i in range(d):
            mixed = (1.0 - gamma) + gamma * self.moment[i * d + i] / total
            self.work[i] = 1.0 / sqrt(mixed if mixed > FLOOR else FLOOR)
        for i in range(d):
            for j in range(i):
                mixed = (1.0 - gamma) * self.sigma[i * self.room + j] + gamma * self.moment[i * d + j] / total
                mixed *= self.work[i] * self.work[j]
                self.sigma[i * self.room + j] = mixed
                self.sigma[j * self.room + i] = mixed
        self.rows = 0
        self.updates += 1
        self.version += 1
        self.tick += 1

    cdef double take_group(self, Py_ssize_t row) noexcept nogil:
        """The rows that observed the same nodes as `row`: regress their absent scores; returns their weight.

        Leaves nodes, absent nodes, slopes (`regress`), covariances (`cross`) and summed variances in scratch.
        """
        cdef Py_ssize_t i, k, r, o = self.row_n[row], m = 0, d = self.nodes
        cdef int32_t* nodes = self.row_node + row * self.room
        cdef double weight = 0.0, root, total
        cdef double* z
        cdef double* line
        memcpy(self.node, nodes, o * sizeof(int32_t))
        self.n = o
        for i in range(o):
            self.observed[nodes[i]] = 1
        for i in range(d):
            if self.observed[i]:
                self.observed[i] = 0
            elif self.slot_of[i] != 0:
                self.absent[m] = <int32_t> i
                m += 1
        self.n_absent = m
        for k in range(m):
            line = self.sigma + <Py_ssize_t> self.absent[k] * self.room
            for i in range(o):
                self.cross[k * o + i] = line[nodes[i]]
        if o and m:
            multiply(c'N', c'N', o, m, o, 1.0, self.invert(), o, self.cross, o, 0.0, self.regress, o)
        memset(self.spread, 0, o * sizeof(double))
        for r in range(row, self.rows):
            if (self.row_done[r] or self.row_n[r] != o
                    or memcmp(self.row_node + r * self.room, nodes, o * sizeof(int32_t)) != 0):
                continue
            self.row_done[r] = 1
            weight += self.row_w[r]
            root = sqrt(self.row_w[r])
            z = self.row_z + r * self.room
            line = self.full + r * d
            for i in range(o):
                line[nodes[i]] = root * z[i]
                self.spread[i] += self.row_w[r] * self.row_v[r * self.room + i]
            for k in range(m):
                total = 0.0
                for i in range(o):
                    total += self.regress[k * o + i] * z[i]
                line[self.absent[k]] = root * total
        return weight

    cdef void add_moments(self, double weight) noexcept nogil:
        """Add the conditional covariances of a group of rows to the moments."""
        cdef Py_ssize_t i, k, l, o = self.n, m = self.n_absent, d = self.nodes
        cdef double part
        cdef double* line
        cdef double* sigma
        for i in range(o):
            self.moment[self.node[i] * d + self.node[i]] += self.spread[i]
        for k in range(m):
            for i in range(o):
                part = self.spread[i] * self.regress[k * o + i]
                self.moment[self.absent[k] * d + self.node[i]] += part
                self.moment[self.node[i] * d + self.absent[k]] += part
                self.cross[k * o + i] = part - weight * self.cross[k * o + i]
        if o and m:
            multiply(c'T', c'N', m, m, o, 1.0, self.regress, o, self.cross, o, 0.0, self.product, m)
        else:
            memset(self.product, 0, m * m * sizeof(double))
        for k in range(m):
            line = self.moment + <Py_ssize_t> self.absent[k] * d
            sigma = self.sigma + <Py_ssize_t> self.absent[k] * self.room
            for l in range(k + 1):
                line[self.absent[l]] += weight * sigma[self.absent[l]] + self.product[k * m + l]

    # ---------------------------------------------------------------- looking and keeping

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

    def dump(self, Py_ssize_t size):
        """All of the state, as arrays."""
        cdef Py_ssize_t i, j, k
        d = self.nodes
        sigma = np.eye(d)
        for i in range(d):
            for j in range(d):
                sigma[i, j] = self.sigma[i * self.room + j]
        cells = [(i, self.row_node[i * self.room + k], self.row_z[i * self.room + k], self.row_v[i * self.room + k])
                 for i in range(self.rows) for k in range(self.row_n[i])]
        counts, values = self.marginals.dump(d)
        return self.dump_nodes(size) | {
            "updates": np.array([self.updates], dtype=np.int64),
            "sigma": sigma,
            "batch": np.array(cells, dtype=np.float64).reshape(len(cells), 4),
            "batch_weights": np.array([self.row_w[i] for i in range(self.rows)], dtype=np.float64),
            "window_counts": counts,
            "window_values": values,
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Take what dump() gave."""
        cdef Py_ssize_t i, j, row
        self.grow(capacity)
        self.fill_nodes(arrays)
        sigma = expect(arrays, "sigma", "f", (self.nodes, self.nodes), -1e6, 1e6)  # beyond, its inverse is not found
        expect(arrays, "updates", "i", (1,), 0)
        cells = expect(arrays, "batch", "f", (None, 4), -1e9, 1e9)
        held = len(expect(arrays, "batch_weights", "f", (None,), 0))
        if held > self.batch or len(cells) and (
                cells[:, :2].min() < 0 or cells[:, 0].max() >= held or cells[:, 1].max() >= self.nodes
                or np.unique(cells[:, :2].astype(np.int64), axis=0).shape[0] != len(cells)):
            raise ValueError("batch holds rows or nodes that there are not")
        expect(arrays, "window_counts", "i", (self.nodes,), 0)
        expect(arrays, "window_values", "f", (None,))
        for i in range(self.nodes):
            for j in range(self.nodes):
                self.sigma[i * self.room + j] = sigma[i, j]
        self.updates = arrays["updates"][0]
        self.rows = len(arrays["batch_weights"])
        for i in range(self.rows):
            self.row_w[i] = arrays["batch_weights"][i]
            self.row_n[i] = 0
        for cell in arrays["batch"].tolist():
            row = int(cell[0])
            j = row * self.room + self.row_n[row]
            self.row_node[j] = int(cell[1])
            self.row_z[j] = cell[2]
            self.row_v[j] = cell[3]
            self.row_n[row] += 1
        self.marginals.fill(arrays["window_counts"], arrays["window_values"])
        self.version += 1
        self.tick += 1

    def nbytes(self):
        """Bytes held, scratch included."""
        per_node = 32 + sizeof(Place) + 56 + self.batch * (28 + 8)
        squares = 5 + 4
        return (self.marginals.nbytes() + self.slots * 32 + self.room * per_node
                + squares * self.room * self.room * sizeof(double))


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

"""The Gaussian copula, online: the correlation behind the scores, by EM.

The scores of `batch` instances (their E-step is `Scores`) are kept; when the batch is full the correlation moves towards
that of their expected second moments. Rows with the same nodes observed share one regression.
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from varifold.copula._dense cimport multiply
from varifold.copula._marginals cimport Marginals, Place
from varifold.copula._active_set cimport fresh
from varifold.copula._scores cimport Scores
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

cdef double FLOOR = 1e-9


cdef class Copula(Scores):
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
        free(self.row_n); free(self.row_w); free(self.row_done); free(self.row_node); free(self.row_z)
        free(self.row_v); free(self.spread); free(self.moment); free(self.cross); free(self.regress)
        free(self.product); free(self.full); free(self.absent)

    cdef int make_room(self, Py_ssize_t room) except -1:
        cdef Py_ssize_t old = self.room, square = room * room * sizeof(double)
        Scores.make_room(self, room)
        self.fit_rows(old, room)
        self.absent = <int32_t*> fresh(self.absent, room * sizeof(int32_t))
        self.spread = <double*> fresh(self.spread, room * sizeof(double))
        self.moment = <double*> fresh(self.moment, square)
        self.cross = <double*> fresh(self.cross, square)
        self.regress = <double*> fresh(self.regress, square)
        self.product = <double*> fresh(self.product, square)
        self.full = <double*> fresh(self.full, self.batch * room * sizeof(double))
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

    cdef void left(self, Py_ssize_t node) noexcept nogil:
        """Take the node out of the mini-batch too."""
        cdef Py_ssize_t i, k, kept
        Scores.left(self, node)
        for i in range(self.rows):
            kept = 0
            for k in range(self.row_n[i]):
                if self.row_node[i * self.room + k] != node:
                    self.row_node[i * self.room + kept] = self.row_node[i * self.room + k]
                    self.row_z[i * self.room + kept] = self.row_z[i * self.room + k]
                    self.row_v[i * self.room + kept] = self.row_v[i * self.room + k]
                    kept += 1
            self.row_n[i] = kept

    # ---------------------------------------------------------------- learning

    cdef int32_t learn(self, View* v, double w) noexcept nogil:
        """Commit the instance; `score` holds its scores under the correlation before it.

        Returns the slot that lost its node to a more active feature, 0 for none.
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
        sigma = checked_array(arrays, "sigma", "f", (self.nodes, self.nodes), -1e6, 1e6)  # beyond, its inverse is not found
        checked_array(arrays, "updates", "i", (1,), 0)
        cells = checked_array(arrays, "batch", "f", (None, 4), -1e9, 1e9)
        held = len(checked_array(arrays, "batch_weights", "f", (None,), 0))
        if held > self.batch or len(cells) and (
                cells[:, :2].min() < 0 or cells[:, 0].max() >= held or cells[:, 1].max() >= self.nodes
                or np.unique(cells[:, :2].astype(np.int64), axis=0).shape[0] != len(cells)):
            raise ValueError("batch holds rows or nodes that there are not")
        checked_array(arrays, "window_counts", "i", (self.nodes,), 0)
        checked_array(arrays, "window_values", "f", (None,))
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

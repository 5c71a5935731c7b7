"""Online Gaussian copula: the correlation of the scores is learned by expectation maximisation.

The scores of `batch` instances (their E-step is `Scores`) are kept; when the batch is full the correlation moves
towards that of their expected second moments (OVFM eq. 8 and 9). Rows with the same observed nodes share a regression.
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcmp, memcpy, memset

from varifold.copula._dense cimport TILE, multiply, multiply_upper
from varifold.copula._marginals cimport Marginals
from varifold.copula._scores cimport FEW, Scores
from varifold._numeric.kernels cimport add_scaled_sum
from varifold._engine.state cimport State
from varifold._engine.view cimport View

from varifold._engine.state import checked_array, fixed, per_slot, per_slot_and_problem
from varifold.copula.merging import merged_copula

cdef double SMALLEST_VARIANCE = 1e-9
cdef double MEMORY = 10.0      # windows in which the activity of a feature decays by 1/e


cdef class Copula(Scores):
    """Learn marginals and correlation of at most `max_dense` features."""

    def __cinit__(self, Py_ssize_t window=200, Py_ssize_t batch=20, Py_ssize_t levels=14, int sweeps=2,
                  double c=5.0, double gamma_min=0.05, Py_ssize_t max_dense=512):
        self.marginals = Marginals(window, levels)
        self.batch = batch
        self.sweeps = sweeps
        self.c = c
        self.gamma_min = gamma_min
        self.max_dense = max_dense
        self.set_memory(MEMORY * window)
        self.version = 1
        self.tick = 1
        self.declare_rows(batch)
        self.declare_inverses(batch + FEW)    # the inverses of the mini-batch are needed again when it is full
        self.slot_arrays.declare("updates", &self.updates, fixed(1, low=0, high=1 << 53))
        self.node_arrays.scratch(&self.absent, per_slot())
        self.node_arrays.scratch(&self.run_end, per_slot())
        self.node_arrays.scratch(&self.variance, per_slot())
        self.squares.scratch(&self.moment, per_slot_and_problem())
        self.squares.scratch(&self.cross, per_slot_and_problem())
        self.squares.scratch(&self.regress, per_slot_and_problem())

    cdef int declare_rows(self, Py_ssize_t batch) except -1:
        """Declare the arrays of the mini-batch."""
        cdef State rows = State()
        self.row_arrays = rows
        rows.declare("batch_weights", &self.row_w, per_slot(low=0))
        rows.scratch(&self.row_n, per_slot())
        rows.scratch(&self.row_done, per_slot())
        rows.scratch(&self.row_node, per_slot_and_problem())
        rows.scratch(&self.row_z, per_slot_and_problem())
        rows.scratch(&self.row_v, per_slot_and_problem())
        rows.scratch(&self.full, per_slot_and_problem())
        rows.reserve_slots(batch)
        self.row_stride = rows.problems
        return 0

    cdef int reserve_graph(self, Py_ssize_t nodes) except -1:
        self.row_arrays.reserve_problems(nodes)
        self.row_stride = self.row_arrays.problems
        return Scores.reserve_graph(self, nodes)

    cdef void left(self, Py_ssize_t node) noexcept nogil:
        """Remove the node from the mini-batch too."""
        cdef Py_ssize_t i, k, kept, at
        Scores.left(self, node)
        for i in range(self.rows):
            kept = at = i * self.row_stride
            for k in range(at, at + self.row_n[i]):
                if self.row_node[k] != node:
                    self.row_node[kept] = self.row_node[k]
                    self.row_z[kept] = self.row_z[k]
                    self.row_v[kept] = self.row_v[k]
                    kept += 1
            self.row_n[i] = kept - at

    # ---------------------------------------------------------------- learning

    cdef int32_t learn(self, View* v, double w) noexcept nogil:
        """Learn the instance; afterwards `score` holds its scores under the previous correlation.

        Returns the slot that lost its node to a more active feature, 0 for none.
        """
        return self.learn_row(v, w, True)

    cdef int32_t learn_row(self, View* v, double w, bint commit) noexcept nogil:
        """Learn the instance; its values enter the windows with `commit`, else only the correlation learns them."""
        cdef Py_ssize_t i
        cdef int32_t replaced = self.admit(v)
        self.observe(v)
        for i in range(self.n if commit else 0):
            self.marginals.commit(self.node[i], self.given[i])
        self.keep_row(w)
        self.tick += 1
        if self.rows == self.batch:
            self.update()
        return replaced

    cdef void keep_row(self, double w) noexcept nogil:
        """Add the current instance to the mini-batch."""
        cdef Py_ssize_t at = self.rows * self.row_stride
        memcpy(self.row_node + at, self.node, self.n * sizeof(int32_t))
        memcpy(self.row_z + at, self.z, self.n * sizeof(double))
        memcpy(self.row_v + at, self.v, self.n * sizeof(double))
        self.row_n[self.rows] = self.n
        self.row_w[self.rows] = w
        self.rows += 1

    cdef double step_size(self, double k) noexcept nogil:
        """Return the step size of the k-th update, k from 0."""
        cdef double gamma = self.c / (k + self.c)
        return gamma if gamma > self.gamma_min else self.gamma_min

    cdef void update(self) noexcept nogil:
        """Move the correlation towards the batch's expected second moments (M-step)."""
        self.move(self.step_size(self.updates[0]))

    cdef void move(self, double gamma) noexcept nogil:
        """Mix the batch's mean expected second moments into the correlation with this step size."""
        cdef Py_ssize_t i, d = self.nodes
        cdef double total = 0.0
        memset(self.moment, 0, d * d * sizeof(double))
        memset(self.full, 0, self.rows * d * sizeof(double))
        memset(self.row_done, 0, self.rows)
        for i in range(self.rows):
            if not self.row_done[i]:
                self.add_moments(self.regress_group(i))
        if d:
            multiply_upper(c'N', c'T', d, self.rows, self.full, d, self.full, d, 1.0, self.moment, d)
        for i in range(self.rows):
            total += self.row_w[i]
        self.mix_in(gamma, total)
        self.rows = 0
        self.updates[0] += 1
        self.version += 1
        self.tick += 1

    cdef void mix_in(self, double gamma, double total) noexcept nogil:
        """Set Sigma <- (1 - gamma) Sigma + gamma moment / total, rescaled to a unit diagonal (eq. 9)."""
        cdef Py_ssize_t i, j, top, left, d = self.nodes, stride = self.stride
        cdef double mixed
        for i in range(d):
            mixed = (1.0 - gamma) + gamma * self.moment[i * d + i] / total
            self.work[i] = 1.0 / sqrt(mixed if mixed > SMALLEST_VARIANCE else SMALLEST_VARIANCE)
        for top in range((d + TILE - 1) // TILE):
            for left in range(top + 1):     # by tiles, so that rows and columns both stay in the cache
                for i in range(TILE * top, min(TILE * (top + 1), d)):
                    for j in range(TILE * left, min(TILE * (left + 1), i)):
                        mixed = (1.0 - gamma) * self.sigma[i * stride + j] + gamma * self.moment[i * d + j] / total
                        mixed *= self.work[i] * self.work[j]
                        self.sigma[i * stride + j] = mixed
                        self.sigma[j * stride + i] = mixed

    cdef double regress_group(self, Py_ssize_t row) noexcept nogil:
        """Impute the rows that observed the same nodes as `row`; return their total weight.

        Leaves nodes, absent nodes, slopes (`regress`), covariances (`cross`) and summed variances in scratch.
        """
        cdef Py_ssize_t i, r, o = self.row_n[row], m
        cdef int32_t* nodes = self.row_node + row * self.row_stride
        cdef double weight = 0.0
        self.split_nodes(nodes, o)
        m = self.n_absent
        if o and m:
            multiply(c'N', c'N', o, m, o, 1.0, self.invert(), o, self.cross, o, 0.0, self.regress, o)
        memset(self.variance, 0, o * sizeof(double))
        for r in range(row, self.rows):
            if (self.row_done[r] or self.row_n[r] != o
                    or memcmp(self.row_node + r * self.row_stride, nodes, o * sizeof(int32_t)) != 0):
                continue
            self.row_done[r] = 1
            weight += self.row_w[r]
            self.impute_row(r)
            for i in range(o):
                self.variance[i] += self.row_w[r] * self.row_v[r * self.row_stride + i]
        return weight

    cdef void split_nodes(self, const int32_t* nodes, Py_ssize_t o) noexcept nogil:
        """Set the observed nodes; list the absent ones and their covariances with them."""
        cdef Py_ssize_t i, k, m = 0
        cdef double* line
        cdef bint joined
        memcpy(self.node, nodes, o * sizeof(int32_t))
        self.n = o
        for i in range(o):
            self.observed[nodes[i]] = 1
        for i in range(self.nodes):
            if self.observed[i]:
                self.observed[i] = 0
            elif self.by_node[i].slot != 0:
                self.absent[m] = <int32_t> i
                m += 1
        self.n_absent = m
        for k in range(m - 1, -1, -1):
            joined = k + 1 < m and self.absent[k + 1] == self.absent[k] + 1
            self.run_end[k] = self.run_end[k + 1] if joined else <int32_t> (k + 1)
        for k in range(m):
            line = self.sigma + <Py_ssize_t> self.absent[k] * self.stride
            for i in range(o):
                self.cross[k * o + i] = line[nodes[i]]

    cdef void impute_row(self, Py_ssize_t row) noexcept nogil:
        """Compute the complete scores of a row, times the root of its weight; absent ones by regression (eq. 5)."""
        cdef Py_ssize_t i, k, o = self.n, m = self.n_absent
        cdef double root = sqrt(self.row_w[row]), a, b, c, d
        cdef double* z = self.row_z + row * self.row_stride
        cdef double* line = self.full + row * self.nodes
        cdef double* slope = self.regress
        for i in range(o):
            line[self.node[i]] = root * z[i]
        for k in range(0, m - 3, 4):        # four independent sums, because each addition waits for the previous one
            a = b = c = d = 0.0
            for i in range(o):
                a += slope[i] * z[i]
                b += slope[o + i] * z[i]
                c += slope[2 * o + i] * z[i]
                d += slope[3 * o + i] * z[i]
            line[self.absent[k]] = root * a
            line[self.absent[k + 1]] = root * b
            line[self.absent[k + 2]] = root * c
            line[self.absent[k + 3]] = root * d
            slope += 4 * o
        for k in range(m - m % 4, m):
            a = 0.0
            for i in range(o):
                a += slope[i] * z[i]
            line[self.absent[k]] = root * a
            slope += o

    cdef void add_moments(self, double weight) noexcept nogil:
        """Add the conditional covariances of a group of rows to the moments."""
        cdef Py_ssize_t i, k, o = self.n, m = self.n_absent, d = self.nodes, t, u
        cdef double part
        cdef double* line
        for i in range(o):
            line = self.moment + <Py_ssize_t> self.node[i] * d
            line[self.node[i]] += self.variance[i]
            for k in range(m):              # along the row of an observed node, up to the diagonal
                if self.absent[k] > self.node[i]:
                    break
                line[self.absent[k]] += self.variance[i] * self.regress[k * o + i]
        for k in range(m):
            line = self.moment + <Py_ssize_t> self.absent[k] * d
            for i in range(o):
                part = self.variance[i] * self.regress[k * o + i]
                if self.node[i] < self.absent[k]:
                    line[self.node[i]] += part
                self.cross[k * o + i] = part - weight * self.cross[k * o + i]
        for t in range((m + TILE - 1) // TILE):
            for u in range(t + 1):
                self.add_tile(weight, TILE * t, min(m - TILE * t, TILE), TILE * u, min(m - TILE * u, TILE))

    cdef void add_tile(self, double weight, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
        """Add the conditional covariances of absent nodes: `rows` of them from `row` on with n from `at` on."""
        cdef Py_ssize_t k, l, end, stop, o = self.n
        cdef double* line
        cdef double* sigma
        cdef double* tile = self.tile
        if o:
            multiply(c'T', c'N', n, rows, o, 1.0, self.regress + at * o, o, self.cross + row * o, o, 0.0, tile, TILE)
        else:
            memset(tile, 0, sizeof(self.tile))
        for k in range(row, row + rows):
            line = self.moment + <Py_ssize_t> self.absent[k] * self.nodes
            sigma = self.sigma + <Py_ssize_t> self.absent[k] * self.stride
            stop = min(at + n, k + 1)
            l = at
            while l < stop:
                end = min(<Py_ssize_t> self.run_end[l], stop)
                add_scaled_sum(end - l, line + self.absent[l], weight, sigma + self.absent[l], tile + l - at)
                l = end
            tile += TILE

    # ---------------------------------------------------------------- files

    def merge(self, parts):
        """Return the arrays of a copula that merges those of the parts."""
        return merged_copula(parts, self.marginals.size, self.max_dense, MEMORY * self.marginals.size)

    def dump(self, Py_ssize_t size):
        """Return the state of the first `size` slots as arrays."""
        cdef Py_ssize_t i, k
        d = self.nodes
        cells = [(i, self.row_node[k], self.row_z[k], self.row_v[k])
                 for i in range(self.rows) for k in range(i * self.row_stride, i * self.row_stride + self.row_n[i])]
        counts, values = self.marginals.dump(d)
        return {
            **self.dump_nodes(size), **self.squares.dump(d, 0, d), **self.row_arrays.dump(self.rows, 0),
            "batch": np.array(cells, dtype=np.float64).reshape(len(cells), 4),
            "window_counts": counts,
            "window_values": values,
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Restore the checked result of dump()."""
        self.grow(capacity)
        self.fill_nodes(arrays)
        self.squares.fill(arrays, self.nodes, self.node_capacity, 0, self.nodes)
        self.fill_batch(arrays)
        self.marginals.fill(checked_array(arrays, "window_counts", "i", (self.nodes,), 0),
                            checked_array(arrays, "window_values", "f", (None,)))
        self.version += 1
        self.tick += 1

    cdef int fill_batch(self, dict arrays) except -1:
        """Restore the rows of the mini-batch: cells of (row, node, score, variance), in row order."""
        cdef Py_ssize_t row, at
        cells = checked_array(arrays, "batch", "f", (None, 4), -1e9, 1e9)
        self.row_arrays.fill(arrays, -1, self.batch, 0)
        held = len(arrays["batch_weights"])
        if held > self.batch or len(cells) and (
                cells[:, :2].min() < 0 or cells[:, 0].max() >= held or cells[:, 1].max() >= self.nodes
                or np.unique(cells[:, :2].astype(np.int64), axis=0).shape[0] != len(cells)):
            raise ValueError("batch holds rows or nodes that do not exist")
        self.rows = held
        for cell in cells.tolist():
            row = int(cell[0])
            at = row * self.row_stride + self.row_n[row]
            self.row_node[at] = int(cell[1])
            self.row_z[at] = cell[2]
            self.row_v[at] = cell[3]
            self.row_n[row] += 1
        return 0

    def nbytes(self):
        """Return the number of bytes held, including scratch."""
        return self.marginals.nbytes() + sum(
            part.nbytes() for part in (self.slot_arrays, self.node_arrays, self.squares, self.row_arrays))

"""Growing one tree over the rows of a window: random columns, the best of a few random thresholds by Gini impurity."""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from varifold._engine.model cimport Model
from varifold._engine.state cimport CLASS, FLOAT64, SLOT
from varifold._numeric.hashing cimport draw
from varifold.forest._nodes cimport Nodes
from varifold.forest._window cimport ABSENT_RIGHT, PRESENCE, Row, Window, place, side

cdef double TIE = 1e-9    # gains that differ by less, as a share of the node's weight, are equal


cdef class Growing(Model):
    """A model that keeps a window of rows and grows trees over it."""

    def __cinit__(self):
        self.nodes = Nodes()

    cdef Py_ssize_t pick(self, Py_ssize_t n) noexcept nogil:
        """A number from 0 to n - 1, by the next draw for this tree."""
        self.draws += 1
        return <Py_ssize_t> (draw(self.seed, <uint64_t> self.grown, self.draws) % <uint64_t> n)

    cdef int32_t grow_tree(self, Py_ssize_t length, int trees) noexcept nogil:
        """Grow a tree over the last `length` rows; returns its root. reserve_pairs(length / min_leaf) came before."""
        cdef int32_t[DEEPEST + 2] node
        cdef Py_ssize_t[DEEPEST + 2] start, stop
        cdef int[DEEPEST + 2] depth
        cdef int top = 1
        cdef Py_ssize_t i, a, b, middle
        cdef int32_t pair, root = self.nodes.take_pair()
        cdef Split best
        cdef double weight
        cdef int32_t* order = self.window.order
        self.draws = 0
        for i in range(self.space.size):
            self.importance[i] *= 1.0 - 1.0 / trees
        for i in range(length):
            order[i] = <int32_t> ((self.window.taken - length + i) % self.window.most)
        node[0], start[0], stop[0], depth[0] = root, 0, length, 0
        weight = 0.0
        for i in range(length):
            weight += self.window.row[order[i]].w
        while top:
            top -= 1
            a, b = start[top], stop[top]
            if not self.weigh_node(node[top], order + a, b - a) or depth[top] == DEEPEST:
                continue
            if not self.find_split(order + a, b - a, &best):
                continue
            middle = a + self.part(order + a, b - a, &best)
            pair = self.nodes.take_pair() if a < middle < b else 0
            if pair == 0:
                continue
            self.nodes.key[node[top]] = best.key
            self.nodes.value[node[top]] = best.value
            self.nodes.way[node[top]] = best.way
            self.nodes.gain[node[top]] = best.gain / weight
            self.nodes.left[node[top]] = pair
            i = best.key >> 1 if best.way & PRESENCE or not best.key & 1 else <Py_ssize_t> best.value
            self.importance[i] += best.gain / weight / trees
            # the left child is grown first: it comes on top
            start[top + 1], stop[top + 1], node[top + 1], depth[top + 1] = a, middle, pair, depth[top] + 1
            start[top], stop[top], node[top], depth[top] = middle, b, pair + 1, depth[top] + 1
            top += 2
        self.grown += 1
        return root

    cdef bint weigh_node(self, int32_t node, int32_t* order, Py_ssize_t n) noexcept nogil:
        """Count the labels of a node's rows; whether there is anything to split."""
        cdef Py_ssize_t i
        cdef int c, labels = 0
        cdef double* counts = self.nodes.counts_of(node)
        for i in range(n):
            counts[self.window.row[order[i]].y] += self.window.row[order[i]].w
        for c in range(self.classes):
            labels += counts[c] > 0.0
        memcpy(self.total, counts, self.classes * sizeof(double))
        return labels > 1 and n >= 2 * self.min_leaf

    cdef bint find_split(self, int32_t* order, Py_ssize_t n, Split* best) noexcept nogil:
        """The best split on some columns, each drawn from a drawn row; whether there is any."""
        cdef int32_t[MOST_COLUMNS] tried
        cdef Row* r = &self.window.row[order[self.pick(n)]]
        cdef int wanted = <int> min(<double> MOST_COLUMNS, self.columns * sqrt(<double> r.n) + 1.0)
        cdef int attempt, i, count = 0, useful = 0
        cdef int32_t key
        best.gain = 0.0
        best.key = 0
        for attempt in range(3 * wanted):
            if useful >= wanted or count == MOST_COLUMNS:
                break
            r = &self.window.row[order[self.pick(n)]]
            if r.n == 0:
                continue
            key = r.key[self.pick(r.n)]
            i = 0
            while i < count and tried[i] != key:
                i += 1
            if i < count:
                continue
            tried[count] = key
            count += 1
            useful += self.try_column(order, n, key, best)
        return best.key != 0

    cdef int draw_cuts(self, int32_t* order, Py_ssize_t n, int32_t key) noexcept nogil:
        """Values of drawn rows, each once, ascending; of numbers the midpoints between them. Returns how many."""
        cdef int i, j, m = 0
        cdef Py_ssize_t at
        cdef double value
        cdef Row* r
        for i in range(self.cuts):
            r = &self.window.row[order[self.pick(n)]]
            at = place(r, key)
            if at < 0 or (key & 1 and r.value[at] == 0.0):
                continue
            value = r.value[at]
            j = m
            while j > 0 and self.cut[j - 1] > value:
                j -= 1
            if j > 0 and self.cut[j - 1] == value:
                continue
            at = m
            while at > j:
                self.cut[at] = self.cut[at - 1]
                at -= 1
            self.cut[j] = value
            m += 1
        if key & 1:
            return m
        for i in range(m - 1):
            self.cut[i] = self.cut[i] + 0.5 * (self.cut[i + 1] - self.cut[i])
        return max(0, m - 1)

    cdef void count_bins(self, int32_t* order, Py_ssize_t n, int32_t key, int m) noexcept nogil:
        """Rows and their labels by bin: m + 1 between thresholds, or a level each and one for others; then absent."""
        cdef Py_ssize_t i, at
        cdef int low, high, middle
        cdef Row* r
        memset(self.rows, 0, (m + 2) * sizeof(Py_ssize_t))
        memset(self.table, 0, (m + 2) * self.classes * sizeof(double))
        for i in range(n):
            r = &self.window.row[order[i]]
            at = place(r, key)
            if at < 0:
                low = m + 1 if not key & 1 or place(r, key - 1) < 0 else m
            else:
                low, high = 0, m
                while low < high:
                    middle = (low + high) >> 1
                    if self.cut[middle] < r.value[at]:
                        low = middle + 1
                    else:
                        high = middle
                if key & 1 and low < m and self.cut[low] != r.value[at]:
                    low = m
            self.rows[low] += 1
            self.table[low * self.classes + r.y] += r.w

    cdef bint try_column(self, int32_t* order, Py_ssize_t n, int32_t key, Split* best) noexcept nogil:
        """Try the splits on a column, and on its presence; whether any leaves enough rows on both sides."""
        cdef int c, j, b, m = self.draw_cuts(order, n, key)
        cdef Py_ssize_t left = 0, held
        cdef bint found = False
        cdef Split tried
        self.count_bins(order, n, key, m)
        held = n - self.rows[m + 1]
        if held == n and m == 0:
            return False
        memset(self.present, 0, self.classes * sizeof(double))
        for b in range(m + 1):
            for c in range(self.classes):
                self.present[c] += self.table[b * self.classes + c]
        tried.key = key
        if held < n:
            tried.value = 0.0
            tried.way = PRESENCE | ABSENT_RIGHT
            found = self.judge(self.present, NULL, held, n, &tried, best)
        memset(self.below, 0, self.classes * sizeof(double))
        for j in range(m):
            if key & 1:
                left = 0
                memset(self.below, 0, self.classes * sizeof(double))
            left += self.rows[j]
            for c in range(self.classes):
                self.below[c] += self.table[j * self.classes + c]
            tried.value = self.cut[j]
            found |= self.try_split(left, n, m, &tried, best)
        return found

    cdef bint try_split(self, Py_ssize_t left, Py_ssize_t n, int m, Split* tried, Split* best) noexcept nogil:
        """Try one threshold or level, absent values sent left and right; whether either leaves enough rows."""
        cdef Py_ssize_t absent = self.rows[m + 1]
        cdef bint found
        if absent == 0:
            # nothing was absent: what will be goes where most rows go
            tried.way = 0 if 2 * left >= n else ABSENT_RIGHT
            return self.judge(self.below, NULL, left, n, tried, best)
        tried.way = ABSENT_RIGHT
        found = self.judge(self.below, NULL, left, n, tried, best)
        tried.way = 0
        found |= self.judge(self.below, self.table + (m + 1) * self.classes, left + absent, n, tried, best)
        return found

    cdef bint judge(self, double* left, double* more, Py_ssize_t rows, Py_ssize_t n, Split* tried,
                    Split* best) noexcept nogil:
        """Keep the split if its decrease of Gini impurity is the largest; whether either side has enough rows."""
        cdef int c
        cdef double a, b, t, squares_left = 0.0, squares_right = 0.0, squares = 0.0
        cdef double weight_left = 0.0, weight_right = 0.0, weight = 0.0
        if rows < self.min_leaf or n - rows < self.min_leaf:
            return False
        for c in range(self.classes):
            t = self.total[c]
            a = left[c] if more == NULL else left[c] + more[c]
            b = t - a
            squares_left += a * a
            squares_right += b * b
            squares += t * t
            weight_left += a
            weight_right += b
            weight += t
        if weight_left <= 0.0 or weight_right <= 0.0:
            return False
        tried.gain = squares_left / weight_left + squares_right / weight_right - squares / weight
        if tried.gain > best.gain + TIE * weight:
            best[0] = tried[0]
        return True

    cdef Py_ssize_t part(self, int32_t* order, Py_ssize_t n, Split* split) noexcept nogil:
        """Put the rows that go left before those that go right, each in their order; returns how many go left."""
        cdef Py_ssize_t i, left = 0, right = 0
        for i in range(n):
            if side(&self.window.row[order[i]], split.key, split.value, split.way):
                self.window.spare[right] = order[i]
                right += 1
            else:
                order[left] = order[i]
                left += 1
        memcpy(order + left, self.window.spare, right * sizeof(int32_t))
        return left

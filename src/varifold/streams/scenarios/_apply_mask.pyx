"""Applying a mask to a block: the cells that it shows are copied in one pass.

Indicators of one column share a place, so they are shown or hidden together.
"""

cimport cython
import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memset

from varifold._engine.block cimport Block, trusted
from varifold.streams.scenarios._draws cimport draw, lowest_bit, prefetch, row_key
from varifold.streams.scenarios._masks cimport Mask


# Cells of a row that are to be copied: `shown` of them, whose numbers are in `kept`.
cdef struct Held:
    int32_t* kept
    Py_ssize_t shown
    const int32_t* ids
    const double* numbers
    int32_t* out_ids
    double* out_numbers


@cython.final
cdef class Row:
    """The current row: its columns and which of its cells are shown. Rows with the same columns share the lookup."""

    cdef int32_t* place         # of each cell's column
    cdef int32_t* kept          # numbers of the cells that are shown, ascending
    cdef Held held              # what is left to copy of the row before
    cdef uint8_t* keep          # one byte per cell: whether it is shown; for keep_some() alone
    cdef uint64_t* word         # one bit per place: whether its column is shown
    cdef const int32_t* ids
    cdef Py_ssize_t n, top      # number of cells, largest place; `top` may be any place from 8 n on in its stead
    cdef int32_t shift          # what to take from an id to get its place
    cdef bint shifted           # whether that is so for every id
    cdef bint straight          # the place of cell k is k

    def __cinit__(self, Py_ssize_t longest, Py_ssize_t width, const int32_t[::1] position):
        cdef Py_ssize_t k, size = position.shape[0]
        self.n = -1
        self.place = <int32_t*> PyMem_Malloc((longest + 1) * sizeof(int32_t))
        self.kept = <int32_t*> PyMem_Malloc((longest + 1) * sizeof(int32_t))
        self.held.kept = <int32_t*> PyMem_Malloc((longest + 1) * sizeof(int32_t))
        self.keep = <uint8_t*> PyMem_Malloc(longest + 1)
        self.word = <uint64_t*> PyMem_Malloc((width // 64 + 1) * sizeof(uint64_t))
        if NULL in (self.place, self.kept, self.held.kept, self.keep, self.word):
            raise MemoryError
        for k in range(longest):
            self.place[k] = <int32_t> k
        # ids that never occur have place 0, so that those before the first column do not count
        self.shift = <int32_t> (size - width)
        self.shifted = size > width
        for k in range(max(size - width, 0), size):
            self.shifted &= position[k] == k - self.shift

    def __dealloc__(self):
        PyMem_Free(self.place)
        PyMem_Free(self.kept)
        PyMem_Free(self.held.kept)
        PyMem_Free(self.keep)
        PyMem_Free(self.word)

    cdef inline void set_count(self, Py_ssize_t n) noexcept nogil:
        """A row of n cells whose columns do not matter."""
        self.n = n
        self.top = n - 1
        self.straight = True

    cdef inline void set_columns(self, const int32_t* ids, Py_ssize_t n, const int32_t* position) noexcept nogil:
        """A row of these vocabulary ids; nothing to do when the row before had the same."""
        cdef Py_ssize_t k
        cdef int32_t top = -1, apart = 0, shift = self.shift
        if n == self.n and memcmp(ids, self.ids, n * sizeof(int32_t)) == 0:
            return
        self.ids = ids
        self.n = n
        if self.shifted:
            for k in range(n):
                self.place[k] = ids[k] - shift
        else:
            for k in range(n):
                self.place[k] = position[ids[k]]
        if n and self.place[n - 1] >= 8 * n:
            self.top = self.place[n - 1]    # few of many columns: decide() asks for no more
            self.straight = False
            return
        for k in range(n):
            top = max(top, self.place[k])
            apart |= self.place[k] ^ <int32_t> k
        self.top = top
        self.straight = apart == 0

    cdef inline Py_ssize_t decide(self, Mask mask, Py_ssize_t i, int64_t row) noexcept nogil:
        """Ask the mask for row i, number `row` of the stream. Returns how many `kept` names, -1: `word` has the answer."""
        cdef Py_ssize_t count = self.top // 64 + 1, shown
        if 8 * self.n > self.top:
            mask.words(i, row, count, self.word)
            if self.straight and mask.least == 0:
                self.word[count - 1] &= ~0ULL >> (63 - (self.top & 63))
                return -1
            shown = self.look_up()
        else:
            shown = mask.cells(i, row, self.place, self.n, self.kept)
        if mask.least > 0:
            shown = self.keep_some(shown, row_key(mask.seed, row), mask.least)
        return shown

    cdef inline Py_ssize_t look_up(self) noexcept nogil:
        """List the cells whose bit is set in `word`; returns how many."""
        cdef Py_ssize_t k, shown = 0
        for k in range(self.n):
            # written always, counted when shown: no branch to mispredict
            self.kept[shown] = <int32_t> k
            shown += (self.word[self.place[k] >> 6] >> (self.place[k] & 63)) & 1
        return shown

    cdef Py_ssize_t keep_some(self, Py_ssize_t shown, uint64_t key, Py_ssize_t least) noexcept nogil:
        """Show hidden columns again, the largest draw first, until `least` are shown; returns how many cells are."""
        cdef Py_ssize_t k, columns = 0, best
        cdef int32_t column, last = -1
        memset(self.keep, 0, self.n)
        for k in range(shown):
            self.keep[self.kept[k]] = 1
            if self.place[self.kept[k]] != last:
                columns += 1
                last = self.place[self.kept[k]]
        while columns < least:
            best = -1
            for k in range(self.n):
                if not self.keep[k] and (best < 0 or draw(key, self.place[k]) > draw(key, self.place[best])):
                    best = k
            if best < 0:
                break
            column = self.place[best]
            for k in range(self.n):
                self.keep[k] |= self.place[k] == column
            columns += 1
        shown = 0
        for k in range(self.n):
            self.kept[shown] = <int32_t> k
            shown += self.keep[k]
        return shown

    cdef inline int64_t copy_words(
        self, const int32_t* ids, const double* numbers, int32_t* out_ids, double* out_numbers
    ) noexcept nogil:
        """Copy the cells whose bit is set in `word`; returns how many."""
        cdef Py_ssize_t w, k
        cdef int64_t p = 0
        cdef uint64_t bits
        for w in range(self.top // 64 + 1):
            bits = self.word[w]
            while bits:
                k = 64 * w + lowest_bit(bits)
                out_ids[p] = ids[k]
                out_numbers[p] = numbers[k]
                p += 1
                bits &= bits - 1
        return p

    cdef inline void hold(
        self, Py_ssize_t shown, const int32_t* ids, const double* numbers, int32_t* out_ids, double* out_numbers
    ) noexcept nogil:
        """Set the copying of the cells in `kept` aside, so that few of many are on their way from memory meanwhile."""
        cdef Py_ssize_t k
        self.copy_held()
        self.kept, self.held.kept = self.held.kept, self.kept
        self.held.shown = shown
        self.held.ids = ids
        self.held.numbers = numbers
        self.held.out_ids = out_ids
        self.held.out_numbers = out_numbers
        if 8 * shown < self.n:
            for k in range(shown):
                prefetch(numbers + self.held.kept[k])

    cdef inline void copy_held(self) noexcept nogil:
        """Copy the cells that were set aside; hidden ones are not read."""
        cdef Py_ssize_t k
        cdef Held* held = &self.held
        for k in range(held.shown):
            held.out_ids[k] = held.ids[held.kept[k]]
            held.out_numbers[k] = held.numbers[held.kept[k]]
        held.shown = 0


cdef int64_t copy_shown(
    Block block, Mask mask, Row row, const int32_t[::1] position, const int64_t[::1] pick, int64_t start,
    int64_t[::1] out_ptr, int32_t* out_ids, double* out_numbers
) except -1:
    """Copy the cells that the mask shows, row by row; returns how many."""
    cdef const int64_t[::1] ptr = block.indptr
    cdef const int32_t[::1] idx = block.indices
    cdef const double[::1] val = block.values
    cdef const int32_t* first_id = &idx[0] if idx.shape[0] else NULL
    cdef const double* first_number = &val[0] if idx.shape[0] else NULL
    cdef const int32_t* ids
    cdef const double* numbers
    cdef Py_ssize_t n = pick.shape[0], i, length, shown
    cdef int64_t p = 0
    with nogil:
        for i in range(n):
            if i + 4 < n:
                prefetch(first_id + ptr[pick[i + 4]])
                prefetch(first_number + ptr[pick[i + 4]])
            ids = first_id + ptr[pick[i]]
            numbers = first_number + ptr[pick[i]]
            length = ptr[pick[i] + 1] - ptr[pick[i]]
            if mask.alike:
                row.set_count(length)
            else:
                row.set_columns(ids, length, &position[0])
            if row.n > 0:
                shown = row.decide(mask, i, start + i)
                if shown < 0:
                    p += row.copy_words(ids, numbers, out_ids + p, out_numbers + p)
                else:
                    row.hold(shown, ids, numbers, out_ids + p, out_numbers + p)
                    p += shown
            out_ptr[i + 1] = p
        row.copy_held()
    return p


def masked(Block block, Mask mask, const int32_t[::1] position, Py_ssize_t width, order=None, int64_t start=0):
    """The block with only the cells that the mask shows.

    `position` gives each vocabulary id the place of its column, below `width`; row i of the result, which is row
    ``start + i`` of the stream, is row ``order[i]`` of the block.
    """
    rows = np.arange(len(block)) if order is None else np.ascontiguousarray(order, np.int64)
    lengths = np.diff(block.indptr)
    cells = len(block.indices) if order is None else int(lengths[rows].sum())
    cdef Row row = Row(int(lengths.max(initial=0)), width, position)
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    # pages never written to take no memory
    indices = np.empty(cells, dtype=np.int32)
    values = np.empty(cells)
    cdef int64_t p = copy_shown(
        block, mask, row, position, rows, start, indptr,
        <int32_t*> <size_t> indices.ctypes.data, <double*> <size_t> values.ctypes.data,
    )
    codes, weights, targets = block.codes, block.weights, block.targets
    if order is not None:
        codes = codes[rows]
        weights = None if weights is None else weights[rows]
        targets = None if targets is None else targets[rows]
    return trusted(block.vocabulary, indptr, indices[:p], values[:p], codes, block.labels, weights, targets)


def occurring(Block block, Py_ssize_t size):
    """Which of the ids below `size` are stored anywhere."""
    cdef const int64_t[::1] ptr = block.indptr
    cdef const int32_t[::1] idx = block.indices
    cdef Py_ssize_t i, k, n = -1
    cdef const int32_t* last = NULL
    out = np.zeros(size, dtype=np.uint8)
    cdef uint8_t[::1] seen = out
    with nogil:
        for i in range(ptr.shape[0] - 1):
            if ptr[i + 1] == ptr[i]:
                continue
            # rows with the same columns as the one before need not be walked
            if ptr[i + 1] - ptr[i] == n and memcmp(&idx[ptr[i]], last, n * sizeof(int32_t)) == 0:
                continue
            n = ptr[i + 1] - ptr[i]
            last = &idx[ptr[i]]
            for k in range(ptr[i], ptr[i + 1]):
                seen[idx[k]] = 1
    return out

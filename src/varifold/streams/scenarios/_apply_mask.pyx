"""Applying a mask to a block: the cells that it shows are copied in one pass.

Indicators of one column share a place, so they are shown or hidden together.
"""

cimport cython
import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from varifold._engine.block cimport Block, trusted
from varifold.streams.scenarios._draws cimport draw, lowest_bit, prefetch, row_key
from varifold.streams.scenarios._masks cimport Mask


@cython.final
cdef class Row:
    """The current row: its columns and which of its cells are shown. Rows with the same columns share the lookup."""

    cdef int32_t* place         # of each cell's column
    cdef uint8_t* keep          # one byte per cell: whether it is shown
    cdef uint64_t* word         # one bit per place: whether its column is shown
    cdef const int32_t* ids
    cdef Py_ssize_t n, top      # number of cells, largest place
    cdef bint straight          # the place of cell k is k

    def __cinit__(self, Py_ssize_t longest, Py_ssize_t width):
        cdef Py_ssize_t k
        self.n = -1
        self.place = <int32_t*> PyMem_Malloc((longest + 1) * sizeof(int32_t))
        self.keep = <uint8_t*> PyMem_Malloc(longest + 1)
        self.word = <uint64_t*> PyMem_Malloc((width // 64 + 1) * sizeof(uint64_t))
        if self.place == NULL or self.keep == NULL or self.word == NULL:
            raise MemoryError
        for k in range(longest):
            self.place[k] = <int32_t> k

    def __dealloc__(self):
        PyMem_Free(self.place)
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
        cdef int32_t top = -1, apart = 0
        if n == self.n and memcmp(ids, self.ids, n * sizeof(int32_t)) == 0:
            return
        self.ids = ids
        self.n = n
        for k in range(n):
            self.place[k] = position[ids[k]]
        for k in range(n):
            top = max(top, self.place[k])
            apart |= self.place[k] ^ <int32_t> k
        self.top = top
        self.straight = apart == 0

    cdef inline bint decide(self, Mask mask, Py_ssize_t i, int64_t row) noexcept nogil:
        """Ask the mask for row i, number `row` of the stream. True: the answer is in `word`, else in `keep`."""
        cdef Py_ssize_t count = self.top // 64 + 1, k
        if 8 * self.n > self.top:
            mask.words(i, row, count, self.word)
            if self.straight and mask.least == 0:
                self.word[count - 1] &= ~0ULL >> (63 - (self.top & 63))
                return True
            for k in range(self.n):
                self.keep[k] = (self.word[self.place[k] >> 6] >> (self.place[k] & 63)) & 1
        else:
            mask.cells(i, row, self.place, self.n, self.keep)
        if mask.least:
            self.keep_some(row_key(mask.seed, row), mask.least)
        return False

    cdef void keep_some(self, uint64_t key, Py_ssize_t least) noexcept nogil:
        """Show hidden columns again, the largest draw first, until `least` are shown."""
        cdef Py_ssize_t k, kept = 0, best
        cdef int32_t column, last = -1
        for k in range(self.n):
            if self.keep[k] and self.place[k] != last:
                kept += 1
                last = self.place[k]
        while kept < least:
            best = -1
            for k in range(self.n):
                if not self.keep[k] and (best < 0 or draw(key, self.place[k]) > draw(key, self.place[best])):
                    best = k
            if best < 0:
                return
            column = self.place[best]
            for k in range(self.n):
                self.keep[k] |= self.place[k] == column
            kept += 1

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

    cdef inline int64_t copy_kept(
        self, const int32_t* ids, const double* numbers, int32_t* out_ids, double* out_numbers
    ) noexcept nogil:
        """Copy the cells that `keep` names; returns how many."""
        cdef Py_ssize_t k
        cdef int64_t p = 0
        for k in range(self.n):
            # written always, counted when kept: no branch to mispredict
            out_ids[p] = ids[k]
            out_numbers[p] = numbers[k]
            p += self.keep[k]
        return p


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
    cdef Py_ssize_t n = pick.shape[0], i, length
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
                if row.decide(mask, i, start + i):
                    p += row.copy_words(ids, numbers, out_ids + p, out_numbers + p)
                else:
                    p += row.copy_kept(ids, numbers, out_ids + p, out_numbers + p)
            out_ptr[i + 1] = p
    return p


def masked(Block block, Mask mask, const int32_t[::1] position, Py_ssize_t width, order=None, int64_t start=0):
    """The block with only the cells that the mask shows.

    `position` gives each vocabulary id the place of its column, below `width`; row i of the result, which is row
    ``start + i`` of the stream, is row ``order[i]`` of the block.
    """
    rows = np.arange(len(block)) if order is None else np.ascontiguousarray(order, np.int64)
    lengths = np.diff(block.indptr)
    cells = len(block.indices) if order is None else int(lengths[rows].sum())
    cdef Row row = Row(int(lengths.max(initial=0)), width)
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    # one more than needed, since copy_kept writes before it counts; pages never written to take no memory
    indices = np.empty(cells + 1, dtype=np.int32)
    values = np.empty(cells + 1)
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

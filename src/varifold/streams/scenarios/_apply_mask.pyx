"""Apply a mask to a block: copy the cells that it shows in one pass.

A place is the index of a column in the stream. Indicators of one column share a place, so they are shown or hidden
together.
"""

cimport cython
import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memset

from varifold._engine.data.block cimport Block, trusted
from varifold._numeric.bits cimport lowest_bit
from varifold.errors import DataError
from varifold.streams.scenarios._draws cimport draw, prefetch, row_key
from varifold.streams.scenarios._masks cimport Mask


cdef enum:
    MOST_PENDING = 256


# Cells of rows that show few of their cells. Their values are far apart in memory, so they are prefetched and copied
# together later, to the end of the output so far.
cdef struct Pending:
    int64_t[MOST_PENDING] cell
    Py_ssize_t count


@cython.final
cdef class Row:
    """Current row: its columns and which of its cells are shown. Rows with the same columns share the lookup."""

    cdef int32_t* place         # place of each cell's column, if ids do not determine it
    cdef const int32_t* column  # `place` or the ids: the place of cell k's column is column[k] - offset
    cdef int32_t offset
    cdef int32_t* kept          # indices of the cells that are shown, ascending
    cdef uint8_t* keep          # one byte per cell: whether it is shown; only for keep_some()
    cdef uint64_t* word         # one bit per place: whether its column is shown
    cdef const int32_t* ids
    cdef Py_ssize_t n, top      # number of cells, largest place; in sparse rows `top` may be any place >= 8 n
    cdef int32_t shift          # id - shift is the place of every stored id; negative if ids need the table
    cdef bint straight          # the place of cell k is k

    def __cinit__(self, Py_ssize_t longest, Py_ssize_t width, int32_t shift):
        cdef Py_ssize_t k
        self.n = -1
        self.shift = shift
        self.offset = max(shift, 0)
        self.place = <int32_t*> PyMem_Malloc((longest + 1) * sizeof(int32_t))
        self.kept = <int32_t*> PyMem_Malloc((longest + 1) * sizeof(int32_t))
        self.keep = <uint8_t*> PyMem_Malloc(longest + 1)
        self.word = <uint64_t*> PyMem_Malloc((width // 64 + 1) * sizeof(uint64_t))
        if NULL in (self.place, self.kept, self.keep, self.word):
            raise MemoryError
        for k in range(longest):
            self.place[k] = <int32_t> k

    def __dealloc__(self):
        PyMem_Free(self.place)
        PyMem_Free(self.kept)
        PyMem_Free(self.keep)
        PyMem_Free(self.word)

    cdef inline int32_t place_of(self, Py_ssize_t k) noexcept nogil:
        """Return the place of cell k's column."""
        return self.column[k] - self.offset

    cdef inline void set_count(self, Py_ssize_t n) noexcept nogil:
        """Start a row of n cells whose columns do not matter."""
        self.n = n
        self.column = self.place
        self.offset = 0
        self.top = n - 1
        self.straight = True

    cdef inline void set_columns(self, const int32_t* ids, Py_ssize_t n, const int32_t* position) noexcept nogil:
        """Start a row of these vocabulary ids; reuse the lookup if the previous row had the same."""
        cdef Py_ssize_t k
        cdef int32_t top = -1, apart = 0
        if n == self.n and memcmp(ids, self.ids, n * sizeof(int32_t)) == 0:
            return
        self.ids = ids
        self.n = n
        if self.shift >= 0:
            self.column = ids
        else:
            self.column = self.place
            for k in range(n):
                self.place[k] = position[ids[k]]
        if n and self.place_of(n - 1) >= 8 * n:
            self.top = self.place_of(n - 1)     # few of many columns: decide() needs no exact maximum
            self.straight = False
            return
        for k in range(n):
            top = max(top, self.place_of(k))
            apart |= self.place_of(k) ^ <int32_t> k
        self.top = top
        self.straight = apart == 0

    cdef inline Py_ssize_t decide(self, Mask mask, Py_ssize_t i, int64_t row) noexcept nogil:
        """Decide row i, row `row` of the stream; return the length of `kept`, or -1 if the result is in `word`."""
        cdef Py_ssize_t count = self.top // 64 + 1, shown
        if 8 * self.n > self.top:
            mask.words(i, row, count, self.word)
            if self.straight and mask.least == 0:
                self.word[count - 1] &= ~0ULL >> (63 - (self.top & 63))
                return -1
            shown = self.look_up()
        else:
            shown = mask.cells(i, row, self.column, self.offset, self.n, self.kept)
        if mask.least > 0:
            shown = self.keep_some(shown, row_key(mask.seed, row), mask.least)
        return shown

    cdef inline Py_ssize_t look_up(self) noexcept nogil:
        """List in `kept` the cells whose bit is set in `word`; return their number."""
        cdef Py_ssize_t k, shown = 0
        cdef int32_t place
        for k in range(self.n):
            # always write, count only if shown: no branch to mispredict
            self.kept[shown] = <int32_t> k
            place = self.place_of(k)
            shown += (self.word[place >> 6] >> (place & 63)) & 1
        return shown

    cdef Py_ssize_t keep_some(self, Py_ssize_t shown, uint64_t key, Py_ssize_t least) noexcept nogil:
        """Show hidden columns again, the largest draw first, until `least` are shown; return the number of cells."""
        cdef Py_ssize_t k, columns = 0, best
        cdef int32_t column, last = -1
        memset(self.keep, 0, self.n)
        for k in range(shown):
            self.keep[self.kept[k]] = 1
            if self.place_of(self.kept[k]) != last:
                columns += 1
                last = self.place_of(self.kept[k])
        while columns < least:
            best = -1
            for k in range(self.n):
                if not self.keep[k] and (best < 0 or draw(key, self.place_of(k)) > draw(key, self.place_of(best))):
                    best = k
            if best < 0:
                break
            column = self.place_of(best)
            for k in range(self.n):
                self.keep[k] |= self.place_of(k) == column
            columns += 1
        shown = 0
        for k in range(self.n):
            self.kept[shown] = <int32_t> k
            shown += self.keep[k]
        return shown

    cdef inline int64_t copy_words(
        self, const int32_t* ids, const double* numbers, int32_t* out_ids, double* out_numbers
    ) noexcept nogil:
        """Copy the cells whose bit is set in `word`; return their number."""
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

    cdef inline void copy_kept(
        self, Py_ssize_t shown, const int32_t* ids, const double* numbers, int32_t* out_ids, double* out_numbers
    ) noexcept nogil:
        """Copy the cells in `kept`; hidden ones are not read."""
        cdef Py_ssize_t k
        for k in range(shown):
            out_ids[k] = ids[self.kept[k]]
            out_numbers[k] = numbers[self.kept[k]]

    cdef inline void hold_kept(
        self, Py_ssize_t shown, int64_t begin, const int32_t* ids, const double* numbers, int32_t* out_ids,
        Pending* pending
    ) noexcept nogil:
        """Copy the ids of the cells in `kept` and prefetch their values; the row's cells begin at `begin`."""
        cdef Py_ssize_t k
        for k in range(shown):
            prefetch(numbers + begin + self.kept[k])
            out_ids[k] = ids[begin + self.kept[k]]
            pending.cell[pending.count + k] = begin + self.kept[k]
        pending.count += shown


cdef inline void copy_pending(Pending* pending, const double* numbers, double* end) noexcept nogil:
    """Copy the values of the pending cells to the positions before `end`."""
    cdef Py_ssize_t k
    for k in range(pending.count):
        end[k - pending.count] = numbers[pending.cell[k]]
    pending.count = 0


cdef inline void prefetch_cells(
    const int32_t* ids, const double* numbers, int64_t begin, int64_t end, bint ids_only
) noexcept nogil:
    """Prefetch a row: under a permutation it may be anywhere in memory."""
    while begin < end:
        prefetch(ids + begin)
        if not ids_only:
            prefetch(numbers + begin)
            prefetch(numbers + begin + 8)
        begin += 16


cdef int64_t copy_shown(
    Block block, Mask mask, Row row, const int32_t[::1] position, const int64_t[::1] pick, int64_t start,
    int64_t[::1] out_ptr, int32_t* out_ids, double* out_numbers
) except -1:
    """Copy the cells that the mask shows, row by row; return their number."""
    cdef const int64_t[::1] ptr = block.indptr
    cdef const int32_t[::1] idx = block.indices
    cdef const double[::1] val = block.values
    cdef const int32_t* first_id = &idx[0] if idx.shape[0] else NULL
    cdef const double* first_number = &val[0] if idx.shape[0] else NULL
    cdef Py_ssize_t n = pick.shape[0], i, length, shown
    cdef int64_t p = 0, begin
    cdef Pending pending
    cdef bint few = False
    pending.count = 0
    with nogil:
        for i in range(n):
            if i + 2 < n:
                prefetch_cells(first_id, first_number, ptr[pick[i + 2]], ptr[pick[i + 2] + 1], few)
            begin = ptr[pick[i]]
            length = ptr[pick[i] + 1] - begin
            if mask.alike:
                row.set_count(length)
            else:
                row.set_columns(first_id + begin, length, &position[0])
            if row.n > 0:
                shown = row.decide(mask, i, start + i)
                few = 0 <= 8 * shown < row.n
                if not few or pending.count + shown > MOST_PENDING:
                    copy_pending(&pending, first_number, out_numbers + p)
                if shown < 0:
                    p += row.copy_words(first_id + begin, first_number + begin, out_ids + p, out_numbers + p)
                elif not few or shown > MOST_PENDING:
                    row.copy_kept(shown, first_id + begin, first_number + begin, out_ids + p, out_numbers + p)
                    p += shown
                else:
                    row.hold_kept(shown, begin, first_id, first_number, out_ids + p, &pending)
                    p += shown
            out_ptr[i + 1] = p
        copy_pending(&pending, first_number, out_numbers + p)
    return p


def masked(Block block, Mask mask, columns, order=None, int64_t start=0):
    """Copy the block with only the cells that the mask shows.

    `columns` are the block's `Columns`, or those of a stream that the block is a part of. Row i of the result, which is
    row ``start + i`` of the stream, is row ``order[i]`` of the block.
    """
    cdef const int32_t[::1] position = columns.position
    rows = np.arange(len(block)) if order is None else np.ascontiguousarray(order, np.int64)
    lengths = np.diff(block.indptr)
    cells = len(block.indices) if order is None else int(lengths[rows].sum())
    check_ids(block, columns)
    cdef Row row = Row(int(lengths.max(initial=0)), columns.width, columns.shift)
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    # pages that are never written use no memory
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


cdef check_ids(Block block, columns):
    """Raise a DataError if a cell has no place, for example because the file changed between two passes."""
    if not len(block.indices):
        return
    low, high = int(np.min(block.indices)), int(np.max(block.indices))
    first = columns.shift
    if high >= len(columns.position) or (first >= 0 and not first <= low <= high < first + columns.width):
        raise DataError(
            "the stream has columns that it did not have when its columns were counted; a scenario that reads a source "
            "twice needs one that does not change: copy the file first"
        )


cdef inline bint any_outside(const int32_t* id, Py_ssize_t n, int32_t first, int32_t last) noexcept nogil:
    """Return whether any of n ids is below `first` or above `last`."""
    cdef Py_ssize_t k
    cdef int32_t sign = 0    # negative once an id is outside; the loop has no branch
    for k in range(n):
        sign |= (id[k] - first) | (last - id[k])
    return sign < 0


def occurring(Block block, Py_ssize_t size):
    """Return an array with 1 for each id below `size` that the block stores, otherwise 0."""
    cdef const int32_t[::1] idx = block.indices
    cdef Py_ssize_t start = 0, k, n, cells = idx.shape[0]
    cdef int32_t first, last
    out = np.zeros(size, dtype=np.uint8)
    cdef uint8_t[::1] seen = out
    if not cells:
        return out
    # all ids from first to last were seen: their cells need no mark, and testing many cells at once is cheap
    first = idx[0]
    last = first - 1
    with nogil:
        while start < cells and not (first == 1 and last == size - 1):    # id 0 is unused
            n = min(1024, cells - start)
            if 2 * (last - first) < size or any_outside(&idx[start], n, first, last):
                for k in range(start, start + n):
                    seen[idx[k]] = 1
                while last + 1 < size and seen[last + 1]:
                    last += 1
                while first > 0 and seen[first - 1]:
                    first -= 1
            start += n
    return out

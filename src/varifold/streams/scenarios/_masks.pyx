"""Masks of the scenarios: decide which columns each row of a stream shows.

Rows that have most of their columns are decided 64 columns at a time: the thresholds are stored as bit planes, and
random words are compared with them from the highest bit down until all 64 are decided. That needs one word for
probability 1/2 and about eight for any other. Other rows are decided cell by cell.
"""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from varifold._numeric.bits cimport lowest_bit, popcount
from varifold.streams.scenarios._draws cimport BITS, draw, draw_of, draws_from, high_product, row_key, word_at

cdef uint64_t EVEN = 0x5555555555555555ULL


cdef class Mask:
    """Base class of the masks; shows nothing. See the declaration for its methods."""

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        pass

    cdef Py_ssize_t cells(
        self, Py_ssize_t i, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil:
        return 0


@cython.final
cdef class Bernoulli(Mask):
    """Show column j of row i with probability ``shown[group[i], j]``, and at least `least` columns.

    `repeated` is whether a row may have several cells of a column. If not, and if all probabilities are equal, the k-th
    bit of a row decides its k-th cell, whatever its column.
    """

    cdef const int32_t[::1] group
    cdef const uint32_t[:, ::1] bound           # threshold of BITS bits: shown if the draw is below it
    cdef const uint64_t[:, :, ::1] plane        # group, word of columns, bit from the highest
    cdef const uint64_t[:, ::1] undecided, always   # columns that need a draw; columns always shown
    cdef Py_ssize_t deepest                     # number of planes down to the lowest bit set in any threshold
    cdef bint uniform                           # whether all probabilities are equal

    def __cinit__(self, shown, group, uint64_t seed, Py_ssize_t least=0, bint repeated=True):
        bounds = np.ascontiguousarray(np.round(np.asarray(shown, dtype=np.float64) * 2.0**BITS).astype(np.uint32))
        cdef Py_ssize_t groups = bounds.shape[0], width = bounds.shape[1], g, j, t
        cdef const uint32_t[:, ::1] bound = bounds
        cdef uint64_t[:, :, ::1] plane = np.zeros((groups, width // 64 + 1, BITS), dtype=np.uint64)
        cdef uint64_t[:, ::1] undecided = np.zeros((groups, width // 64 + 1), dtype=np.uint64)
        cdef uint64_t[:, ::1] always = np.zeros((groups, width // 64 + 1), dtype=np.uint64)
        for g in range(groups):
            for j in range(width):
                if bound[g, j] >> BITS:
                    always[g, j >> 6] |= 1ULL << (j & 63)
                elif bound[g, j]:
                    undecided[g, j >> 6] |= 1ULL << (j & 63)
                    self.deepest = max(self.deepest, BITS - lowest_bit(bound[g, j]))
                    for t in range(BITS):
                        plane[g, j >> 6, t] |= <uint64_t> (bound[g, j] >> (BITS - 1 - t) & 1) << (j & 63)
        self.bound, self.plane, self.undecided, self.always = bound, plane, undecided, always
        self.uniform = width > 0 and bounds.min() == bounds.max()
        self.alike = self.uniform and not repeated
        self.group = group
        self.seed = seed
        self.least = least

    cdef inline uint64_t word(self, uint64_t key, Py_ssize_t g, Py_ssize_t w, uint64_t undecided) noexcept nogil:
        """Return which of the 64 columns from 64 w on are shown: draw < threshold, compared from the highest bit."""
        cdef uint64_t seen = 0, random, plane
        cdef Py_ssize_t t
        undecided &= self.undecided[g, w]
        for t in range(self.deepest):
            if undecided == 0:
                break
            random = word_at(key, 64 * w + t)
            plane = self.plane[g, w, t]
            seen |= undecided & plane & ~random
            undecided &= ~(plane ^ random)
        return seen | self.always[g, w]

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row)
        cdef Py_ssize_t w
        for w in range(count):
            out[w] = self.word(key, self.group[i], w, ~0ULL)

    cdef Py_ssize_t cells(
        self, Py_ssize_t i, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil:
        cdef uint64_t start = draws_from(row_key(self.seed, row), shift)
        cdef const uint32_t* bound = &self.bound[self.group[i], 0] - shift
        cdef uint32_t common = bound[shift]
        cdef Py_ssize_t k, shown = 0
        # here and below: always write, count only if shown; a branch would often be mispredicted
        if self.uniform:
            for k in range(n):
                kept[shown] = <int32_t> k
                shown += draw_of(id[k], start) < common
        else:
            for k in range(n):
                kept[shown] = <int32_t> k
                shown += draw_of(id[k], start) < bound[id[k]]
        return shown


@cython.final
cdef class Exact(Mask):
    """Hide `hidden` of the `width` columns of each row, drawn without replacement; with `up_to`, at most this many.

    Then the number of a row is drawn, too: 0, 1, ..., `hidden` are equally likely.
    """

    cdef Bernoulli rough
    cdef Py_ssize_t width, hidden
    cdef bint up_to
    cdef bint repeated              # whether a row may have several cells of a column
    cdef int64_t[::1] decided       # last row in which the column was decided
    cdef uint8_t[::1] stays         # whether it is shown in that row

    def __cinit__(self, Py_ssize_t width, Py_ssize_t hidden, Py_ssize_t rows, uint64_t seed, bint repeated,
                  bint up_to=False):
        # a probability of few bits needs few random words; words() corrects the count column by column
        share = np.full((1, width), round(32 * (1 - hidden / max(width, 1))) / 32)
        self.rough = Bernoulli(share, np.zeros(rows, dtype=np.int32), seed)
        self.width, self.hidden, self.seed, self.repeated, self.up_to = width, hidden, seed, repeated, up_to
        if repeated:
            self.decided = np.full(width, -1, dtype=np.int64)
            self.stays = np.zeros(width, dtype=np.uint8)

    cdef inline Py_ssize_t hidden_in(self, uint64_t key) noexcept nogil:
        """Return how many columns of a row to hide."""
        if not self.up_to:
            return self.hidden
        return <Py_ssize_t> high_product(word_at(key, 1ULL << 42), <uint64_t> (self.hidden + 1))

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        # Draw columns independently, then add or remove random ones until the count is right. Given its size, such
        # a set is uniform, and each correction keeps it uniform.
        cdef Py_ssize_t all_words = (self.width + 63) // 64, w
        cdef uint64_t key = row_key(self.seed, row), number = 1ULL << 41, hit, column
        cdef Py_ssize_t over = self.hidden_in(key) - self.width
        self.rough.words(i, row, all_words, out)
        for w in range(all_words):
            over += popcount(out[w])
        while over != 0:
            column = high_product(word_at(key, number), <uint64_t> self.width)
            number += 1
            # no branch: half of the time it would be mispredicted
            hit = (out[column >> 6] >> (column & 63) ^ <uint64_t> (over < 0)) & 1
            out[column >> 6] ^= hit << (column & 63)
            over -= <Py_ssize_t> hit if over > 0 else -<Py_ssize_t> hit

    cdef Py_ssize_t cells(
        self, Py_ssize_t i, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil:
        # Visit only the columns that the row has; hide each with its probability given the previous decisions.
        cdef uint64_t start = draws_from(row_key(self.seed, row), shift)
        cdef uint64_t left = <uint64_t> self.hidden_in(row_key(self.seed, row)) << BITS, unvisited = self.width
        cdef Py_ssize_t k, shown = 0
        cdef bint stays
        if self.repeated:
            return self.repeated_cells(row, id, shift, n, kept)
        for k in range(n):
            stays = draw_of(id[k], start) * unvisited >= left
            kept[shown] = <int32_t> k
            shown += stays
            left -= <uint64_t> (1 - stays) << BITS
            unvisited -= 1
        return shown

    cdef Py_ssize_t repeated_cells(
        self, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil:
        """Do the same as `cells` if a row may have several cells of a column, which share one decision."""
        cdef uint64_t key = row_key(self.seed, row), unvisited = self.width
        cdef uint64_t left = <uint64_t> self.hidden_in(key)
        cdef Py_ssize_t k, shown = 0
        cdef int32_t place
        for k in range(n):
            place = id[k] - shift
            if self.decided[place] != row:
                self.decided[place] = row
                self.stays[place] = draw(key, place) * unvisited >= left << BITS
                unvisited -= 1
                left -= 1 - self.stays[place]
            kept[shown] = <int32_t> k
            shown += self.stays[place]
        return shown


@cython.final
cdef class Pairs(Mask):
    """Hide one of each pair of columns (2j, 2j + 1); the last of an odd number is always shown."""

    cdef Py_ssize_t alone

    def __cinit__(self, Py_ssize_t width, uint64_t seed):
        self.alone = width - 1 if width & 1 else -1
        self.seed = seed

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row), even
        cdef Py_ssize_t w
        for w in range(count):
            even = word_at(key, w) & EVEN
            out[w] = even | ((even ^ EVEN) << 1)
        if 0 <= self.alone < 64 * count:
            out[self.alone >> 6] |= 1ULL << (self.alone & 63)

    cdef Py_ssize_t cells(
        self, Py_ssize_t i, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row)
        cdef Py_ssize_t k, shown = 0
        cdef int32_t place
        for k in range(n):
            place = id[k] - shift
            kept[shown] = <int32_t> k
            shown += ((place ^ draw(key, place >> 1)) & 1) | (place == self.alone)
        return shown


@cython.final
cdef class Phased(Mask):
    """Show column j in rows of phase p if ``alive[p, j]``."""

    cdef const int32_t[::1] phase
    cdef const uint8_t[:, ::1] alive
    cdef const uint64_t[:, ::1] word

    def __cinit__(self, alive, phase):
        self.alive = np.ascontiguousarray(alive, dtype=np.uint8)
        self.phase = np.ascontiguousarray(phase, dtype=np.int32)
        self.word = bits_to_words(np.asarray(self.alive))

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        memcpy(out, &self.word[self.phase[i], 0], count * sizeof(uint64_t))

    cdef Py_ssize_t cells(
        self, Py_ssize_t i, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil:
        cdef const uint8_t* alive = &self.alive[self.phase[i], 0] - shift
        return list_flagged(alive, id, n, kept)


@cython.final
cdef class Spans(Mask):
    """Show column j with probability ``shown[j]`` in the rows [birth, death) of the stream, in which it exists.

    The block has `rows` rows, from row `start` of the stream on.
    """

    cdef Bernoulli shown
    cdef Events births, deaths
    cdef Py_ssize_t next_row                    # first row of the block whose births and deaths are pending
    cdef uint64_t[::1] alive                    # one bit per column: whether it exists
    cdef uint8_t[::1] exists                    # the same, one byte per column

    def __cinit__(self, birth, death, shown, int64_t start, Py_ssize_t rows, uint64_t seed):
        self.shown = Bernoulli(np.asarray(shown)[None, :], np.zeros(rows, dtype=np.int32), seed)
        self.births, self.deaths = Events(birth - start, rows), Events(death - start, rows)
        self.alive = np.zeros((len(birth) + 63) // 64 + 1, dtype=np.uint64)
        self.exists = np.zeros(len(birth), dtype=np.uint8)
        self.seed = seed

    cdef inline void advance(self, Py_ssize_t i) noexcept nogil:
        """Apply the births and deaths of columns up to row i of the block."""
        cdef int32_t j
        while self.next_row <= i:
            j = self.births.first[self.next_row]
            while j >= 0:
                self.alive[j >> 6] |= 1ULL << (j & 63)
                self.exists[j] = 1
                j = self.births.after[j]
            j = self.deaths.first[self.next_row]
            while j >= 0:
                self.alive[j >> 6] &= ~(1ULL << (j & 63))
                self.exists[j] = 0
                j = self.deaths.after[j]
            self.next_row += 1

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row)
        cdef Py_ssize_t w
        self.advance(i)
        for w in range(count):
            out[w] = self.shown.word(key, 0, w, self.alive[w]) & self.alive[w]

    cdef Py_ssize_t cells(
        self, Py_ssize_t i, int64_t row, const int32_t* id, int32_t shift, Py_ssize_t n, int32_t* kept
    ) noexcept nogil:
        cdef uint64_t start = draws_from(row_key(self.seed, row), shift)
        cdef const uint32_t* bound = &self.shown.bound[0, 0] - shift
        cdef Py_ssize_t k, living, shown = 0
        cdef int32_t cell, column
        self.advance(i)
        living = list_flagged(&self.exists[0] - shift, id, n, kept)     # most columns do not exist: skip their draws
        for k in range(living):
            cell = kept[k]
            column = id[cell]
            kept[shown] = cell      # shown <= k: does not overwrite unread entries
            shown += draw_of(column, start) < bound[column]
        return shown


@cython.final
cdef class Events:
    """Births or deaths of columns by row of a block: a linked list of columns per row.

    `row` is the row of each column's event. Events before the block are moved to its first row; those after it are
    dropped.
    """

    cdef int32_t[::1] first                     # first column of each row, -1: none
    cdef int32_t[::1] after                     # next column of the same row

    def __cinit__(self, const int64_t[::1] row, Py_ssize_t rows):
        cdef Py_ssize_t j, i
        self.first = np.full(rows, -1, dtype=np.int32)
        self.after = np.empty(row.shape[0], dtype=np.int32)
        for j in range(row.shape[0]):
            i = max(row[j], 0)
            if i < rows:
                self.after[j] = self.first[i]
                self.first[i] = <int32_t> j


cdef inline Py_ssize_t list_flagged(const uint8_t* flag, const int32_t* id, Py_ssize_t n, int32_t* kept) noexcept nogil:
    """List in `kept` the cells whose id has its flag (0 or 1) set; return their number."""
    cdef Py_ssize_t k = 0, count = 0
    while k + 4 <= n:       # unrolled: the loop counter cost as much as the work
        kept[count] = <int32_t> k
        count += flag[id[k]]
        kept[count] = <int32_t> k + 1
        count += flag[id[k + 1]]
        kept[count] = <int32_t> k + 2
        count += flag[id[k + 2]]
        kept[count] = <int32_t> k + 3
        count += flag[id[k + 3]]
        k += 4
    while k < n:
        kept[count] = <int32_t> k
        count += flag[id[k]]
        k += 1
    return count


cdef bits_to_words(table):
    """Pack rows of 0/1 into rows of 64-bit words, the first column in the lowest bit."""
    bits = np.asarray(table).astype(np.uint8)
    padded = np.zeros((bits.shape[0], -(-max(bits.shape[1], 1) // 64) * 64), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64))

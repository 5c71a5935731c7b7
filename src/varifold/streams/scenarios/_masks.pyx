"""Which cells of a block are seen, decided and copied in one pass.

Every decision is a hash of (seed, row, column): no generator state, and a stream may be cut into blocks anywhere. Rows
that have most of their columns get 64 decisions at a time: the columns' thresholds lie in bit planes, and random words
are compared with them from the highest bit down until all 64 are decided, which takes one word for probability 1/2 and
about eight for any. Other rows are decided cell by cell. Indicators of one column share a place, so they go together.
"""

cimport cython
import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from varifold._engine.block cimport Block, trusted

cdef extern from *:
    """
    #include <stdint.h>
    static inline uint64_t folded_product(uint64_t a, uint64_t b) {
        unsigned __int128 p = (unsigned __int128) a * b;
        return (uint64_t) p ^ (uint64_t) (p >> 64);
    }
    static inline uint64_t high_product(uint64_t a, uint64_t b) {
        return (uint64_t) (((unsigned __int128) a * b) >> 64);
    }
    #define lowest_bit __builtin_ctzll
    #define count_bits __builtin_popcountll
    #define fetch __builtin_prefetch
    """
    uint64_t folded_product(uint64_t a, uint64_t b) noexcept nogil
    uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil
    int lowest_bit(uint64_t a) noexcept nogil
    int count_bits(uint64_t a) noexcept nogil
    void fetch(const void* a) noexcept nogil

cdef uint64_t STEP = 0x9E3779B97F4A7C15ULL
cdef uint64_t EVEN = 0x5555555555555555ULL
DEF BITS = 31       # of a probability


cdef inline uint64_t mix(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EBULL
    return z ^ (z >> 31)


cdef inline uint64_t row_key(uint64_t seed, int64_t row) noexcept nogil:
    return mix(mix(seed + STEP) + <uint64_t> row * STEP)


cdef inline uint64_t word_at(uint64_t key, uint64_t number) noexcept nogil:
    """64 random bits, by number."""
    cdef uint64_t z = key + (number + 1) * <uint64_t> 0xD1B54A32D192ED03ULL
    return folded_product(z, z ^ <uint64_t> 0xE7037ED1A0B428DBULL)


cdef inline uint32_t draw(uint64_t key, uint64_t column) noexcept nogil:
    """BITS random bits of a column, apart from all words of the planes."""
    return <uint32_t> (word_at(key, (1ULL << 40) + column) >> (64 - BITS))


cdef class Mask:
    """What the scenarios hide; see the declaration."""

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        pass

    cdef void cells(self, Py_ssize_t i, int64_t row, const int32_t* place, Py_ssize_t n, uint8_t* out) noexcept nogil:
        pass


@cython.final
cdef class Bernoulli(Mask):
    """Row i shows column j with probability ``shown[group[i], j]``; at least `least` columns stay.

    `repeated` says that a row may hold several cells of a column. If not, and with one probability for all, the k-th
    bit of a row stands for its k-th cell, whatever its column.
    """

    cdef const int32_t[::1] group
    cdef const uint32_t[:, ::1] bound           # on BITS bits: seen when the draw is below
    cdef const uint64_t[:, :, ::1] plane        # group, word of columns, bit from the highest
    cdef const uint64_t[:, ::1] open_at, shut   # undecided at first; seen whatever is drawn
    cdef Py_ssize_t deepest                     # planes until no threshold has a bit left
    cdef bint uniform                           # one probability for all

    def __cinit__(self, shown, group, uint64_t seed, Py_ssize_t least=0, bint repeated=True):
        bounds = np.ascontiguousarray(np.round(np.asarray(shown, dtype=np.float64) * 2.0**BITS).astype(np.uint32))
        cdef Py_ssize_t groups = bounds.shape[0], width = bounds.shape[1], g, j, t
        cdef const uint32_t[:, ::1] bound = bounds
        cdef uint64_t[:, :, ::1] plane = np.zeros((groups, width // 64 + 1, BITS), dtype=np.uint64)
        cdef uint64_t[:, ::1] open_at = np.zeros((groups, width // 64 + 1), dtype=np.uint64)
        cdef uint64_t[:, ::1] shut = np.zeros((groups, width // 64 + 1), dtype=np.uint64)
        for g in range(groups):
            for j in range(width):
                if bound[g, j] >> BITS:
                    shut[g, j >> 6] |= 1ULL << (j & 63)
                elif bound[g, j]:
                    open_at[g, j >> 6] |= 1ULL << (j & 63)
                    self.deepest = max(self.deepest, BITS - lowest_bit(bound[g, j]))
                    for t in range(BITS):
                        plane[g, j >> 6, t] |= <uint64_t> (bound[g, j] >> (BITS - 1 - t) & 1) << (j & 63)
        self.bound, self.plane, self.open_at, self.shut = bound, plane, open_at, shut
        self.uniform = width > 0 and bounds.min() == bounds.max()
        self.alike = self.uniform and not repeated
        self.group = group
        self.seed = seed
        self.least = least

    cdef inline uint64_t word(self, uint64_t key, Py_ssize_t g, Py_ssize_t w, uint64_t undecided) noexcept nogil:
        cdef uint64_t seen = 0, random, plane
        cdef Py_ssize_t t
        undecided &= self.open_at[g, w]
        for t in range(self.deepest):
            if undecided == 0:
                break
            random = word_at(key, 64 * w + t)
            plane = self.plane[g, w, t]
            seen |= undecided & plane & ~random
            undecided &= ~(plane ^ random)
        return seen | self.shut[g, w]

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row)
        cdef Py_ssize_t w
        for w in range(count):
            out[w] = self.word(key, self.group[i], w, ~0ULL)

    cdef void cells(self, Py_ssize_t i, int64_t row, const int32_t* place, Py_ssize_t n, uint8_t* out) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row)
        cdef const uint32_t* bound = &self.bound[self.group[i], 0]
        cdef uint32_t common = bound[0]
        cdef Py_ssize_t k
        if self.uniform:
            for k in range(n):
                out[k] = draw(key, place[k]) < common
        else:
            for k in range(n):
                out[k] = draw(key, place[k]) < bound[place[k]]


@cython.final
cdef class Exact(Mask):
    """Of `width` columns, `hidden` are taken away from each row: a draw without replacement."""

    cdef Bernoulli rough
    cdef Py_ssize_t width, hidden
    cdef bint repeated              # whether a row may hold several cells of a column
    cdef int64_t[::1] decided       # last row in which the column was decided, and how
    cdef uint8_t[::1] stays

    def __cinit__(self, Py_ssize_t width, Py_ssize_t hidden, Py_ssize_t rows, uint64_t seed, bint repeated):
        # a probability of few bits takes few words; the rest is put right by single columns
        share = np.full((1, width), round(32 * (1 - hidden / max(width, 1))) / 32)
        self.rough = Bernoulli(share, np.zeros(rows, dtype=np.int32), seed)
        self.width, self.hidden, self.seed, self.repeated = width, hidden, seed, repeated
        if repeated:
            self.decided = np.full(width, -1, dtype=np.int64)
            self.stays = np.zeros(width, dtype=np.uint8)

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        # Independent draws, then columns drawn at random are added or taken until the number is right: given its size
        # such a set is uniform, and stays so.
        cdef Py_ssize_t all_words = (self.width + 63) // 64, w
        cdef Py_ssize_t over = self.hidden - self.width
        cdef uint64_t key = row_key(self.seed, row), number = 1ULL << 41, hit, column
        self.rough.words(i, row, all_words, out)
        for w in range(all_words):
            over += count_bits(out[w])
        while over != 0:
            column = high_product(word_at(key, number), <uint64_t> self.width)
            number += 1
            # no branch: half of them would be mispredicted
            hit = (out[column >> 6] >> (column & 63) ^ <uint64_t> (over < 0)) & 1
            out[column >> 6] ^= hit << (column & 63)
            over -= <Py_ssize_t> hit if over > 0 else -<Py_ssize_t> hit

    cdef void cells(self, Py_ssize_t i, int64_t row, const int32_t* place, Py_ssize_t n, uint8_t* out) noexcept nogil:
        # Only the columns that a row has are visited; each is hidden with the chance it has given those before it.
        cdef uint64_t key = row_key(self.seed, row)
        cdef uint64_t left = self.hidden, unvisited = self.width
        cdef Py_ssize_t k
        for k in range(n):
            if self.repeated and self.decided[place[k]] == row:
                out[k] = self.stays[place[k]]
                continue
            out[k] = draw(key, place[k]) * unvisited >= left << BITS
            unvisited -= 1
            left -= 1 - out[k]
            if self.repeated:
                self.decided[place[k]] = row
                self.stays[place[k]] = out[k]


@cython.final
cdef class Pairs(Mask):
    """One of each two neighbouring columns (2j, 2j + 1) is hidden; the last of an odd number never."""

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

    cdef void cells(self, Py_ssize_t i, int64_t row, const int32_t* place, Py_ssize_t n, uint8_t* out) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row)
        cdef Py_ssize_t k
        for k in range(n):
            out[k] = ((place[k] ^ draw(key, place[k] >> 1)) & 1) | (place[k] == self.alone)


@cython.final
cdef class Phased(Mask):
    """A row of phase p shows the columns with ``alive[p, j]``."""

    cdef const int32_t[::1] phase
    cdef const uint8_t[:, ::1] alive
    cdef const uint64_t[:, ::1] word

    def __cinit__(self, alive, phase):
        self.alive = np.ascontiguousarray(alive, dtype=np.uint8)
        self.phase = np.ascontiguousarray(phase, dtype=np.int32)
        self.word = bits_to_words(np.asarray(self.alive))

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        memcpy(out, &self.word[self.phase[i], 0], count * sizeof(uint64_t))

    cdef void cells(self, Py_ssize_t i, int64_t row, const int32_t* place, Py_ssize_t n, uint8_t* out) noexcept nogil:
        cdef const uint8_t* alive = &self.alive[self.phase[i], 0]
        cdef Py_ssize_t k
        for k in range(n):
            out[k] = alive[place[k]]


@cython.final
cdef class Spans(Mask):
    """Column j lives in the rows [birth, death) and shows itself there with probability ``shown[j]``."""

    cdef Bernoulli shown
    cdef const int64_t[::1] birth, death
    cdef const int64_t[::1] born, died          # columns in order of birth and of death
    cdef Py_ssize_t next_born, next_died
    cdef uint64_t[::1] alive

    def __cinit__(self, birth, death, shown, Py_ssize_t rows, uint64_t seed):
        self.shown = Bernoulli(np.asarray(shown)[None, :], np.zeros(rows, dtype=np.int32), seed)
        self.birth, self.death = birth, death
        self.born = np.argsort(birth, kind="stable").astype(np.int64)
        self.died = np.argsort(death, kind="stable").astype(np.int64)
        self.alive = np.zeros((len(birth) + 63) // 64 + 1, dtype=np.uint64)
        self.seed = seed

    cdef void words(self, Py_ssize_t i, int64_t row, Py_ssize_t count, uint64_t* out) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row)
        cdef Py_ssize_t w
        cdef int64_t j
        while self.next_born < self.born.shape[0] and self.birth[self.born[self.next_born]] <= row:
            j = self.born[self.next_born]
            self.alive[j >> 6] |= 1ULL << (j & 63)
            self.next_born += 1
        while self.next_died < self.died.shape[0] and self.death[self.died[self.next_died]] <= row:
            j = self.died[self.next_died]
            self.alive[j >> 6] &= ~(1ULL << (j & 63))
            self.next_died += 1
        for w in range(count):
            out[w] = self.shown.word(key, 0, w, self.alive[w]) & self.alive[w]

    cdef void cells(self, Py_ssize_t i, int64_t row, const int32_t* place, Py_ssize_t n, uint8_t* out) noexcept nogil:
        cdef uint64_t key = row_key(self.seed, row)
        cdef const uint32_t* bound = &self.shown.bound[0, 0]
        cdef Py_ssize_t k
        for k in range(n):
            out[k] = 0
            if draw(key, place[k]) < bound[place[k]]:
                out[k] = self.birth[place[k]] <= row < self.death[place[k]]


cdef bits_to_words(table):
    """Rows of 0/1 as rows of 64-bit words, the first column in the lowest bit."""
    bits = np.asarray(table).astype(np.uint8)
    padded = np.zeros((bits.shape[0], -(-max(bits.shape[1], 1) // 64) * 64), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64))


@cython.final
cdef class Row:
    """The columns of the row at hand; kept while the next rows have the same."""

    cdef int32_t* place
    cdef uint8_t* keep
    cdef uint64_t* word
    cdef const int32_t* ids
    cdef Py_ssize_t n, top      # cells, largest place
    cdef bint straight          # place k is k

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

    cdef inline void count(self, Py_ssize_t n) noexcept nogil:
        """Cells whose columns do not matter."""
        self.n = n
        self.top = n - 1
        self.straight = True

    cdef inline void meet(self, const int32_t* ids, Py_ssize_t n, const int32_t* position) noexcept nogil:
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

    cdef void keep_some(self, uint64_t key, Py_ssize_t least) noexcept nogil:
        """Bring back hidden columns, the largest draw first, until `least` are there."""
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


def thinned(Block block, Mask mask, const int32_t[::1] position, Py_ssize_t width, order=None, int64_t start=0):
    """The block with only the cells that the mask shows.

    `position` gives each vocabulary id the place of its column, below `width`; row i of the result, which is row
    ``start + i`` of the stream, is row ``order[i]`` of the block.
    """
    cdef const int64_t[::1] pick = np.arange(len(block)) if order is None else np.ascontiguousarray(order, np.int64)
    cdef Py_ssize_t n = pick.shape[0], i, k, w, count
    cdef const int64_t[::1] ptr = block.indptr
    cdef const int32_t[::1] idx = block.indices
    cdef const double[::1] val = block.values
    lengths = np.diff(block.indptr)
    cells = len(block.indices) if order is None else int(lengths[np.asarray(pick)].sum())
    cdef Row row = Row(int(lengths.max(initial=0)), width)
    indptr = np.zeros(n + 1, dtype=np.int64)
    # pages that are never written to take no memory
    indices = np.empty(cells + 1, dtype=np.int32)
    values = np.empty(cells + 1)
    cdef int64_t[::1] out_ptr = indptr
    cdef int32_t* out_idx = <int32_t*> <size_t> indices.ctypes.data
    cdef double* out_val = <double*> <size_t> values.ctypes.data
    cdef const int32_t* ids
    cdef const double* numbers
    cdef const int32_t* first_id = &idx[0] if idx.shape[0] else NULL
    cdef const double* first_number = &val[0] if idx.shape[0] else NULL
    cdef int64_t p = 0
    cdef uint64_t bits
    cdef bint permuted = order is not None
    with nogil:
        for i in range(n):
            if permuted and i + 4 < n:
                fetch(first_id + ptr[pick[i + 4]])
                fetch(first_number + ptr[pick[i + 4]])
            ids = first_id + ptr[pick[i]]
            numbers = first_number + ptr[pick[i]]
            if mask.alike:
                row.count(ptr[pick[i] + 1] - ptr[pick[i]])
            else:
                row.meet(ids, ptr[pick[i] + 1] - ptr[pick[i]], &position[0])
            if row.n == 0:
                out_ptr[i + 1] = p
                continue
            count = row.top // 64 + 1
            if 8 * row.n > row.top:
                mask.words(i, start + i, count, row.word)
                if row.straight and mask.least == 0:
                    row.word[count - 1] &= ~0ULL >> (63 - (row.top & 63))
                    for w in range(count):
                        bits = row.word[w]
                        while bits:
                            k = 64 * w + lowest_bit(bits)
                            out_idx[p] = ids[k]
                            out_val[p] = numbers[k]
                            p += 1
                            bits &= bits - 1
                    out_ptr[i + 1] = p
                    continue
                for k in range(row.n):
                    row.keep[k] = (row.word[row.place[k] >> 6] >> (row.place[k] & 63)) & 1
            else:
                mask.cells(i, start + i, row.place, row.n, row.keep)
            if mask.least:
                row.keep_some(row_key(mask.seed, start + i), mask.least)
            for k in range(row.n):
                # written always, counted when kept: no branch to mispredict
                out_idx[p] = ids[k]
                out_val[p] = numbers[k]
                p += row.keep[k]
            out_ptr[i + 1] = p
    codes, weights = block.codes, block.weights
    if order is not None:
        codes = codes[np.asarray(pick)]
        weights = None if weights is None else weights[np.asarray(pick)]
    return trusted(block.vocabulary, indptr, indices[:p], values[:p], codes, block.labels, weights)


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

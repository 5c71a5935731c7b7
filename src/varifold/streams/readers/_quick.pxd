"""Rows of delimited text that need no Python: numbers, empty cells, and levels and labels that were read before.

A row is split and read in one pass, without the interpreter lock. Whatever is not plainly one of these (quotes, spaces
around a cell, exponents, texts that are new, bytes too many or too few) is left to the reader of single records, which
reads the row from its start; both give the same numbers.
"""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memchr, memcpy, memset

from varifold._numeric.bits cimport lowest_bit
from varifold._numeric.decimal cimport scaled

cdef enum Role:
    AS_NUMBER, AS_CATEGORY, AS_TEXT, AS_TARGET, AS_WEIGHT, AS_EXTRA, AS_DATE, AS_IGNORED

cdef enum:
    NOT_QUICK = -1
    NEW_LABEL = -2     # code of a row whose label has to be looked up by its text
    WORD = 16          # longest text that is remembered
    PLACES = 4096      # of the table of texts, a power of two
    MOST_TEXTS = 3072
    NEAR = 16          # places that a text is looked for

# A level or a label that was read before.
cdef struct Text:
    uint64_t low, high         # its bytes, then zeros
    int32_t length             # 0: a free place
    int32_t column
    int32_t code               # feature id of the level, code of the label

# What a row is read into. The arrays belong to the reader of records.
cdef struct Quick:
    bint possible              # whether rows of these columns can be quick at all
    char sep, quote, decimal
    bint empty_absent
    Py_ssize_t width, longest
    uint8_t* role
    int32_t* fixed             # feature id of a numeric column, 0 before its first number
    uint8_t* absent_first      # [256]: whether some absent text begins with this byte
    Text* texts                # [PLACES]
    Py_ssize_t n_texts
    int32_t* idx
    double* val
    # of the row read last
    Py_ssize_t cells           # where its cells end
    int32_t code
    double weight
    Py_ssize_t label, label_length


cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define VARIFOLD_LITTLE 1
    #else
    #define VARIFOLD_LITTLE 0
    #endif
    static const unsigned long long VARIFOLD_TENS[9] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    """
    const bint LITTLE "VARIFOLD_LITTLE"   # the first byte of a word is its lowest
    const uint64_t* TENS "VARIFOLD_TENS"


cdef inline int count_digits(uint64_t* v) noexcept nogil:
    """How many of the first of eight bytes are digits, which become 0 to 9."""
    cdef uint64_t other
    v[0] ^= 0x3030303030303030ULL
    other = ((v[0] + 0x7676767676767676ULL) | v[0]) & 0x8080808080808080ULL     # the high bits of other bytes
    return lowest_bit(other) >> 3 if other else 8


cdef inline uint64_t from_digits(uint64_t v) noexcept nogil:
    """The number of eight digits, the first in the lowest byte."""
    v = (v * 2561) >> 8
    v = ((v & 0x00FF00FF00FF00FFULL) * 6553601) >> 16
    return ((v & 0x0000FFFF0000FFFFULL) * 42949672960001ULL) >> 32


cdef inline Py_ssize_t quick_digits(const char* s, Py_ssize_t p, uint64_t* m) noexcept nogil:
    """Append the digits at p to m, which may wrap, up to eight at once; returns where they end.

    Eight bytes behind the last digit can be read.
    """
    cdef uint64_t v = 0
    cdef int k = 8
    while k == 8:
        memcpy(&v, s + p, 8)
        k = count_digits(&v)
        if k == 0:
            break
        m[0] = m[0] * TENS[k] + from_digits(v << (8 * (8 - k)))             # zeros in front of fewer than eight
        p += k
    return p


cdef inline Py_ssize_t many_digits(
    const char* s, Py_ssize_t p, char decimal, uint64_t* m, Py_ssize_t* fraction
) noexcept nogil:
    """Read digits[.digits] at p; returns where it ends, NOT_QUICK where m may have wrapped."""
    cdef Py_ssize_t start = p, n
    p = quick_digits(s, p, m)
    n = p - start
    if s[p] == decimal:
        start = p + 1
        p = quick_digits(s, start, m)
        fraction[0] = p - start
        n += fraction[0]
    return p if 0 < n <= 19 else NOT_QUICK


cdef inline Py_ssize_t quick_number(const char* s, Py_ssize_t p, char decimal, double* out) noexcept nogil:
    """Read [-]digits[.digits] at p; returns where it ends, NOT_QUICK for what needs more than one rounding."""
    cdef uint64_t negative = s[p] == 45, m = 0, v = 0, w = 0, bits
    cdef Py_ssize_t fraction = 0, point
    cdef int k
    p += negative
    memcpy(&v, s + p, 8)
    k = count_digits(&v)
    point = s[p + k] == decimal
    if point:
        memcpy(&w, s + p + k + 1, 8)
        fraction = count_digits(&w)
    if k < 8 and fraction < 8 and 0 < k + fraction <= 8:
        # both parts as one word
        v = (v & ((<uint64_t> 1 << (8 * k)) - 1)) | (w << (8 * k))
        m = from_digits(v << (8 * (8 - k - fraction)))
        p += k + point + fraction
    else:
        p = many_digits(s, p, decimal, &m, &fraction)
        if p < 0:
            return NOT_QUICK
    if m == 0:
        out[0] = 0.0
    elif not scaled(m, -<int> fraction, out):
        return NOT_QUICK
    memcpy(&bits, out, 8)
    bits |= negative << 63      # no branch: half of the signs would be guessed wrongly
    memcpy(out, &bits, 8)
    return p


cdef inline Text* text_place(Quick* q, const char* s, Py_ssize_t n, int32_t column) noexcept nogil:
    """The place of a text of 1 to WORD bytes: its own, or a free one; NULL when neither is near. 16 bytes can be read."""
    cdef uint64_t low = 0, high = 0, mixed
    cdef Py_ssize_t i
    cdef int tried
    cdef Text* t
    memcpy(&low, s, 8)
    if n > 8:
        memcpy(&high, s + 8, 8)
        if n < 16:
            high &= ((<uint64_t> 1) << (8 * (n - 8))) - 1
    elif n < 8:
        low &= ((<uint64_t> 1) << (8 * n)) - 1
    mixed = (low ^ (high * 0x9E3779B97F4A7C15ULL) ^ (<uint64_t> column << 32) ^ <uint64_t> n) * 0x9E3779B97F4A7C15ULL
    i = <Py_ssize_t> (mixed >> 52)
    for tried in range(NEAR):
        t = &q.texts[(i + tried) & (PLACES - 1)]
        if t.length == 0:
            t.low = low
            t.high = high
            return t
        if t.low == low and t.high == high and t.length == n and t.column == column:
            return t
    return NULL


cdef inline void remember(Quick* q, const char* s, Py_ssize_t n, Py_ssize_t column, int32_t code) noexcept nogil:
    """Keep what a text of a column became, while there is room."""
    cdef char padded[WORD]
    cdef Text* t
    if not 0 < n <= WORD or q.n_texts >= MOST_TEXTS:
        return
    memset(padded, 0, WORD)
    memcpy(padded, s, n)
    t = text_place(q, padded, n, <int32_t> column)
    if t == NULL:
        return
    q.n_texts += t.length == 0
    t.length = <int32_t> n
    t.column = <int32_t> column
    t.code = code


cdef inline void forget_texts(Quick* q) noexcept nogil:
    if q.n_texts:
        memset(q.texts, 0, PLACES * sizeof(Text))
        q.n_texts = 0


cdef inline Py_ssize_t cell_end(const char* s, Py_ssize_t p, Py_ssize_t end, char sep) noexcept nogil:
    """Where a cell without quotes ends; NOT_QUICK when a line break of old stands in it."""
    while p < end and s[p] != sep:
        if s[p] == 13:
            return NOT_QUICK
        p += 1
    return p


cdef inline bint is_blank(char c) noexcept nogil:
    return c == 32 or c == 9


cdef inline Py_ssize_t quick_text(Quick* q, const char* s, Py_ssize_t p, Py_ssize_t end, Py_ssize_t j) noexcept nogil:
    """A level, a label or a cell to ignore, which is not empty; returns where it ends."""
    cdef Py_ssize_t stop
    cdef Text* t
    if s[p] == q.quote or is_blank(s[p]):
        return NOT_QUICK
    stop = cell_end(s, p, end, q.sep)
    if stop < 0 or q.role[j] == AS_IGNORED:
        return stop
    if stop - p <= WORD:
        t = text_place(q, s + p, stop - p, <int32_t> j)
        if t != NULL and t.length:
            if q.role[j] == AS_TARGET:
                q.code = t.code
            else:
                q.idx[q.cells] = t.code
                q.val[q.cells] = 1.0
                q.cells += 1
            return stop
    if q.role[j] != AS_TARGET or q.absent_first[<uint8_t> s[p]] or is_blank(s[stop - 1]):
        return NOT_QUICK
    q.code = NEW_LABEL
    q.label = p
    q.label_length = stop - p
    return stop


cdef inline Py_ssize_t quick_cell(Quick* q, const char* s, Py_ssize_t p, Py_ssize_t end, Py_ssize_t j) noexcept nogil:
    """Read cell j, which begins at p; returns where it ends, or NOT_QUICK."""
    cdef int role = q.role[j]
    cdef double x = 0.0
    if p == end or s[p] == q.sep:
        return p if q.empty_absent and role != AS_TARGET else NOT_QUICK
    if role != AS_NUMBER and role != AS_WEIGHT:
        return quick_text(q, s, p, end, j)
    p = quick_number(s, p, q.decimal, &x)
    if role == AS_WEIGHT:
        q.weight = x
        return p if x >= 0.0 else NOT_QUICK
    if q.fixed[j] == 0:
        return NOT_QUICK
    q.idx[q.cells] = q.fixed[j]
    q.val[q.cells] = x
    q.cells += 1
    return p


cdef inline Py_ssize_t quick_row(Quick* q, const char* s, Py_ssize_t p, Py_ssize_t n) noexcept nogil:
    """Read the row at p; returns where the next one begins, or NOT_QUICK. There is room for its cells."""
    cdef const char* newline = <const char*> memchr(s + p, 10, n - p)
    cdef Py_ssize_t end, after, j
    if newline == NULL:
        return NOT_QUICK
    end = newline - s
    after = end + 1
    if after + WORD > n or after - p > q.longest:
        return NOT_QUICK
    if end > p and s[end - 1] == 13:
        end -= 1
    if end == p:
        return NOT_QUICK
    q.code = -1
    q.weight = 1.0
    for j in range(q.width):
        p = quick_cell(q, s, p, end, j)
        if p < 0:
            return NOT_QUICK
        if j + 1 < q.width:
            if p >= end or s[p] != q.sep:
                return NOT_QUICK
            p += 1
    return after if p == end else NOT_QUICK

"""Rows of delimited text that need no Python: numbers, empty cells, and levels and labels that were read before.

A row is split and parsed in one pass, without the interpreter lock. Anything else (quotes, spaces around a cell,
exponents, new texts, too many or too few cells) is left to the parser of single records, which reads the row again from
its start. Both return the same numbers.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memchr, memcpy, memset

from varifold.streams.readers._numbers cimport NOT_QUICK, quick_number

cdef extern from "varifold/streams/readers/decimals.h":
    const bint LITTLE_ENDIAN "VARIFOLD_LITTLE_ENDIAN"

cdef enum Role:
    AS_NUMBER, AS_CATEGORY, AS_TEXT, AS_TARGET, AS_WEIGHT, AS_EXTRA, AS_DATE, AS_IGNORED

cdef enum:
    NEW_LABEL = -2     # code of a row whose label has to be looked up by its text
    WORD = 16          # longest text that is remembered
    PLACES = 4096      # size of the table of texts, a power of two
    MOST_TEXTS = 3072
    NEAR = 16          # number of positions probed for a text

# A level or a label that was read before.
cdef struct Text:
    uint64_t low, high         # its bytes, padded with zeros
    int32_t length             # 0: a free entry
    int32_t column
    int32_t code               # feature id of the level, code of the label

# The row being parsed, and its columns. The parser of records owns the arrays.
cdef struct QuickRow:
    bint possible              # whether the quick path supports these columns
    bint numeric_target
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
    # results
    Py_ssize_t cells           # where its cells end
    int32_t code
    double target              # NaN if it has none
    double weight
    Py_ssize_t label, label_length


cdef inline Text* text_place(QuickRow* q, const char* s, Py_ssize_t n, int32_t column) noexcept nogil:
    """Return the entry of a text of 1 to WORD bytes, a free one near it, or NULL. 16 bytes at s must be readable."""
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


cdef inline void remember(QuickRow* q, const char* s, Py_ssize_t n, Py_ssize_t column, int32_t code) noexcept nogil:
    """Remember the code of a text of a column, as long as the table has space."""
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


cdef inline Py_ssize_t cell_end(const char* s, Py_ssize_t p, Py_ssize_t end, char sep) noexcept nogil:
    """Return where a cell without quotes ends; NOT_QUICK if it contains a carriage return."""
    while p < end and s[p] != sep:
        if s[p] == 13:
            return NOT_QUICK
        p += 1
    return p


cdef inline bint is_blank(char c) noexcept nogil:
    return c == 32 or c == 9


cdef inline Py_ssize_t quick_text(QuickRow* q, const char* s, Py_ssize_t p, Py_ssize_t end, Py_ssize_t j) noexcept nogil:
    """Read a level, a label or an ignored cell, which is not empty; return where it ends."""
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


cdef inline Py_ssize_t quick_cell(QuickRow* q, const char* s, Py_ssize_t p, Py_ssize_t end, Py_ssize_t j) noexcept nogil:
    """Read cell j, which begins at p; return where it ends, or NOT_QUICK."""
    cdef int role = q.role[j]
    cdef double x = 0.0
    if p == end or s[p] == q.sep:
        return p if q.empty_absent and role != AS_TARGET else NOT_QUICK
    if role != AS_NUMBER and role != AS_WEIGHT and not (role == AS_TARGET and q.numeric_target):
        return quick_text(q, s, p, end, j)
    p = quick_number(s, p, q.decimal, &x)
    if role == AS_TARGET:
        q.target = x
        return p
    if role == AS_WEIGHT:
        q.weight = x
        return p if x >= 0.0 else NOT_QUICK
    if q.fixed[j] == 0:
        return NOT_QUICK
    q.idx[q.cells] = q.fixed[j]
    q.val[q.cells] = x
    q.cells += 1
    return p


cdef inline Py_ssize_t quick_row(QuickRow* q, const char* s, Py_ssize_t p, Py_ssize_t n) noexcept nogil:
    """Read the row at p; return where the next one begins, or NOT_QUICK. The arrays have space for its cells."""
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
    q.target = NAN
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

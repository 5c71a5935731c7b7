"""The pieces of JSON text: white space, strings and numbers. Nothing is read at or beyond `end`.

What these functions do not take (escapes, numbers of more than 19 digits, anything that is no JSON) is left to Python's
json module, which says what is wrong with it.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from varifold._numeric.decimal cimport scaled

cdef enum:
    QUOTE = 34
    COMMA = 44
    MINUS = 45
    POINT = 46
    ZERO = 48
    COLON = 58
    BACKSLASH = 92
    OPEN = 123
    CLOSE = 125

cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define VARIFOLD_LITTLE 1
    #else
    #define VARIFOLD_LITTLE 0
    #endif
    """
    const bint LITTLE "VARIFOLD_LITTLE"   # the first byte of a word is its lowest

# A number as it is spelled: m times 10^exponent.
cdef struct Spelled:
    uint64_t m
    int exponent
    bint negative
    bint whole        # neither a point nor an exponent: an int in Python


cdef inline const char* skip_space(const char* p, const char* end) noexcept nogil:
    while p < end and (p[0] == 32 or p[0] == 10 or p[0] == 13 or p[0] == 9):
        p += 1
    return p


cdef inline const char* string_end(const char* p, const char* end, bint* escaped) noexcept nogil:
    """The closing quote of a string that starts at p; NULL when there is none or it holds a control character."""
    cdef unsigned char c
    escaped[0] = False
    while p < end:
        c = <unsigned char> p[0]
        if c == QUOTE:
            return p
        if c < 32:
            return NULL
        if c == BACKSLASH:
            escaped[0] = True
            p += 1
        p += 1
    return NULL


cdef inline bint eight_digits(const char* p, uint64_t* out) noexcept nogil:
    """Whether eight digits stand at p; all of them at once, by three multiplications."""
    cdef uint64_t v = 0
    memcpy(&v, p, 8)
    if ((v & (v + 0x0606060606060606ULL)) & 0xF0F0F0F0F0F0F0F0ULL) != 0x3030303030303030ULL:
        return False
    v = (v & 0x0F0F0F0F0F0F0F0FULL) * 2561 >> 8
    v = (v & 0x00FF00FF00FF00FFULL) * 6553601 >> 16
    out[0] = (v & 0x0000FFFF0000FFFFULL) * 42949672960001ULL >> 32
    return True


cdef inline const char* digits(const char* p, const char* end, uint64_t* m) noexcept nogil:
    """Append the digits at p to m, which may wrap; returns where they end."""
    cdef uint64_t eight = 0
    while LITTLE and end - p >= 8 and eight_digits(p, &eight):
        m[0] = m[0] * 100000000 + eight
        p += 8
    while p < end and ZERO <= p[0] <= 57:
        m[0] = m[0] * 10 + <uint64_t> (p[0] - ZERO)
        p += 1
    return p


cdef inline const char* read_exponent(const char* p, const char* end, int* exponent) noexcept nogil:
    """Add the exponent whose e stands at p; NULL when it is not one, or beyond any double."""
    cdef int e = 0
    cdef bint negative = False
    p += 1
    if p < end and (p[0] == MINUS or p[0] == 43):
        negative = p[0] == MINUS
        p += 1
    if p == end or not ZERO <= p[0] <= 57:
        return NULL
    while p < end and ZERO <= p[0] <= 57:
        e = 10 * e + (p[0] - ZERO)
        if e > 9999:
            return NULL
        p += 1
    exponent[0] += -e if negative else e
    return p


cdef inline const char* read_number(const char* p, const char* end, Spelled* out) noexcept nogil:
    """The number at p, as JSON spells numbers; returns where it ends, NULL for one that is left to Python."""
    cdef const char* start
    cdef const char* point
    cdef Py_ssize_t n
    out.m = 0
    out.exponent = 0
    out.whole = True
    out.negative = p < end and p[0] == MINUS
    if out.negative:
        p += 1
    start = p
    p = digits(p, end, &out.m)
    n = p - start
    if n == 0 or (n > 1 and start[0] == ZERO):
        return NULL
    if p < end and p[0] == POINT:
        p += 1
        point = p
        if start[0] == ZERO:
            n = 0
            while p < end and p[0] == ZERO:
                p += 1
        start = p
        p = digits(p, end, &out.m)
        n += p - start
        if p == point or p - point > 9999:
            return NULL
        out.exponent = <int> (point - p)
        out.whole = False
    if n > 19:   # m may have wrapped
        return NULL
    if p < end and (p[0] == 101 or p[0] == 69):
        out.whole = False
        p = read_exponent(p, end, &out.exponent)
    return p


cdef inline bint number_value(const Spelled* spelled, double* out) noexcept nogil:
    """The double that Python's json and float() give; False where more than one rounding would be needed."""
    if spelled.m == 0:
        out[0] = -0.0 if spelled.negative and not spelled.whole else 0.0
        return True
    if not scaled(spelled.m, spelled.exponent, out):
        return False
    if spelled.negative:
        out[0] = -out[0]
    return True

"""Decimal numbers in text: one parser, with a quick path for plain decimals that needs no Python."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from varifold._numeric.bits cimport lowest_bit

cdef enum:
    NOT_QUICK = -1

cdef extern from "varifold/streams/readers/decimals.h":
    const int LDBL_MANT_DIG
    const double* POWER "VARIFOLD_POWER"
    const long double* LONG_POWER "VARIFOLD_LONG_POWER"
    const uint64_t* TENS "VARIFOLD_TENS"


cdef inline bint scaled(uint64_t m, int exponent, double* out) noexcept nogil:
    """Compute m times 10^exponent where a single division or product rounds correctly; return False elsewhere."""
    cdef uint64_t bits = 0
    cdef long double wide
    if m <= 9007199254740992ULL and -22 <= exponent <= 22:
        out[0] = <double> m
        out[0] = out[0] / POWER[-exponent] if exponent < 0 else out[0] * POWER[exponent]
        return True
    if LDBL_MANT_DIG == 64 and -27 <= exponent <= 27:
        # One rounding to 64 bits; rounding again to 53 is right unless the 64 bits lie exactly half-way.
        wide = <long double> m
        wide = wide / LONG_POWER[-exponent] if exponent < 0 else wide * LONG_POWER[exponent]
        memcpy(&bits, &wide, 8)
        if bits & 2047 != 1024:
            out[0] = <double> wide
            return True
    return False


cdef inline int count_digits(uint64_t* v) noexcept nogil:
    """Count the digits at the beginning of eight bytes, which become 0 to 9."""
    cdef uint64_t other
    v[0] ^= 0x3030303030303030ULL
    other = ((v[0] + 0x7676767676767676ULL) | v[0]) & 0x8080808080808080ULL     # high bits of bytes that are no digits
    return lowest_bit(other) >> 3 if other else 8


cdef inline uint64_t from_digits(uint64_t v) noexcept nogil:
    """Return the number of eight digits, the first in the lowest byte."""
    v = (v * 2561) >> 8
    v = ((v & 0x00FF00FF00FF00FFULL) * 6553601) >> 16
    return ((v & 0x0000FFFF0000FFFFULL) * 42949672960001ULL) >> 32


cdef inline Py_ssize_t append_digits(const char* s, Py_ssize_t p, uint64_t* m) noexcept nogil:
    """Append the digits at p to m, which may wrap, up to eight at once; return where they end.

    Eight bytes after the last digit must be readable.
    """
    cdef uint64_t v = 0
    cdef int k = 8
    while k == 8:
        memcpy(&v, s + p, 8)
        k = count_digits(&v)
        if k == 0:
            break
        m[0] = m[0] * TENS[k] + from_digits(v << (8 * (8 - k)))             # leading zeros for fewer than eight
        p += k
    return p


cdef inline Py_ssize_t many_digits(
    const char* s, Py_ssize_t p, char decimal, uint64_t* m, Py_ssize_t* fraction
) noexcept nogil:
    """Read digits[.digits] at p; return where they end, NOT_QUICK where m may have wrapped."""
    cdef Py_ssize_t start = p, n
    p = append_digits(s, p, m)
    n = p - start
    if s[p] == decimal:
        start = p + 1
        p = append_digits(s, start, m)
        fraction[0] = p - start
        n += fraction[0]
    return p if 0 < n <= 19 else NOT_QUICK


cdef inline Py_ssize_t quick_number(const char* s, Py_ssize_t p, char decimal, double* out) noexcept nogil:
    """Read [-]digits[.digits] at p; return where it ends, NOT_QUICK for anything that needs `read_number`.

    Sixteen bytes after p must be readable, and the text must end with a byte that is no digit.
    """
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
    bits |= negative << 63      # no branch: half of the signs would be mispredicted
    memcpy(out, &bits, 8)
    return p


# Parse n bytes as a number, exactly as Python's float() does; return 1, or 0 if they are not a number. `thousands`
# may separate groups of three digits; 0: no such separator.
cdef int read_number(const char* s, Py_ssize_t n, char decimal, char thousands, double* out) except -1

"""Decimal digits to the nearest double."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <float.h>
    /* every entry is exact: 10^22 fits 53 bits without its factors of two, 10^27 fits 64 */
    static const double VARIFOLD_POWER[23] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22};
    static const long double VARIFOLD_LONG_POWER[28] = {
        1e0L, 1e1L, 1e2L, 1e3L, 1e4L, 1e5L, 1e6L, 1e7L, 1e8L, 1e9L, 1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L,
        1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    """
    const int LDBL_MANT_DIG
    const double* POWER "VARIFOLD_POWER"
    const long double* LONG_POWER "VARIFOLD_LONG_POWER"


cdef inline bint scaled(uint64_t m, int exponent, double* out) noexcept nogil:
    """m times 10^exponent where one division or product rounds it correctly; False elsewhere."""
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

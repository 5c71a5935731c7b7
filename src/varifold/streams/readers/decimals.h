/* Powers of ten for decimal numbers in text, and the byte order of the machine. */
#ifndef VARIFOLD_DECIMALS_H
#define VARIFOLD_DECIMALS_H

#include <float.h>
/* every entry is exact: 10^22 fits 53 bits without its factors of two, 10^27 fits 64 */
static const double VARIFOLD_POWER[23] = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
    1e20, 1e21, 1e22};
static const long double VARIFOLD_LONG_POWER[28] = {
    1e0L, 1e1L, 1e2L, 1e3L, 1e4L, 1e5L, 1e6L, 1e7L, 1e8L, 1e9L, 1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L,
    1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
static const unsigned long long VARIFOLD_TENS[9] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define VARIFOLD_LITTLE_ENDIAN 1
#else
#define VARIFOLD_LITTLE_ENDIAN 0
#endif

#endif

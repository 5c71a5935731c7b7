/* Products of 64 bits by 64 bits for hashes, and prefetching, for compilers with and without their own. */
#ifndef VARIFOLD_DRAWS_H
#define VARIFOLD_DRAWS_H

#include <stdint.h>
#define STRIDE 0xD1B54A32D192ED03ULL
#if defined(__SIZEOF_INT128__)
static inline uint64_t high_product(uint64_t a, uint64_t b) {
    return (uint64_t) (((unsigned __int128) a * b) >> 64);
}
static inline uint64_t folded_product(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128) a * b;      /* one multiplication for both halves */
    return (uint64_t) product ^ (uint64_t) (product >> 64);
}
#else
static inline uint64_t high_product(uint64_t a, uint64_t b) {
    uint64_t a0 = (uint32_t) a, a1 = a >> 32, b0 = (uint32_t) b, b1 = b >> 32;
    uint64_t low = a0 * b0, left = a1 * b0, right = a0 * b1;
    uint64_t carry = (low >> 32) + (uint32_t) left + (uint32_t) right;
    return a1 * b1 + (left >> 32) + (right >> 32) + (carry >> 32);
}
static inline uint64_t folded_product(uint64_t a, uint64_t b) {
    return a * b ^ high_product(a, b);
}
#endif
#if defined(__GNUC__) || defined(__clang__)
#define prefetch(a) __builtin_prefetch(a)
#else
#define prefetch(a) ((void) (a))
#endif

#endif

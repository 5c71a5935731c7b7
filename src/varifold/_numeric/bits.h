/* Count bits and find the lowest one, with the processor's instructions where it has them. */
#ifndef VARIFOLD_BITS_H
#define VARIFOLD_BITS_H

#include <stdint.h>

/* by halves, pairs, nibbles and bytes */
static inline int varifold_popcount_plain(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int) ((x * 0x0101010101010101u) >> 56);
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(__POPCNT__)
/* The instruction is as old as 2008, but the plainest x86-64 lacks it, so it is detected. */
#define varifold_counts_bits() (__builtin_cpu_supports("popcnt") != 0)
static inline int varifold_popcount_by(int instruction, uint64_t x)
{
    uint64_t n;
    if (!instruction)
        return varifold_popcount_plain(x);
    __asm__("popcntq %1, %0" : "=r"(n) : "rm"(x) : "cc");
    return (int) n;
}
#elif defined(__GNUC__)
#define varifold_counts_bits() 1
#define varifold_popcount_by(instruction, x) __builtin_popcountll(x)
#else
#define varifold_counts_bits() 0
#define varifold_popcount_by(instruction, x) varifold_popcount_plain(x)
#endif

#if defined(__GNUC__)
#define varifold_lowest_bit(b) __builtin_ctzll(b)
#else
static inline int varifold_lowest_bit(uint64_t b) { int k = 0; while (!(b & 1)) { b >>= 1; k++; } return k; }
#endif

#endif

"""Bit counting, with the compiler's instruction where it is known to have one."""

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define VARIFOLD_POPCOUNT(x) __builtin_popcountll(x)
    #else
    static inline int VARIFOLD_POPCOUNT(unsigned long long x) { int n = 0; for (; x; x &= x - 1) n++; return n; }
    #endif
    """
    int popcount "VARIFOLD_POPCOUNT"(uint64_t) noexcept nogil

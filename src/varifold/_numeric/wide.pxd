"""How a loop in C is compiled for wider registers too: VARIFOLD_WIDE before a static function.

On x86-64 Linux GCC compiles the function twice, for AVX2 and for every processor, and the machine picks one when the
module is loaded; elsewhere there is the second one alone. A number is computed by the same operations in the same order in
both (no fused multiply-add, see core_c_args in meson.build), so that results do not depend on the machine. VARIFOLD_FETCH
asks for a cache line that will be read soon.
"""

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \\
        && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    #define VARIFOLD_WIDE __attribute__((noinline, unused, target_clones("avx2", "default")))
    #elif defined(__GNUC__)
    #define VARIFOLD_WIDE __attribute__((unused))
    #else
    #define VARIFOLD_WIDE
    #endif
    #if defined(__GNUC__)
    #define VARIFOLD_FETCH(a) __builtin_prefetch((a), 0, 2)
    #else
    #define VARIFOLD_FETCH(a) ((void) (a))
    #endif
    #if defined(_MSC_VER)
    #define VARIFOLD_ALONE __restrict
    #else
    #define VARIFOLD_ALONE restrict
    #endif
    """
    pass

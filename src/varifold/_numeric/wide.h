/* Attributes with which wide.pxd has functions compiled; see there. */

#ifndef VARIFOLD_WIDE_H
#define VARIFOLD_WIDE_H

/* The sanitizers do not know functions that are chosen when a module is loaded. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
    && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VARIFOLD_WIDE __attribute__((noinline, unused, target_clones("avx2", "default")))
#elif defined(__GNUC__)
#define VARIFOLD_WIDE __attribute__((unused))
#else
#define VARIFOLD_WIDE
#endif

#if defined(__GNUC__)
#define VARIFOLD_INLINED __attribute__((always_inline))
#elif defined(_MSC_VER)
#define VARIFOLD_INLINED __forceinline
#else
#define VARIFOLD_INLINED
#endif

#if defined(_MSC_VER)
#define VARIFOLD_ALONE __restrict
#else
#define VARIFOLD_ALONE restrict
#endif

#endif
